#include <ringlet/ringlet.h>

/* C99 does not allow a file without a declaration. */
extern const int ringlet_header_compiles;
const int ringlet_header_compiles = RINGLET_OK;
