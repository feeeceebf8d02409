// SPDX-License-Identifier: GPL-2.0-only
/*
 * Plays as much of the module for flowfd-run and its shim as tests of what is preloaded
 * need: the device can be opened, asked what it has, and set up. It is preloaded behind
 * the shim.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <flowfd.h>

/* A file in memory that has no name any more. */
static bool is_device(int fd)
{
	struct stat status;
	int saved = errno;
	bool is = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && !status.st_nlink;

	errno = saved;
	return is;
}

long syscall(long number, ...)
{
	long (*function)(long number, ...) = dlsym(RTLD_NEXT, "syscall");
	long a[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_openat && strcmp((char *)a[1], FLOWFD_DEVICE) == 0)
		return memfd_create("flowfd", a[2] & O_CLOEXEC ? MFD_CLOEXEC : 0);
	if (number == SYS_ioctl && a[1] == FLOWFD_IOC_SETUP_COUNTER && is_device(a[0]))
		return 0;
	return function(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* flowfd-run looks for the module. */
int ioctl(int fd, unsigned long request, ...)
{
	int (*function)(int fd, unsigned long request, ...) = dlsym(RTLD_NEXT, "ioctl");
	void *argument;
	va_list list;

	va_start(list, request);
	argument = va_arg(list, void *);
	va_end(list);
	if (request != FLOWFD_IOC_QUERY || !is_device(fd))
		return function(fd, request, argument);
	*(struct flowfd_query *)argument = (struct flowfd_query){
		.abi_version = FLOWFD_ABI_VERSION,
	};
	return 0;
}
