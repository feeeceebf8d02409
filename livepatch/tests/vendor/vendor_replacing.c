// SPDX-License-Identifier: GPL-2.0-only
/* Cumulative: replaces all others. */
#define REPLACE true
#define FUNCTION "version_proc_show"
#define NEW vendor_version

#include "vendor.h"
