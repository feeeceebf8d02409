// SPDX-License-Identifier: GPL-2.0-only
/*
 * The counters and rings that one process has open, from its fdinfo. Only that of flowfd's
 * own files is read, as that of others can block: of an epoll, for instance, while it
 * polls a file of a server in user space. On kernels without a fix that Debian's have,
 * the rest can wait, too: readlink(2) does for a process that is in execve(2).
 */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowfdctl.h"

/*
 * Any file can have the name of the device, and /dev can be without it: the kernel tells
 * its major number, which is flowfd's alone. 0: the module is not loaded.
 */
static unsigned int flowfd_major(void)
{
	FILE *file = fopen("/proc/devices", "re");
	unsigned int number, found = 0;
	char line[128], name[16];

	/* The mount of /proc shows processes alone: then made files are found by name. */
	if (!file && errno == ENOENT)
		return 0;
	if (!file)
		err(EXIT_FAILURE, "/proc/devices");
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%u %15s", &number, name) == 2 &&
		    !strcmp(name, "flowfd"))
			found = number;
	}
	fclose(file);
	return found;
}

/* It is in the inode: with AT_STATX_DONT_SYNC file systems ask no server for it. */
static bool has_major(int links, const char *number, unsigned int major)
{
	struct statx stx;

	return statx(links, number, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE,
		     &stx) == 0 &&
	       S_ISCHR(stx.stx_mode) && stx.stx_rdev_major == major;
}

/* Files that ioctl(2) made have a name and no path. */
static bool is_of_flowfd(int links, const char *number, unsigned int device)
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
	       has_major(links, number, device);
}

static void read_command(int process, char command[COMMAND_SIZE])
{
	int fd = openat(process, "comm", O_RDONLY | O_CLOEXEC);
	ssize_t length = read(fd, command, COMMAND_SIZE);

	/* A name can contain newlines; the last byte is one that ends it. */
	command[length > 0 ? length - 1 : 0] = '\0';
	close(fd);
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

static void read_descriptor(struct parser *parser, int thread, const char *number,
			    pid_t pid)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "fdinfo/%.16s", number);
	fd = openat(thread, name, O_RDONLY | O_CLOEXEC);
	/* Otherwise it was closed meanwhile. */
	if ((fd < 0 || !parser_read(parser, fd)) && errno != ENOENT)
		fail(pid);
}

static int compare(const void *left, const void *right)
{
	const struct object *a = left, *b = right;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return a->number[FD] < b->number[FD] ? -1 : 1;
}

/*
 * Reads the descriptors that a thread shows; returns whether there are any, of any file.
 * A main thread that has ended before others shows none, and is root's.
 */
static bool read_thread(struct parser *parser, int thread, unsigned int device, pid_t pid)
{
	int links = openat(thread, "fd", O_RDONLY | O_CLOEXEC);
	DIR *directory = links < 0 ? NULL : fdopendir(links);
	struct dirent *entry;
	bool any = false;

	if (!directory) {
		if (errno != ENOENT && errno != EACCES)
			fail(pid);
		return false;
	}
	while (errno = 0, (entry = readdir(directory))) {
		struct object *object;

		if (*entry->d_name == '.')
			continue;
		any = true;
		if (!is_of_flowfd(links, entry->d_name, device))
			continue;
		read_descriptor(parser, thread, entry->d_name, pid);
		object = parser_end(parser);
		if (object)
			object_set(object, FD, atoi(entry->d_name));
	}
	if (errno && (any || errno != ENOENT))
		fail(pid);
	closedir(directory);
	return any;
}

/* Reads those of the first thread that shows any. */
static void read_threads(struct parser *parser, int process, unsigned int device,
			 pid_t pid)
{
	int tasks = openat(process, "task", O_RDONLY | O_CLOEXEC);
	DIR *directory = tasks < 0 ? NULL : fdopendir(tasks);
	struct dirent *entry;
	bool any = false, refused = false;

	if (!directory)
		fail(pid);
	while (errno = 0, !any && (entry = readdir(directory))) {
		int thread;

		if (*entry->d_name == '.')
			continue;
		thread = openat(tasks, entry->d_name, O_PATH | O_CLOEXEC);
		/* It has ended meanwhile. */
		if (thread < 0 && errno == ENOENT)
			continue;
		if (thread < 0)
			fail(pid);
		errno = 0;
		any = read_thread(parser, thread, device, pid);
		refused = refused || errno == EACCES;
		close(thread);
	}
	if (!errno && !any && refused)
		errno = EACCES;
	if (errno)
		fail(pid);
	closedir(directory);
}

/**
 * process_list - read the counters and rings of a process, one for each descriptor
 * @list: is filled in
 * @pid: process; if that is not possible, the program ends
 */
void process_list(struct list *list, pid_t pid)
{
	struct parser parser = { .list = list };
	unsigned int device = flowfd_major();
	char path[32], command[COMMAND_SIZE];
	int process;
	size_t i;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	process = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (process < 0)
		fail(pid);
	read_command(process, command);
	list->of_process = true;
	read_threads(&parser, process, device, pid);
	close(process);
	for (i = 0; i < list->count; i++) {
		object_set(&list->object[i], PID, pid);
		memcpy(list->object[i].command, command, sizeof(command));
	}
	if (list->count)
		qsort(list->object, list->count, sizeof(*list->object), compare);
}
