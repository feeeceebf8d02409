// SPDX-License-Identifier: MIT
/*
 * Wraps ioctl(2), and functions of libaio and liburing that are no more than a system
 * call. Every call is first passed to the kernel unchanged. Only if the kernel answers
 * EINVAL does the shim check whether a counter is the reason. Functions of other
 * libraries that have the same names have no version, or another, and are not wrapped.
 */
#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include <linux/io_uring.h>

#include "preload/export.h"
#include "preload/handover.h"
#include "preload/next.h"
#include "preload/refused.h"
#include "preload/uring.h"

static bool again(long ret, bool (*replace)(unsigned long request, const void *argument),
		  unsigned long request, long argument)
{
	if (ret != -1 || errno != EINVAL)
		return false;
	if (replace(request, (const void *)argument))
		return true;
	errno = EINVAL;
	return false;
}

static int ioctl_by(int (*next)(int fd, unsigned long request, long argument), int fd,
		    unsigned long request, long argument)
{
	int ret = next(fd, request, argument);

	if (handover_is_ioctl(request) && again(ret, handover_ioctl, request, argument))
		ret = next(fd, request, argument);
	return ret;
}

/* Not by <sys/ioctl.h>: with 64 bits of time_t, that has another name for it. */
EXPORT int ioctl(int fd, unsigned long request, ...);
EXPORT int ioctl(int fd, unsigned long request, ...)
{
	va_list list;
	long argument;

	va_start(list, request);
	argument = va_arg(list, long);
	va_end(list);
	return ioctl_by(next_ioctl, fd, request, argument);
}

#ifdef HAS_IOCTL_TIME64
EXPORT int __ioctl_time64(int fd, unsigned long request, ...);
EXPORT int __ioctl_time64(int fd, unsigned long request, ...)
{
	va_list list;
	long argument;

	va_start(list, request);
	argument = va_arg(list, long);
	va_end(list);
	return ioctl_by(next_ioctl_time64, fd, request, argument);
}
#endif

static long call(long number, const long arguments[6])
{
	return next_call(number, arguments[0], arguments[1], arguments[2], arguments[3]);
}

/*
 * As io_submit(2), but returns -errno. The kernel stops at the first request that it
 * refuses. If it accepted others before, it returns their number and not the reason,
 * so the rest is submitted again.
 */
static long submit(const long arguments[6])
{
	struct iocb *const *iocbs = (void *)arguments[2];
	long rest[6] = { arguments[0] };
	long done = 0;
	long tried = -1;
	long ret;

	for (;;) {
		rest[1] = arguments[1] - done;
		rest[2] = (long)(iocbs + done);
		ret = call(SYS_io_submit, rest);
		if (ret > 0)
			done += ret;
		else if (ret != -EINVAL)
			break;
		if (done >= arguments[1] || tried == done || !handover_iocb(iocbs + done))
			break;
		tried = done;
	}
	return done ? done : ret;
}

static long register_uring(const long arguments[6])
{
	long ret = call(SYS_io_uring_register, arguments);

	if (ret == -EINVAL && handover_uring(arguments[1], (const void *)arguments[2]))
		ret = call(SYS_io_uring_register, arguments);
	return ret;
}

EXPORT int aio_submit(long context, long count, long iocbs);
EXPORT_VERSION(aio_submit, "io_submit@LIBAIO_0.1");
EXPORT int aio_submit(long context, long count, long iocbs)
{
	const long arguments[6] = { context, count, iocbs };

	return (int)submit(arguments);
}

/* Versions 2.4 are those of liburing-ffi. */
EXPORT int uring_register(int fd, unsigned int opcode, long argument, unsigned int count);
EXPORT_VERSION(uring_register, "io_uring_register@LIBURING_2.3");
EXPORT_ALIAS(uring_register_ffi, uring_register);
EXPORT_VERSION(uring_register_ffi, "io_uring_register@LIBURING_2.4");
EXPORT int uring_register(int fd, unsigned int opcode, long argument, unsigned int count)
{
	const long arguments[6] = { fd, opcode, argument, count };

	return (int)register_uring(arguments);
}

static int register_eventfd(const struct uring *uring, unsigned int opcode, int fd)
{
	long arguments[6] = { uring->ring_fd, opcode, (long)&fd, 1 };

	if (uring->ring_fd == -1) {
		arguments[0] = uring->registered;
		arguments[1] |= 1U << 31; /* IORING_REGISTER_USE_REGISTERED_RING */
	}
	return (int)register_uring(arguments);
}

EXPORT int uring_eventfd(const struct uring *uring, int fd);
EXPORT_VERSION(uring_eventfd, "io_uring_register_eventfd@LIBURING_2.0");
EXPORT_ALIAS(uring_eventfd_ffi, uring_eventfd);
EXPORT_VERSION(uring_eventfd_ffi, "io_uring_register_eventfd@LIBURING_2.4");
EXPORT int uring_eventfd(const struct uring *uring, int fd)
{
	return register_eventfd(uring, IORING_REGISTER_EVENTFD, fd);
}

EXPORT int uring_eventfd_async(const struct uring *uring, int fd);
EXPORT_VERSION(uring_eventfd_async, "io_uring_register_eventfd_async@LIBURING_2.0");
EXPORT_ALIAS(uring_eventfd_async_ffi, uring_eventfd_async);
EXPORT_VERSION(uring_eventfd_async_ffi, "io_uring_register_eventfd_async@LIBURING_2.4");
EXPORT int uring_eventfd_async(const struct uring *uring, int fd)
{
	return register_eventfd(uring, IORING_REGISTER_EVENTFD_ASYNC, fd);
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

/* Not by ioctl(), which may be a function of the program that calls syscall(). */
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
		return with_errno(submit(arguments));
	if (number == SYS_io_uring_register)
		return with_errno(register_uring(arguments));
	return syscall_ioctl(arguments);
}
