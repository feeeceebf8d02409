// SPDX-License-Identifier: MIT
/*
 * Stands in front of ioctl(2) and of what libaio and liburing export. Every call
 * is first made as it is. Only when the kernel answers EINVAL does anybody look
 * whether a counter is the reason.
 */
#include <errno.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "preload/export.h"
#include "preload/handover.h"
#include "preload/next.h"
#include "preload/refused.h"
#include "preload/replace.h"

static bool again(long ret, bool (*replace)(unsigned long request,
					    const void *argument),
		  unsigned long request, long argument)
{
	if (ret != -1 || errno != EINVAL)
		return false;
	if (replace(request, (const void *)argument))
		return true;
	errno = EINVAL;
	return false;
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
	va_list list;
	long argument;
	int ret;

	va_start(list, request);
	argument = va_arg(list, long);
	va_end(list);

	ret = next_ioctl(fd, request, argument);
	if (handover_is_ioctl(request) &&
	    again(ret, handover_ioctl, request, argument))
		ret = next_ioctl(fd, request, argument);
	return ret;
}

/*
 * As io_submit(2), with -errno. The kernel stops at the first request that it
 * refuses; if there were others before it, the count of these hides the reason
 * until the rest is submitted alone.
 */
static long submit(long context, long count, struct iocb *const *iocbs)
{
	long done = 0;
	long tried = -1;
	long ret;

	for (;;) {
		ret = next_call(SYS_io_submit, context, count - done,
				(long)(iocbs + done), 0);
		if (ret > 0)
			done += ret;
		else if (ret != -EINVAL)
			break;
		if (done >= count || tried == done ||
		    !handover_iocb(iocbs + done))
			break;
		tried = done;
	}
	return done ? done : ret;
}

/* libaio makes the system call inline, and does nothing else. */
EXPORT int io_submit(void *context, long count, struct iocb **iocbs);
EXPORT int io_submit(void *context, long count, struct iocb **iocbs)
{
	return submit((long)context, count, iocbs);
}

static long register_uring(long fd, long opcode, long argument, long count)
{
	long ret = next_call(SYS_io_uring_register, fd, opcode, argument,
			     count);

	if (ret == -EINVAL && handover_uring(opcode, (const void *)argument))
		ret = next_call(SYS_io_uring_register, fd, opcode, argument,
				count);
	return ret;
}

/* liburing from 2.4 on has it. */
EXPORT int io_uring_register(unsigned int fd, unsigned int opcode,
			     const void *argument, unsigned int count);
EXPORT int io_uring_register(unsigned int fd, unsigned int opcode,
			     const void *argument, unsigned int count)
{
	return register_uring(fd, opcode, (long)argument, count);
}

/* What is in a struct io_uring differs between versions of liburing. */
static int register_eventfd(const char *name, void *uring, int fd,
			    const void *address)
{
	int (*function)(void *uring, int fd);
	int ret;

	function = next_in_library(name, address);
	if (!function)
		return -ENOSYS;
	ret = function(uring, fd);
	if (ret == -EINVAL && replace_counter(fd, name))
		ret = function(uring, fd);
	return ret;
}

EXPORT int io_uring_register_eventfd(void *uring, int fd);
EXPORT int io_uring_register_eventfd(void *uring, int fd)
{
	return register_eventfd(__func__, uring, fd,
				__builtin_return_address(0));
}

EXPORT int io_uring_register_eventfd_async(void *uring, int fd);
EXPORT int io_uring_register_eventfd_async(void *uring, int fd)
{
	return register_eventfd(__func__, uring, fd,
				__builtin_return_address(0));
}

NO_STACK_PROTECTOR bool refused_is(long number)
{
	return number == SYS_ioctl || number == SYS_io_submit ||
	       number == SYS_io_uring_register;
}

static long with_errno(long ret)
{
	if (ret >= 0)
		return ret;
	errno = -ret;
	return -1;
}

/* Not by ioctl(): that may be a function of the program's that calls syscall(). */
static long syscall_ioctl(const long arguments[6])
{
	long ret = next_syscall(SYS_ioctl, arguments);

	if (handover_is_ioctl(arguments[1]) &&
	    again(ret, handover_ioctl, arguments[1], arguments[2]))
		ret = next_syscall(SYS_ioctl, arguments);
	return ret;
}

long refused_syscall(long number, const long arguments[6])
{
	if (number == SYS_io_submit)
		return with_errno(submit(arguments[0], arguments[1],
					 (void *)arguments[2]));
	if (number == SYS_io_uring_register)
		return with_errno(register_uring(arguments[0], arguments[1],
						 arguments[2], arguments[3]));
	return syscall_ioctl(arguments);
}
