// SPDX-License-Identifier: MIT
/*
 * Descriptions of errors. If a user or a programmer can remedy an error, the text
 * says how.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "device.h"

/* The errno does not say whether module or library is too old: asks the module. */
static const char *mismatch(void)
{
	struct flowfd_query query = { 0 };
	int fd = flowfd__open(O_CLOEXEC);

	if (fd >= 0) {
		flowfd__ioctl(fd, FLOWFD_IOC_QUERY, &query);
		flowfd__close(fd);
	}
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
	case -EOPNOTSUPP:
		return "only the flowfd module can do this (a token bucket, a semaphore"
		       " with a maximum or a timed write, a ring that is kept on exec):"
		       " run 'modprobe flowfd' as root (package flowfd-dkms)";
	case -ETIMEDOUT:
		return "the time for the call has passed";
	default:
		return strerror(-error);
	}
}

_Static_assert(FLOWFD_RING_ITEMS_MAX == 1048576, "the text below says 1048576");

const char *flowfd_ring_strerror(int error)
{
	switch (error) {
	case -EINVAL:
		return "events must include EPOLLET, and may include EPOLLIN,"
		       " EPOLLPRI, EPOLLOUT, EPOLLRDHUP and EPOLLONESHOT, not"
		       " EPOLLEXCLUSIVE or EPOLLWAKEUP; max_items is 1 to"
		       " 1048576; unused fields are 0; the number of a post is"
		       " below max_items; the module may be too old for posts";
	case -EPERM:
		return "this kind of file cannot be watched (regular file,"
		       " directory, signalfd, binder); or the process has the"
		       " personality READ_IMPLIES_EXEC, and no ring can be"
		       " mapped";
	case -ELOOP:
		return "an epoll, a ring or an io_uring cannot be watched";
	case -EOPNOTSUPP:
		return "a file with more than two wait queues cannot be watched:"
		       " use epoll for it; without the module, no ring can be kept"
		       " on exec, and none has statistics";
	case -ECHILD:
		return "a ring without the module is that of the process that created"
		       " it: after fork(2), the child may only post";
	case -EEXIST:
		return "the ring watches this descriptor already:"
		       " flowfd_ring_mod() changes that";
	case -ENOENT:
		return "the ring does not watch this descriptor,"
		       " or has no such post, or nothing with this data";
	case -ENOSPC:
		return "the ring has max_items files and posts, as many as it"
		       " was created for; a post that was removed counts until"
		       " the next harvest; without the module, epoll may be at"
		       " /proc/sys/fs/epoll/max_user_watches";
	case -EBADF:
		return "not a descriptor: if the file was closed before it was"
		       " removed, flowfd_ring_del_data() removes it";
	case -ENOTTY:
		return "this descriptor is not a ring";
	case -ENOMEM:
		return "no memory, or the ring would exceed RLIMIT_MEMLOCK"
		       " (ulimit -l)";
	default:
		return flowfd_strerror(error);
	}
}
