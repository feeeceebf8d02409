// SPDX-License-Identifier: MIT
/*
 * Reads /proc/thread-self/fd and fdinfo with bare system calls and small buffers:
 * readdir(3) and stdio allocate memory, and the shim can interrupt an allocation of
 * the program. /proc/self would be the main thread, which can have ended.
 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "preload/fdinfo.h"
#include "preload/next.h"

#define DIRECTORY "/proc/thread-self/"

/* A file that is read by lines; lines longer than @text come in parts. */
struct reader {
	int fd;
	size_t begin;
	size_t end;
	char text[512];
};

static bool reader_open(struct reader *reader, int fd)
{
	char path[sizeof(DIRECTORY "fdinfo/") + 12] = DIRECTORY "fdinfo/";
	char *last = path + sizeof(path) - 1;
	char *name = path + strlen(path);

	*last = '\0';
	do {
		*--last = '0' + fd % 10;
		fd /= 10;
	} while (fd);
	memmove(name, last, strlen(last) + 1);
	reader->fd = next_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0);
	reader->begin = 0;
	reader->end = 0;
	return reader->fd >= 0;
}

static void reader_close(const struct reader *reader)
{
	next_call(SYS_close, reader->fd, 0, 0, 0);
}

/* Returns false at the end of the file. */
static bool reader_fill(struct reader *reader)
{
	size_t rest = reader->end - reader->begin;
	long length;

	memmove(reader->text, reader->text + reader->begin, rest);
	reader->begin = 0;
	reader->end = rest;
	length = next_call(SYS_read, reader->fd, (long)(reader->text + rest),
			   sizeof(reader->text) - 1 - rest, 0);
	if (length <= 0)
		return false;
	reader->end += length;
	return true;
}

/* Returns the next line, without its end, or NULL. */
static const char *reader_line(struct reader *reader)
{
	for (;;) {
		char *line = reader->text + reader->begin;
		size_t length = reader->end - reader->begin;
		char *end = memchr(line, '\n', length);

		if (!end && length == sizeof(reader->text) - 1)
			end = line + length;
		if (end) {
			*end = '\0';
			reader->begin = end + 1 - reader->text;
			if (reader->begin > reader->end)
				reader->begin = reader->end;
			return line;
		}
		if (!reader_fill(reader))
			return NULL;
	}
}

/* Finds @name and the number behind it in @line. */
static bool take(const char *line, const char *name, unsigned int base, uint64_t *number)
{
	const char *text = strstr(line, name);

	if (!text)
		return false;
	text += strlen(name);
	text += strspn(text, " \t");
	for (*number = 0;; text++) {
		unsigned int digit = *text >= 'a' ? *text - 'a' + 10U : *text - '0' + 0U;

		if (digit >= base)
			return true;
		*number = *number * base + digit;
	}
}

bool event_state(int fd, struct event_state *state)
{
	struct reader reader;
	const char *line;
	uint64_t semaphore = 0;
	bool found = false;

	if (fd < 0 || !reader_open(&reader, fd))
		return false;
	memset(state, 0, sizeof(*state));
	while ((line = reader_line(&reader))) {
		found |= take(line, "eventfd-count:", 16, &state->count);
		take(line, "eventfd-id:", 10, &state->id);
		take(line, "eventfd-semaphore:", 10, &semaphore);
		state->counter |=
			take(line, "flowfd-references:", 10, &state->references);
	}
	state->semaphore = semaphore;
	reader_close(&reader);
	return found;
}

bool fdinfo_unread(int fd)
{
	struct reader reader;

	if (next_call(SYS_fcntl, fd, F_GETFD, 0, 0) < 0)
		return false;
	if (!reader_open(&reader, fd))
		return true;
	reader_close(&reader);
	return false;
}

static bool watches_of(struct watch *watch, int fd, watch_found found,
		       const void *argument)
{
	struct reader reader;
	const char *line;
	uint64_t number;
	bool ok = true;

	if (!reader_open(&reader, watch->watcher))
		return false;
	watch->again = false;
	while (ok && (line = reader_line(&reader))) {
		if (!take(line, "tfd:", 10, &number) || (int)number != fd ||
		    !take(line, "events:", 16, &number))
			continue;
		watch->events = number;
		watch->inode = 0;
		watch->device = 0;
		take(line, "ino:", 16, &watch->inode);
		take(line, "sdev:", 16, &watch->device);
		ok = take(line, "data:", 16, &watch->data) && found(fd, watch, argument);
		watch->again = true;
	}
	reader_close(&reader);
	return ok;
}

/* Is descriptor @name, a name in /proc, an epoll or a ring? */
static bool is_watcher(int directory, const char *name, struct watch *watch)
{
	static const char epoll[] = "anon_inode:[eventpoll]";
	static const char ring[] = "anon_inode:[flowfd-ring]";
	char text[sizeof(ring)];
	long length = next_call(SYS_readlinkat, directory, (long)name, (long)text,
				sizeof(text));
	uint64_t number = 0;

	watch->ring = length == sizeof(ring) - 1 && !memcmp(text, ring, length);
	if (!watch->ring &&
	    !(length == sizeof(epoll) - 1 && !memcmp(text, epoll, length)))
		return false;
	take(name, "", 10, &number); /* a name here is a number */
	watch->watcher = number;
	return true;
}

/* Is the watch of a watcher @name, a name in /proc, to be found? */
static bool look_at(int directory, const char *name, int fd, watch_found found,
		    const void *argument)
{
	struct watch watch;

	if (!is_watcher(directory, name, &watch))
		return true;
	return watches_of(&watch, fd, found, argument);
}

bool watch_each(int fd, watch_found found, const void *argument)
{
	_Alignas(struct dirent64) char names[1024];
	bool ok = true;
	long length = 0;
	int directory = next_call(SYS_openat, AT_FDCWD, (long)(DIRECTORY "fd"),
				  O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

	if (directory < 0)
		return false;
	while (ok && (length = next_call(SYS_getdents64, directory, (long)names,
					 sizeof(names), 0)) > 0) {
		for (long i = 0; ok && i < length;) {
			const struct dirent64 *entry = (void *)(names + i);

			ok = look_at(directory, entry->d_name, fd, found, argument);
			i += entry->d_reclen;
		}
	}
	next_call(SYS_close, directory, 0, 0, 0);
	return ok && !length;
}
