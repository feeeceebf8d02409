// SPDX-License-Identifier: GPL-2.0-only
/* Patches a function that flowfd's livepatch does. */
#define REPLACE false
#define FUNCTION "userfaultfd_read"
#define NEW vendor_read

#include "vendor.h"
