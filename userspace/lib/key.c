// SPDX-License-Identifier: MIT
/* Counters and rings that are opened by a key. */
#include <errno.h>

#include "device.h"

int flowfd_share(int fd, struct flowfd_key *key)
{
	struct flowfd_share args = { .flags = 0 };
	int ret = flowfd__request(fd, FLOWFD_IOC_SHARE, &args);

	if (!ret)
		*key = args.key;
	/* The answer of an epoll, since Linux 6.9. */
	return ret == -EINVAL ? -ENOTTY : ret;
}

int flowfd_open_shared(const struct flowfd_key *key, unsigned int flags)
{
	struct flowfd_share args = { .key = *key };

	args.flags = flags & ~FLOWFD_KEEP_ON_EXEC;
	return flowfd__create(FLOWFD_IOC_OPEN, &args, flags & FLOWFD_KEEP_ON_EXEC);
}
