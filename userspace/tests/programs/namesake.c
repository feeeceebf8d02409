// SPDX-License-Identifier: GPL-2.0-only
/*
 * Has its own ioctl(), made of syscall(2), which replaces libc's for every library of
 * the process, as that of libv4l does. Prints "ioctl 8" on success.
 */
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int ioctl(int fd, unsigned long request, ...)
{
	va_list list;
	long argument;

	va_start(list, request);
	argument = va_arg(list, long);
	va_end(list);
	return syscall(SYS_ioctl, fd, request, argument);
}

int main(void)
{
	int ends[2];
	int waiting = -1;

	if (pipe(ends) == 0 && write(ends[1], "12345678", 8) == 8)
		ioctl(ends[0], FIONREAD, &waiting);
	printf("ioctl %d\n", waiting);
	return waiting != 8;
}
