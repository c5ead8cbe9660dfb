#pragma once

/* The checks of the C test programs. The first failure prints its place and ends the program. */

#include <ringlet/ringlet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                          \
  do {                                                                                                            \
    if (!(condition)) {                                                                                           \
      fprintf(stderr, "%s:%d: %s does not hold (%s)\n", __FILE__, __LINE__, #condition, ringlet_error_message()); \
      exit(1);                                                                                                    \
    }                                                                                                             \
  } while (0)

/* Checks that `call` returns `code`. */
#define CHECK_CODE(call, code)                                                                                                   \
  do {                                                                                                                           \
    const int32_t returned_code = (call);                                                                                        \
    if (returned_code != (code)) {                                                                                               \
      fprintf(stderr, "%s:%d: %s returned %s, not %s: %s\n", __FILE__, __LINE__, #call, ringlet_code_name(returned_code), #code, \
              ringlet_error_message());                                                                                          \
      exit(1);                                                                                                                   \
    }                                                                                                                            \
  } while (0)

#define CHECK_OK(call) CHECK_CODE(call, RINGLET_OK)
/* Checks that the last failure's message contains `text`. */
#define CHECK_MESSAGE(text) CHECK(strstr(ringlet_error_message(), (text)) != NULL)
