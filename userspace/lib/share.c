// SPDX-License-Identifier: MIT
/*
 * Passing counters to other processes: the descriptors of one, and one of descriptors,
 * which may come from anybody.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "doorbell.h"
#include "fallback.h"
#include "mapped.h"
#include "memory.h"
#include "words.h"

int flowfd_counter_export(const struct flowfd_counter *c, int fds[FLOWFD_EXPORT_MAX])
{
	int count = 0;

	if (c->doorbell && !c->roles)
		return -ENODEV;
	/* An eventfd: import could not tell what it is. */
	if (!c->doorbell && !(c->features & FLOWFD_HAS_MAXIMUM))
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

/* Others can change it at any time, so what was checked is what is returned. */
static int check_settings(const struct flowfd__settings_page *settings, size_t page,
			  uint32_t *doorbell)
{
	struct flowfd__settings_page copy = *settings;

	if (copy.header.magic != FLOWFD_COUNTER_MAGIC ||
	    copy.magic != FLOWFD__WORDS_MAGIC)
		return -ENOTTY;
	if (copy.header.version != FLOWFD_COUNTER_VERSION ||
	    copy.version != FLOWFD__WORDS_VERSION || copy.header.page_size != page ||
	    !(copy.doorbell & DOORBELL_USED) || copy.doorbell & ~DOORBELL_FLAGS)
		return -EPROTONOSUPPORT;
	*doorbell = copy.doorbell;
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

int flowfd_counter_import(struct flowfd_counter *c, const int *fds, unsigned int count)
{
	int ret;

	if (!count || count > FLOWFD_EXPORT_MAX)
		return -EINVAL;
	if (count == 2) {
		ret = check_eventfd(fds[0]);
		return ret ? ret : import_memory(c, fds[0], fds[1]);
	}
	ret = flowfd_counter_map(c, fds[0], FLOWFD__ROLES);
	return ret == -ENOTTY ? import_memory(c, fds[0], fds[0]) : ret;
}
