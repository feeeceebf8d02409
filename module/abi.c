// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the ioctls of all descriptors share: structures that can grow, descriptors
 * that are installed last, and FLOWFD_IOC_QUERY. There is no state and no lock.
 */
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/minmax.h>
#include <linux/uaccess.h>

#include "abi.h"
#include "flowfd.h"

static_assert(sizeof(struct flowfd_query) == FLOWFD_QUERY_SIZE_VER0);

/*
 * Gets an ioctl's structure of @size bytes from user memory. What it lacks of the @known
 * bytes of @args is zeroed; @least is its size in the first version of the ABI.
 *
 * Returns 0; -EINVAL if it is smaller than @least; -E2BIG if it is larger than @known and
 * what @args has no place for is not 0; or -EFAULT.
 */
int flowfd_copy_args(void *args, size_t known, size_t least, const void __user *argp,
		     size_t size)
{
	if (size < least)
		return -EINVAL;
	return copy_struct_from_user(args, known, argp, size);
}

/*
 * Stores @known bytes, or as many as there is room for, in a structure of @size bytes of
 * the caller, and zeroes the rest. @least is its size in the first version of the ABI.
 * Returns 0; -EINVAL if it is smaller; or -EFAULT.
 */
long flowfd_copy_answer(void __user *argp, size_t size, const void *answer, size_t known,
			size_t least)
{
	if (size < least)
		return -EINVAL;
	known = min(size, known);
	if (copy_to_user(argp, answer, known) || clear_user(argp + known, size - known))
		return -EFAULT;
	return 0;
}

/*
 * Gives the caller a descriptor of a file that is ready for use; if this fails the file
 * is released. @flags: FLOWFD_KEEP_ON_EXEC or 0; other bits are ignored. Returns the
 * descriptor or a negative errno.
 */
int flowfd_install_file(struct file *file, u32 flags)
{
	int fd = get_unused_fd_flags(flags & FLOWFD_KEEP_ON_EXEC ? 0 : O_CLOEXEC);

	if (fd < 0)
		fput(file);
	else
		fd_install(fd, file);
	return fd;
}

static long answer_query(void __user *argp, size_t size)
{
	static const struct flowfd_query answer = {
		.abi_version = FLOWFD_ABI_VERSION,
		.token_rate_max = FLOWFD_TOKEN_RATE_MAX,
		.features = FLOWFD_FEATURE_MAXIMUM | FLOWFD_FEATURE_QOS |
			    FLOWFD_FEATURE_RING | FLOWFD_FEATURE_SETUP |
			    FLOWFD_FEATURE_POSTS | FLOWFD_FEATURE_FLOW |
			    FLOWFD_FEATURE_STATS | FLOWFD_FEATURE_BRIDGE |
			    FLOWFD_FEATURE_BALANCE | FLOWFD_FEATURE_SHARE |
			    (MAPPED_IS_POSSIBLE ? FLOWFD_FEATURE_MAPPED : 0),
	};

	return flowfd_copy_answer(argp, size, &answer, sizeof(answer),
				  FLOWFD_QUERY_SIZE_VER0);
}

/*
 * The ioctls of every descriptor. Creates nothing: a process that was given a counter or
 * a ring must not gain the right to create more.
 */
long flowfd_common_ioctl(unsigned int cmd, void __user *argp)
{
	switch (without_size(cmd)) {
	case without_size(FLOWFD_IOC_QUERY):
		return answer_query(argp, _IOC_SIZE(cmd));
	case without_size(FLOWFD_IOC_CREATE_COUNTER):
	case without_size(FLOWFD_IOC_CREATE_RING):
	case without_size(FLOWFD_IOC_BALANCE):
	case without_size(FLOWFD_IOC_OPEN):
		return -EPERM;
	default:
		return -ENOTTY;
	}
}
