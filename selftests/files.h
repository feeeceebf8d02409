/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Files for tests that take more than one call to make: named pipes, terminals.
 * Sockets are in sockets.h.
 */
#ifndef FILES_H
#define FILES_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
#include <sys/stat.h>

#define FIFO_NAME_SIZE 20

/* Stores the name of a new named pipe; the caller opens and unlinks it. */
static inline bool fifo_make(char name[FIFO_NAME_SIZE])
{
	strcpy(name, "/tmp/fifo-XXXXXX");
	return mkdtemp(name) && !rmdir(name) && !mkfifo(name, 0600);
}

/* Both sides of a terminal in raw mode; @slave_flags: of open(2), for the slave. */
static inline bool terminal_open(int *master, int *slave, int slave_flags)
{
	struct termios t;

	*master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (*master < 0 || grantpt(*master) || unlockpt(*master))
		return false;
	*slave = open(ptsname(*master),
		      O_RDWR | O_NOCTTY | O_CLOEXEC | slave_flags);
	if (*slave < 0 || tcgetattr(*slave, &t))
		return false;
	cfmakeraw(&t);
	return !tcsetattr(*slave, TCSANOW, &t);
}

#endif /* FILES_H */
