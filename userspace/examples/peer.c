// SPDX-License-Identifier: MIT
/*
 * Signals in memory between two processes, without a system call while both are busy: the
 * consumer polls when there is nothing. It learns that the producer has died from a socket
 * whose other end only the producer has. Runs without the module, too.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <flowfd.h>

#define ITEMS 1000

static void check(const char *what, int result)
{
	if (result >= 0)
		return;
	fprintf(stderr, "peer: %s: %s\n", what, flowfd_strerror(result));
	exit(EXIT_FAILURE);
}

/* Dies as it works, and tells nobody. */
static void produce(const struct flowfd_counter *counter)
{
	for (int item = 0; item < ITEMS; item++)
		check("add", flowfd_add(counter, 1));
	kill(getpid(), SIGKILL);
}

int main(void)
{
	const struct flowfd_create_counter settings = { .maximum = 100 };
	struct flowfd_counter counter;
	struct pollfd polled[2];
	uint64_t count, sum = 0;
	int ends[2], error;

	/* The parent alone takes, and before it polls, until there is nothing. */
	error = flowfd_counter_open(&counter, &settings, sizeof(settings),
				    FLOWFD_FALLBACK | FLOWFD_ONE_CONSUMER);
	check("open", error);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		check("socketpair", -errno);
	switch (fork()) {
	case -1:
		check("fork", -errno);
		break;
	case 0:
		close(ends[0]);
		produce(&counter);
	}
	/* Now the producer alone has the other end. */
	close(ends[1]);
	polled[0] = (struct pollfd){ .fd = counter.fd, .events = POLLIN };
	polled[1] = (struct pollfd){ .fd = ends[0], .events = POLLIN };
	for (;;) {
		/* Also when the producer is gone: it may have added, and woken nobody. */
		while ((error = flowfd_try_take(&counter, &count)) == 0)
			sum += count;
		if (error != -EAGAIN)
			check("take", error);
		if (polled[1].revents)
			break;
		if (poll(polled, 2, -1) < 0 && errno != EINTR)
			check("poll", -errno);
	}
	printf("%" PRIu64 " items, then the producer was gone\n", sum);
	flowfd_counter_close(&counter);
	wait(NULL);
	return EXIT_SUCCESS;
}
