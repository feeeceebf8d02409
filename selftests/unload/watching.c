// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes rings that watch files of every kind, some just closed and some just woken, and
 * exits. unload.sh removes the module right after.
 */
#include "../ring_user.h"

#include <sys/inotify.h>
#include <sys/socket.h>

int main(void)
{
	for (int i = 0; i < 50; i++) {
		int notify = inotify_init1(IN_CLOEXEC);
		int ends[2], ways[2];
		struct user_ring ring;
		int counter = open_counter(CREATED, 0, 0);
		int event = eventfd(0, EFD_CLOEXEC);

		if (pipe(ways) || ring_open(&ring, 16) ||
		    socketpair(AF_UNIX, SOCK_STREAM, 0, ends) ||
		    inotify_add_watch(notify, "/tmp", IN_OPEN) < 0)
			return 1;
		if (ring_add(&ring, ends[0], EPOLLIN, 1) < 0 ||
		    ring_add(&ring, ways[0], EPOLLIN, 1) < 0 ||
		    ring_add(&ring, counter, EPOLLIN, 1) < 0 ||
		    ring_add(&ring, event, EPOLLIN, 1) < 0 ||
		    ring_add(&ring, notify, EPOLLIN, 1) < 0)
			return 1;
		add(event, 1);
		add(counter, 1);
		close(open("/tmp", O_RDONLY));
		close(ends[i % 2]);
		close(ways[i % 2]);
		if (i % 3 == 0)
			close(notify);
	}
	return 0;
}
