/* All kernels for one instruction set: define SET(name), TARGET and LANES, then include; they are undefined after. */

#include "lanes.h"
#include "scan_kernels.h"
#include "conv_kernels.h"

#undef vec
#undef bits
#undef place
#undef desk
#undef INLINE
#undef SMALLEST
#undef LARGEST
#undef VECS
#undef EACH
#undef SET
#undef TARGET
#undef LANES
