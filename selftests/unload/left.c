// SPDX-License-Identifier: GPL-2.0-only
/* left WHAT: makes what is named, and exits. unload.sh removes the module right after. */
#include "../bridge_user.h"
#include "../bucket_watch.h"
#include "../ring_user.h"

#include <sys/inotify.h>
#include <sys/socket.h>

/* Counters whose next wakeup is deferred to a timer. */
static int leave_timers(void)
{
	for (int i = 0; i < 50; i++) {
		struct watched w;

		if (!watched_open(&w, 1, 1 + i * 20, EPOLLIN))
			return 1;
		add(w.fd, 1);
		add(w.fd, 1);
		if (i == 0 && !wakeup_is_deferred(w.fd))
			return 1;
	}
	return 0;
}

/* Counters with bridges, whose work items are busy or wait for room. */
static int leave_bridges(void)
{
	for (int i = 0; i < 50; i++) {
		int fd = open_counter(CREATED, 0, EFD_NONBLOCK);
		int in = eventfd(0, EFD_CLOEXEC | (i % 2 ? EFD_SEMAPHORE : 0));
		int out = eventfd(0, EFD_CLOEXEC);

		bool waits = i % 3 == 0;

		if ((waits && set_maximum(fd, 10)) || source(fd, in) ||
		    add(in, 100000) != 8 || (!waits && sink(fd, out)))
			return 1;
		add(fd, 1);
		if (i % 5 == 0)
			close(in);
		if (i % 7 == 0)
			close(out);
		if (i % 11 == 0)
			close(fd);
	}
	return 0;
}

/* Rings that watch files of every kind, some just closed and some just woken. */
static int leave_rings(void)
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

int main(int argc, char **argv)
{
	const char *what = argc == 2 ? argv[1] : "";

	if (!strcmp(what, "timers"))
		return leave_timers();
	if (!strcmp(what, "bridges"))
		return leave_bridges();
	return !strcmp(what, "rings") ? leave_rings() : 2;
}
