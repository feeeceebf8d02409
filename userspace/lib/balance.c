// SPDX-License-Identifier: MIT
/* The balance of a listening socket. */
#include "device.h"

int flowfd_balance(int listener, unsigned int flags)
{
	struct flowfd_balance args = { .fd = listener };

	args.flags = flags & ~FLOWFD_KEEP_ON_EXEC;
	return flowfd__create(FLOWFD_IOC_BALANCE, &args, flags & FLOWFD_KEEP_ON_EXEC);
}
