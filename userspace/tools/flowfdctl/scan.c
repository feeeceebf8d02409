// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every descriptor of flowfd that /proc shows. Processes and descriptors that go
 * meanwhile are as if they had never been; whatever else goes wrong ends the
 * program, so that a list is never short without a word.
 */
#include <ctype.h>
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flowfdctl.h"

#define PROC "/proc"

/* A kernel thread has no descriptors; see proc(5), flags. */
#define PF_KTHREAD 0x00200000

/* The text of a file, which grows as needed and is used for all of them. */
static struct {
	char *text;
	size_t size;
} buffer;

/**
 * struct process - a process that is being looked at
 * @pid: its number
 * @fd: its directory
 * @hidden: something of it may not be read
 */
struct process {
	const char *pid;
	int fd;
	bool hidden;
};

/* What can go wrong with a process whose @name was to be read; errno says what. */
static void failed(struct process *process, const char *name)
{
	if (errno == EACCES || errno == EPERM)
		process->hidden = true;
	else if (errno != ENOENT && errno != ESRCH)
		err(EXIT_FAILURE, PROC "/%s%s%s", process->pid,
		    *name ? "/" : "", name);
}

static bool read_all(int fd)
{
	size_t length = 0;
	ssize_t part;

	do {
		if (buffer.size - length < 2) {
			buffer.size = buffer.size ? 2 * buffer.size : 4096;
			buffer.text = realloc(buffer.text, buffer.size);
			if (!buffer.text)
				err(EXIT_FAILURE, "buffer");
		}
		part = read(fd, buffer.text + length, buffer.size - length - 1);
		if (part < 0)
			return false;
		length += part;
	} while (part);
	buffer.text[length] = '\0';
	return true;
}

/* Reads a file of a process into the buffer; false if that was not possible. */
static bool read_file(struct process *process, const char *name)
{
	int fd = openat(process->fd, name, O_RDONLY | O_CLOEXEC);
	bool done = fd >= 0 && read_all(fd);

	if (!done)
		failed(process, name);
	if (fd >= 0)
		close(fd);
	return done;
}

/**
 * link_may_be_flowfd - choose the files whose fdinfo is worth reading
 * @link: what /proc/PID/fd/FD points to
 *
 * A counter that was opened has the name of the device, whatever that is in the
 * process' own tree. All else that flowfd makes has no path.
 */
bool link_may_be_flowfd(const char *link)
{
	static const char created[] = "anon_inode:[flowfd";

	return *link == '/' || *link == '(' ||
	       !strncmp(link, created, strlen(created));
}

static struct descriptor *scan_add(struct scan *scan)
{
	if (scan->count == scan->capacity) {
		scan->capacity = scan->capacity ? 2 * scan->capacity : 64;
		scan->descriptor = reallocarray(scan->descriptor,
						scan->capacity,
						sizeof(*scan->descriptor));
		if (!scan->descriptor)
			err(EXIT_FAILURE, "descriptors");
	}
	return &scan->descriptor[scan->count++];
}

static void scan_descriptor(struct scan *scan, struct process *process,
			    int links, const char *number)
{
	struct descriptor *descriptor;
	struct object object;
	char name[32], link[64];
	ssize_t length;

	length = readlinkat(links, number, link, sizeof(link) - 1);
	if (length < 0) {
		failed(process, "fd");
		return;
	}
	link[length] = '\0';
	if (!link_may_be_flowfd(link))
		return;
	snprintf(name, sizeof(name), "fdinfo/%.16s", number);
	if (!read_file(process, name))
		return;
	switch (fdinfo_parse(buffer.text, &object)) {
	case FDINFO_OTHER:
		return;
	case FDINFO_UNKNOWN:
		scan->unknown++;
		return;
	case FDINFO_OBJECT:
		break;
	}
	descriptor = scan_add(scan);
	descriptor->pid = atoi(process->pid);
	descriptor->fd = atoi(number);
	descriptor->object = object;
}

/* The command of the descriptors of a process, which are those from @first on. */
static void name_process(struct scan *scan, size_t first,
			 struct process *process)
{
	size_t i, length;

