// SPDX-License-Identifier: MIT
/*
 * Errors in words. Those that a user can do something about say what.
 */
#include <errno.h>
#include <string.h>

#include "device.h"

/* The number does not say which of the two is too old, so ask the module. */
static const char *mismatch(void)
{
	struct flowfd_query query = {0};
	int fd = device_open(&query);

	if (fd >= 0)
		device_close(fd);
	if (query.abi_version > FLOWFD_ABI_VERSION)
		return "libflowfd " FLOWFD_VERSION
		       " is too old for the loaded flowfd module: upgrade"
		       " package libflowfd1";
	return "the loaded flowfd module is too old for libflowfd"
	       " " FLOWFD_VERSION
	       ": upgrade package flowfd-dkms, then run 'modprobe -r flowfd'"
	       " and 'modprobe flowfd' as root";
}

const char *flowfd_strerror(int error)
{
	switch (error) {
	case -ENODEV:
		return "the flowfd module is not loaded: run 'modprobe flowfd'"
		       " as root (package flowfd-dkms)";
	case -EPROTONOSUPPORT:
		return mismatch();
	case -EACCES:
		return "this user may not open " FLOWFD_DEVICE
		       ": root can change that with a udev rule";
	default:
		return strerror(-error);
	}
}
