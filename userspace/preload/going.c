// SPDX-License-Identifier: MIT
/* Which descriptors go with which calls. */
#include <limits.h>
#include <sched.h>
#include <sys/syscall.h>

#include <linux/close_range.h>

#include "preload/cells.h"
#include "preload/going.h"
#include "preload/next.h"

void going_dup(int old, int number)
{
	if (old != number)
		cells_forget(number);
}

/* With a table of its own, the calling thread differs from others. */
void going_range(unsigned int first, unsigned int last, unsigned int flags)
{
	if (flags & CLOSE_RANGE_UNSHARE)
		cells_end();
	else if (!(flags & CLOSE_RANGE_CLOEXEC))
		cells_forget_range(first, last);
}

void going_unshare(unsigned long flags)
{
	if (flags & CLONE_FILES)
		cells_end();
}

NO_STACK_PROTECTOR bool going_is(long number)
{
	switch (number) {
	case SYS_close:
	case SYS_close_range:
	case SYS_dup3:
#ifdef SYS_dup2
	case SYS_dup2:
#endif
	case SYS_unshare:
		return true;
	default:
		return false;
	}
}

void going_syscall(long number, const long arguments[6])
{
	switch (number) {
	case SYS_close:
		cells_forget(arguments[0]);
		break;
	case SYS_close_range:
		going_range(arguments[0], arguments[1], arguments[2]);
		break;
	case SYS_unshare:
		going_unshare(arguments[0]);
		break;
	default:
		going_dup(arguments[0], arguments[1]);
	}
}