	if (first == scan->count)
		return;
	if (!read_file(process, "comm")) {
		while (scan->count > first)
			object_free(&scan->descriptor[--scan->count].object);
		return;
	}
	/* A name can have newlines of its own: only the last is not of it. */
	length = strlen(buffer.text);
	if (length)
		buffer.text[length - 1] = '\0';
	for (i = first; i < scan->count; i++)
		snprintf(scan->descriptor[i].command, COMMAND_SIZE, "%s",
			 buffer.text);
}

/* Whether a process that hides its descriptors could have any. */
static bool may_have_descriptors(struct process *process)
{
	unsigned int flags;
	const char *rest;
	char state;

	if (!read_file(process, "stat"))
		return false;
	/* The name before can have anything in it, parentheses too. */
	rest = strrchr(buffer.text, ')');
	if (!rest || sscanf(rest, ") %c %*d %*d %*d %*d %*d %u", &state,
			    &flags) != 2)
		return true;
	return state != 'Z' && !(flags & PF_KTHREAD);
}

static DIR *open_links(struct process *process)
{
	int fd = openat(process->fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *links = NULL;

	/* fdopendir() looks at the directory, which may have gone by then. */
	if (fd >= 0)
		links = fdopendir(fd);
	if (!links) {
		failed(process, "fd");
		if (fd >= 0)
			close(fd);
	}
	return links;
}

/* The next entry that is a number; NULL: no more, or the process has gone. */
static const char *next_number(DIR *directory)
{
	const struct dirent *entry;

	do {
		errno = 0;
		entry = readdir(directory);
	} while (entry && !isdigit((unsigned char)*entry->d_name));
	return entry ? entry->d_name : NULL;
}

static void scan_descriptors(struct scan *scan, struct process *process)
{
	DIR *links = open_links(process);
	size_t first = scan->count;
	const char *number;

	if (!links)
		return;
	while ((number = next_number(links)))
		scan_descriptor(scan, process, dirfd(links), number);
	if (errno)
		failed(process, "fd");
	closedir(links);
	name_process(scan, first, process);
}

static void scan_process(struct scan *scan, int proc, const char *pid)
{
	struct process process = {.pid = pid};

	/* All is read by way of this: not of a later process of that number. */
	process.fd = openat(proc, pid, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (process.fd < 0) {
		failed(&process, "");
		return;
	}
	scan_descriptors(scan, &process);
	if (process.hidden && may_have_descriptors(&process))
		scan->hidden++;
	close(process.fd);
}

static int compare(const void *left, const void *right)
{
	const struct descriptor *a = left, *b = right;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return (a->fd > b->fd) - (a->fd < b->fd);
}

/* scan_all - look at every process; to be freed by scan_free() */
void scan_all(struct scan *scan)
{
	DIR *proc = opendir(PROC);
	const char *pid;

	*scan = (struct scan){0};
	if (!proc)
		err(EXIT_FAILURE, PROC);
	while ((pid = next_number(proc)))
		scan_process(scan, dirfd(proc), pid);
	if (errno)
		err(EXIT_FAILURE, PROC);
	closedir(proc);
	if (scan->count)
		qsort(scan->descriptor, scan->count, sizeof(*scan->descriptor),
		      compare);
}

void scan_free(struct scan *scan)
{
	size_t i;

	for (i = 0; i < scan->count; i++)
		object_free(&scan->descriptor[i].object);
	free(scan->descriptor);
	*scan = (struct scan){0};
}

/* What is not in a list, in a line each. */
void scan_report(const struct scan *scan)
{
	if (scan->hidden)
		warnx("%u %s: this user may not look into them", scan->hidden,
		      scan->hidden == 1 ? "process is not shown" :
					  "processes are not shown");
	if (scan->unknown)
		warnx("%u %s: flowfdctl " FLOWFD_VERSION
		      " does not fit the loaded module",
		      scan->unknown,
		      scan->unknown == 1 ? "descriptor is not shown" :
					   "descriptors are not shown");
}
