// Compares our DLPack structs with the system's dlpack.h (Debian: 0.6), at compile time.
#include <dlpack/dlpack.h>

#include "tests/runtime/dlpack_layout.h"
