// SPDX-License-Identifier: GPL-2.0-only
/*
 * The counters and rings that one process has open, from its fdinfo. Only that of flowfd's
 * own files is read, as that of others can block: of an epoll, for instance, while it
 * polls a file of a server in user space.
 */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <flowfd.h>

#include "flowfdctl.h"

/*
 * Any file can have the name of the device: its number is certain. It is in the inode: with
 * AT_STATX_DONT_SYNC file systems need not ask a server for it.
 */
static dev_t device_of(int directory, const char *name)
{
	struct statx stx;

	if (statx(directory, name, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE,
		  &stx) ||
	    !S_ISCHR(stx.stx_mode))
		return 0;
	return makedev(stx.stx_rdev_major, stx.stx_rdev_minor);
}

/* Files that ioctl(2) made have a name and no path. */
static bool is_of_flowfd(int links, const char *number, dev_t device)
{
	static const char made[] = "anon_inode:[flowfd";
	ssize_t length;
	char link[64];

	length = readlinkat(links, number, link, sizeof(link) - 1);
	link[length > 0 ? length : 0] = '\0';
	if (!strncmp(link, made, strlen(made)))
		return true;
	/* A path can be longer than readlink(2) allows, and begins with "(" elsewhere. */
	return device && (*link == '/' || *link == '(' || !*link) &&
	       device_of(links, number) == device;
}

static void read_command(int process, char command[COMMAND_SIZE])
{
	int fd = openat(process, "comm", O_RDONLY | O_CLOEXEC);
	ssize_t length = read(fd, command, COMMAND_SIZE);

	/* A name can contain newlines; the last byte is one that ends it. */
	command[length > 0 ? length - 1 : 0] = '\0';
	close(fd);
}

static void read_descriptor(struct parser *parser, int process, const char *number)
{
	char name[32], *line = NULL;
	size_t size = 0;
	ssize_t length;
	FILE *file;
	int fd;

	snprintf(name, sizeof(name), "fdinfo/%.16s", number);
	fd = openat(process, name, O_RDONLY | O_CLOEXEC);
	/* It was closed meanwhile. */
	if (fd < 0 && errno == ENOENT)
		return;
	file = fd < 0 ? NULL : fdopen(fd, "r");
	if (!file)
		err(EXIT_FAILURE, "%s", name);
	while ((length = getline(&line, &size, file)) > 0) {
		line[length - 1] = '\0';
		parser_line(parser, line);
	}
	free(line);
	fclose(file);
}

static void fail(pid_t pid)
{
	if (errno == EACCES || errno == EPERM)
		errx(EXIT_FAILURE,
		     "this user may not inspect process %d: that needs root, or the"
		     " permission to trace it (ptrace(2))",
		     pid);
	if (errno == ENOENT || errno == ESRCH)
		errx(EXIT_FAILURE, "there is no process %d", pid);
	err(EXIT_FAILURE, "process %d", pid);
}

static int compare(const void *left, const void *right)
{
	const struct object *a = left, *b = right;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return a->number[FD] < b->number[FD] ? -1 : 1;
}

/**
 * process_list - read the counters and rings of a process, one for each descriptor
 * @list: is filled in
 * @pid: process; if that is not possible, the program ends
 */
void process_list(struct list *list, pid_t pid)
{
	struct parser parser = { .list = list };
	dev_t device = device_of(AT_FDCWD, FLOWFD_DEVICE);
	char path[32], command[COMMAND_SIZE];
	struct dirent *entry;
	int process, links;
	DIR *directory;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	process = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	links = process < 0 ? -1 : openat(process, "fd", O_RDONLY | O_CLOEXEC);
	directory = links < 0 ? NULL : fdopendir(links);
	if (!directory)
		fail(pid);
	read_command(process, command);
	list->of_process = true;
	while (errno = 0, (entry = readdir(directory))) {
		struct object *object;

		if (*entry->d_name == '.' || !is_of_flowfd(links, entry->d_name, device))
			continue;
		read_descriptor(&parser, process, entry->d_name);
		object = parser_end(&parser);
		if (!object)
			continue;
		object_set(object, PID, pid);
		object_set(object, FD, atoi(entry->d_name));
		memcpy(object->command, command, sizeof(command));
	}
	if (errno)
		fail(pid);
	closedir(directory);
	close(process);
	if (list->count)
		qsort(list->object, list->count, sizeof(*list->object), compare);
}
