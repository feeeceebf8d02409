// SPDX-License-Identifier: MIT
/* Compiles the inline functions of the headers, for programs that link to them. */
#define FLOWFD_INLINE

#include "device.h"
