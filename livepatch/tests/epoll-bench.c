// SPDX-License-Identifier: GPL-2.0-only
/*
 * epoll-bench PROCESSES ROUNDS: each process opens a socket, adds it to its own epoll
 * and closes it, so many times; prints milliseconds. The idea is that of "epoll:
 * optimize epmutex in ep_free and eventpoll_release_file" (2019).
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

static bool open_add_close(long rounds)
{
	struct epoll_event event = { .events = EPOLLIN };
	int ep = epoll_create1(EPOLL_CLOEXEC);

	for (long i = 0; i < rounds; i++) {
		int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

		if (fd < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event))
			return false;
		close(fd);
	}
	return true;
}

int main(int argc, char **argv)
{
	int processes = argc == 3 ? atoi(argv[1]) : 0, status;
	long rounds = argc == 3 ? atol(argv[2]) : 0;
	int begin[2];
	bool wrong = false;
	double start;

	if (processes < 1 || rounds < 1) {
		fprintf(stderr, "usage: epoll-bench PROCESSES ROUNDS\n");
		return 2;
	}
	/* They begin when the last write end is closed. */
	if (pipe(begin))
		return 1;
	for (int i = 0; i < processes; i++) {
		if (fork() == 0) {
			char byte;

			close(begin[1]);
			(void)!read(begin[0], &byte, 1);
			_exit(!open_add_close(rounds));
		}
	}
	start = now_ms(CLOCK_MONOTONIC);
	close(begin[1]);
	while (wait(&status) > 0)
		wrong |= status != 0;
	printf("%.0f ms,\n", now_ms(CLOCK_MONOTONIC) - start);
	return wrong;
}
