// SPDX-License-Identifier: GPL-2.0-only
/* Reads small files of /proc into memory of a fixed size. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "look.h"

/**
 * text_read_on - append to a string from a file, up to its end or that of the memory
 * @fd: file
 * @text: string; the file is appended to it
 * @size: of the memory at @text, in bytes
 *
 * Returns false and sets errno on failure.
 */
bool text_read_on(int fd, char *text, size_t size)
{
	size_t length = strlen(text);
	ssize_t part = 1;

	for (; part && length < size - 1; length += (size_t)part) {
		part = read(fd, text + length, size - 1 - length);
		if (part < 0)
			return false;
		text[length + (size_t)part] = '\0';
	}
	return true;
}

/* file_read - read the beginning of a file; see text_read_on() */
bool file_read(int directory, const char *name, char *text, size_t size)
{
	int fd = openat(directory, name, O_RDONLY | O_CLOEXEC), error;
	bool done;

	if (fd < 0)
		return false;
	*text = '\0';
	done = text_read_on(fd, text, size);
	error = errno;
	close(fd);
	errno = error;
	return done;
}
