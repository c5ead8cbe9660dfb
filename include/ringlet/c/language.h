#pragma once

#if !defined(__cplusplus) && (!defined(__STDC_VERSION__) || __STDC_VERSION__ < 199901L)
#error "Ringlet's C headers need C99: compile with -std=c99 or later"
#endif
