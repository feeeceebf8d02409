// SPDX-License-Identifier: MIT
/*
 * Passing counters to other processes: the descriptors of one, and one of descriptors,
 * which may come from anybody.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#ifndef STATX_TYPE /* musl before 1.2.5 */
#include <linux/stat.h>
#endif
#include <sys/syscall.h>
#include <unistd.h>

#include "doorbell.h"
#include "fallback.h"
#include "mapped.h"
#include "memory.h"
#include "sanitizer.h"
#include "words.h"

int flowfd_counter_export(const struct flowfd_counter *c, int fds[FLOWFD_EXPORT_MAX])
{
	int count = 0;

	if (c->doorbell && !c->roles)
		return -ENODEV;
	/* Import could not tell what it is. */
	if (flowfd__is_eventfd(c))
		return -EOPNOTSUPP;
	fds[count++] = c->fd;
	if (c->doorbell && c->memory != c->fd)
		fds[count++] = c->memory;
	return count;
}

#define PATH_SIZE 48

/* Not of /proc/self, which has no descriptors once the first thread has ended. */
static void path_of(char path[PATH_SIZE], const char *directory, int fd)
{
	size_t end = strlen(directory);

	memcpy(path, directory, end);
	for (int rest = fd; rest >= 10; rest /= 10)
		end++;
	path[end + 1] = '\0';
	for (int rest = fd; end >= strlen(directory); rest /= 10)
		path[end--] = (char)('0' + rest % 10);
}

/* It is read and written, so it must be nothing else, and must not block. */
static int check_eventfd(int fd)
{
	static const char name[] = "anon_inode:[eventfd]";
	char path[PATH_SIZE], link[sizeof(name)];
	int saved = errno, flags = fcntl(fd, F_GETFL);
	long length;

	if (flags < 0) {
		errno = saved;
		return -EBADF;
	}
	path_of(path, "/proc/thread-self/fd/", fd);
	length = readlink(path, link, sizeof(link));
	errno = saved;
	if (length != (long)strlen(name) || memcmp(link, name, (size_t)length))
		return -ENOTTY;
	return flags & O_NONBLOCK ? 0 : -ENOTTY;
}

enum {
	NORMAL = 0,
	UNKNOWN = 1, /* not told before Linux 6.5 */
};

/*
 * A read of a semaphore takes 1 of many, so it would stay readable for nothing. Locks of
 * the file come first in the text, and can be so many that it is not all read.
 */
static int check_semaphore(int fd)
{
	static const char name[] = "\neventfd-semaphore: ";
	char path[PATH_SIZE], text[1024];
	int saved = errno, info;
	const char *found = NULL;
	long length = 0;

	path_of(path, "/proc/thread-self/fdinfo/", fd);
	info = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (info >= 0) {
		length = syscall(SYS_read, info, text, sizeof(text) - 1);
		flowfd__stored(text, length);
		flowfd__close(info);
	}
	errno = saved;
	if (length > 0) {
		text[length] = '\0';
		found = strstr(text, name);
	}
	if (!found || !found[strlen(name)])
		return UNKNOWN;
	return found[strlen(name)] == '0' ? NORMAL : -ENOTTY;
}

/* Others can change it at any time, so what was checked is what is returned. */
static int check_settings(const struct flowfd__settings_page *settings, size_t page,
			  uint32_t *doorbell)
{
	struct flowfd__settings_page copy = *settings;
	uint32_t options = __atomic_load_n(&settings->doorbell, __ATOMIC_RELAXED);

	if (copy.header.magic != FLOWFD_COUNTER_MAGIC ||
	    copy.magic != FLOWFD__WORDS_MAGIC)
		return -ENOTTY;
	if (copy.header.version != FLOWFD_COUNTER_VERSION ||
	    copy.version != FLOWFD__WORDS_VERSION || copy.header.page_size != page ||
	    !(options & DOORBELL_USED) || options & ~DOORBELL_FLAGS)
		return -EPROTONOSUPPORT;
	*doorbell = options;
	return 0;
}

/* The first page is mapped for reading, as for its maker. */
static int map_memory(void **map, int memory, size_t page)
{
	int ret = flowfd__check_memfd(memory, FLOWFD__PAGES * page);

	if (!ret)
		ret = flowfd__map(map, FLOWFD__PAGES * page, PROT_READ | PROT_WRITE,
				  memory, 0);
	if (!ret)
		flowfd__protect(*map, page, PROT_READ);
	return ret;
}

static int import_memory(struct flowfd_counter *c, int fd, int memory)
{
	size_t page = sysconf(_SC_PAGESIZE);
	uint32_t doorbell = 0;
	void *map = NULL;
	int ret = map_memory(&map, memory, page);

	if (ret)
		return ret;
	ret = check_settings(map, page, &doorbell);
	if (!ret && !(doorbell & DOORBELL_NO_POLL) != (fd != memory))
		ret = -ENOTTY;
	if (ret)
		flowfd__unmap(map, FLOWFD__PAGES * page);
	else
		flowfd__fallback_init(c, fd, memory, map, doorbell);
	return ret;
}

static int import_pair(struct flowfd_counter *c, int event, int memory)
{
	int ret = check_eventfd(event), semaphore;
	struct flowfd_counter made;

	if (ret)
		return ret;
	semaphore = check_semaphore(event);
	if (semaphore < 0)
		return semaphore;
	ret = import_memory(&made, event, memory);
	if (ret)
		return ret;
	/* By reading and writing: not before all else is as it must be. */
	if (semaphore == UNKNOWN)
		ret = flowfd__doorbell_probe(&made);
	if (ret)
		flowfd__unmap(made.map, made.map_size);
	else
		*c = made;
	return ret;
}

/* Asks no server of a file system, which need not answer. */
static long file_status(int fd, struct statx *status)
{
	long ret = syscall(SYS_statx, fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
			   STATX_TYPE, status);

	flowfd__stored(status, ret ? 0 : (long)sizeof(*status));
	return ret;
}

/*
 * A counter of the module is no file of a file system, whose server could answer to ioctl(2)
 * or leave it unanswered.
 */
static int check_kind(int fd)
{
	static const char name[] = "anon_inode:";
	char path[PATH_SIZE], link[sizeof(name)];
	int saved = errno, ret = -ENOTTY;
	struct statx status;
	long length;

	path_of(path, "/proc/thread-self/fd/", fd);
	length = readlink(path, link, strlen(name));
	if (length == (long)strlen(name) && !memcmp(link, name, (size_t)length))
		ret = 0;
	else if (!file_status(fd, &status) && S_ISCHR(status.stx_mode))
		ret = 0;
	errno = saved;
	return ret;
}

static int import_one(struct flowfd_counter *c, int fd)
{
	int saved = errno, seals = fcntl(fd, F_GET_SEALS), ret;

	/* Only memory has seals. */
	if (seals >= 0)
		return import_memory(c, fd, fd);
	ret = errno == EBADF ? -EBADF : check_kind(fd);
	errno = saved;
	return ret ? ret : flowfd_counter_map(c, fd, FLOWFD__ROLES);
}

int flowfd_counter_import(struct flowfd_counter *c, const int *fds, unsigned int count)
{
	if (!count || count > FLOWFD_EXPORT_MAX)
		return -EINVAL;
	if (count == 2)
		return import_pair(c, fds[0], fds[1]);
	return import_one(c, fds[0]);
}
