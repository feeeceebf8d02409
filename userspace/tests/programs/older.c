// SPDX-License-Identifier: GPL-2.0-only
/* Answers of the module lack the features that an older one did not have. */
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/flowfd.h>

int ioctl(int fd, unsigned long request, ...)
{
	struct flowfd_query *query;
	void *argument;
	va_list list;
	long ret;

	va_start(list, request);
	argument = va_arg(list, void *);
	va_end(list);
	ret = syscall(SYS_ioctl, fd, request, argument);
	if (!ret && request == FLOWFD_IOC_QUERY) {
		query = argument;
		query->features &= ~FLOWFD_FEATURE_FLOW;
	}
	return (int)ret;
}
