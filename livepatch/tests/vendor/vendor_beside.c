// SPDX-License-Identifier: GPL-2.0-only
/* Leaves other livepatches alone. */
#define REPLACE false
#define FUNCTION "version_proc_show"
#define NEW vendor_version

#include "vendor.h"
