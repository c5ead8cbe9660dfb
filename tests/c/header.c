#include <ringlet/ringlet.h>

/* A file with nothing in it is no C99. */
extern const int ringlet_header_compiles;
const int ringlet_header_compiles = RINGLET_OK;
