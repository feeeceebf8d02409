// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes eventfds and prints a line for each: descriptor, its name in /proc, the maximum
 * in fdinfo, and burst and rate of its bucket ("-": none). Test scripts run it with and
 * without flowfd-run. Each argument is a way to make one:
 *   call[=INITIAL]       eventfd(INITIAL, 0)
 *   semaphore[=INITIAL]  eventfd(INITIAL, EFD_SEMAPHORE)
 *   library[=INITIAL]    eventfd(INITIAL, 0), called by a shared library
 *   fork                 a child continues with the rest, the parent waits
 *   clearenv             removes the environment
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/flowfd.h>

#include "tests/programs/maker.h"

static void print_maximum(int fd)
{
	char maximum[64] = "-";
	char path[64];
	char line[256];
	FILE *fdinfo;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	fdinfo = fopen(path, "r");
	while (fdinfo && fgets(line, sizeof(line), fdinfo))
		sscanf(line, "eventfd-maximum: %63s", maximum);
	if (fdinfo)
		fclose(fdinfo);
	printf(" %s", maximum);
}

static void print_bucket(int fd)
{
	struct eventfd_qos qos;

	if (ioctl(fd, EFD_IOC_GET_QOS, &qos) == 0 && qos.token_rate)
		printf(" %u/%u\n", qos.token_capacity, qos.token_rate);
	else
		printf(" -\n");
}

static void describe(int fd)
{
	char path[64];
	char line[256];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	length = readlink(path, line, sizeof(line) - 1);
	if (length < 0) {
		perror(path);
		exit(EXIT_FAILURE);
	}
	line[length] = '\0';
	printf("%d %s", fd, line);
	print_maximum(fd);
	print_bucket(fd);
}

static int make(const char *how, unsigned int initial)
{
	if (strncmp(how, "call", 4) == 0)
		return eventfd(initial, 0);
	if (strncmp(how, "semaphore", 9) == 0)
		return eventfd(initial, EFD_SEMAPHORE);
	if (strncmp(how, "library", 7) == 0)
		return maker_eventfd(initial);
	fprintf(stderr, "eventfds: %s: unknown way\n", how);
	exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i < argc; i++) {
		const char *initial = strchr(argv[i], '=');
		int status = 0;
		int fd;

		if (strcmp(argv[i], "fork") == 0) {
			if (fork() > 0) {
				wait(&status);
				return WEXITSTATUS(status);
			}
			continue;
		}
		if (strcmp(argv[i], "clearenv") == 0) {
			clearenv();
			continue;
		}
		fd = make(argv[i],
			  initial ? strtoul(initial + 1, NULL, 10) : 0);
		if (fd < 0) {
			perror(argv[i]);
			return EXIT_FAILURE;
		}
		describe(fd);
	}
	return EXIT_SUCCESS;
}
