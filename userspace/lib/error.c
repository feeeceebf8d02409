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

/* A result without its sign is the usual mistake. */
static int negative(int error)
{
	return error > 0 ? -error : error;
}

const char *flowfd_strerror(int error)
{
	switch (negative(error)) {
	case -ENODEV:
		return "the flowfd module is not loaded: run 'modprobe flowfd'"
		       " as root (package flowfd-dkms)";
	case -EPROTONOSUPPORT:
		return mismatch();
	case -EACCES:
		return "this user may not open " FLOWFD_DEVICE
		       ": root can change that with a udev rule; or a filter of"
		       " seccomp(2) refuses a call";
	case -EOPNOTSUPP:
		return "only the flowfd module can do this (a token bucket, a semaphore"
		       " with a maximum or a timed write, a ring that is kept on exec):"
		       " run 'modprobe flowfd' as root (package flowfd-dkms)";
	case -ENOTTY:
		return "this descriptor is not a counter of the flowfd module: one that"
		       " flowfd_counter_open() made without the module has flowfd_add()"
		       " and flowfd_take() alone; or the module is too old to share it";
	case -EIO:
		return "this descriptor is not a counter: it does not transfer 8 bytes";
	case -EINVAL:
		return "a value or a count that is not below the maximum; a maximum that"
		       " is not above the count; a bucket without capacity, with a rate"
		       " above 1000000000, or on a semaphore; an unknown flag or option;"
		       " or a reserved field that is not 0";
	case -ENOMEM:
		return "no memory, or RLIMIT_MEMLOCK (ulimit -l) would be exceeded";
	case -ETIMEDOUT:
		return "the time for the call has passed";
	case -ENOENT:
		return "there is no counter or ring with this key: its last descriptor was"
		       " closed, it is of another user namespace, or the key is damaged";
	default:
		return strerror(-negative(error));
	}
}

_Static_assert(FLOWFD_TOKEN_RATE_MAX == 1000000000, "the texts say 1000000000");
_Static_assert(FLOWFD_MAX_DELAY_MAX == 3600000000000, "the text below says an hour");

const char *flowfd_flow_strerror(int error)
{
	switch (negative(error)) {
	case -EINVAL:
		return "the maximum must be above the count and both marks; a bucket has a"
		       " capacity, and a rate of 1000000000 at most; max_delay is an hour"
		       " at most; a semaphore has no bucket, no delay and no read mark"
		       " above 1; a mapped counter has no marks and no delay, and one with a"
		       " source and a sink no maximum; overflow is FLOWFD_OVERFLOW_*;"
		       " other flags and fields are 0";
	case -EPERM:
		return "the settings of this counter are sealed (FLOWFD_SEAL)";
	case -ENOTTY:
		return "this descriptor is not a counter of the flowfd module"
		       " (FLOWFD_HAS_FLOW of flowfd_features() tells): for a struct"
		       " flowfd_counter there is flowfd_counter_set_flow()";
	case -EOPNOTSUPP:
		return "only the flowfd module can do this: without it a counter has a"
		       " maximum and a policy for overflow, but neither marks, delay nor"
		       " bucket, and a semaphore has none of it";
	default:
		return flowfd_strerror(error);
	}
}

const char *flowfd_bridge_strerror(int error)
{
	switch (negative(error)) {
	case -EINVAL:
		return "the flags must be FLOWFD_BRIDGE_SOURCE or FLOWFD_BRIDGE_SINK, perhaps"
		       " with FLOWFD_BRIDGE_REMOVE; the other end must be from eventfd(2);"
		       " a semaphore has no sink; and a counter with a source and a sink has"
		       " no maximum";
	case -EBADF:
		return "not a descriptor; or the counter is not open for writing (source)"
		       " or reading (sink)";
	case -EBUSY:
		return "this counter has such a bridge already, or the eventfd is in"
		       " another bridge";
	case -ENOENT:
		return "this counter has no such bridge";
	case -ENOTTY:
		return "this descriptor is not a counter of the flowfd module: only these"
		       " have bridges; or the module is too old (FLOWFD_FEATURE_BRIDGE)";
	default:
		return flowfd_strerror(error);
	}
}

_Static_assert(FLOWFD_RING_ITEMS_MAX == 1048576, "the text below says 1048576");

const char *flowfd_ring_strerror(int error)
{
	switch (negative(error)) {
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
		return "an epoll or a ring cannot be watched, nor an io_uring with the module";
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
