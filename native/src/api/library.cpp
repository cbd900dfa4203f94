#include "tacho/tacho.h"

int32_t tacho_abi_version(void) { return TACHO_ABI_VERSION; }
