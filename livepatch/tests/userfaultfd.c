// SPDX-License-Identifier: GPL-2.0-only
/*
 * Readers and pollers of a userfaultfd: no message is missed, whichever of them sleep
 * and however a read ends; and with the livepatch, one fault wakes one reader. The same
 * program runs before, with and after the livepatch.
 */
#include <kselftest_harness.h>

#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "uffd.h"

#define READERS 8
#define PAGES 256
#define FAULTS 64

static void set_nonblock(int fd, bool nonblock)
{
	int flags = fcntl(fd, F_GETFL);

	fcntl(fd, F_SETFL, nonblock ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}

FIXTURE(userfaultfd)
{
	struct area area;
};

FIXTURE_SETUP(userfaultfd)
{
	ASSERT_EQ(0, area_open(&self->area, PAGES, 0));
}

FIXTURE_TEARDOWN(userfaultfd)
{
	area_close(&self->area);
}

/* Each fault comes when all readers sleep, so that it could wake all of them. */
TEST_F(userfaultfd, one_fault_wakes_one_reader)
{
	struct reader readers[READERS];
	unsigned long served = 0;
	long sleeps = -READERS;	/* without the first of each */
	int i, page;

	readers_start(readers, READERS, &self->area);
	for (page = 0; page < FAULTS; page++) {
		EXPECT_EQ(1, self->area.memory[page * PAGE]);
		for (i = 0; i < READERS; i++)
			uffd_wait_until_asleep(&readers[i].tid, SYS_read);
	}
	readers_stop(readers, READERS);
	for (i = 0; i < READERS; i++) {
		served += readers[i].served;
		sleeps += readers[i].sleeps;
	}
	EXPECT_EQ(FAULTS, served);
	TH_LOG("%ld sleeps of %d readers for %d faults", sleeps, READERS, FAULTS);
	if (is_patched()) {
		EXPECT_LT(sleeps, FAULTS * 3 / 2);
	} else {
		EXPECT_GE(sleeps, FAULTS * READERS);
	}
}

struct poller {
	pthread_t thread;
	pid_t tid;
	int fd;
	int revents;
};

static void *poller_run(void *arg)
{
	struct poller *p = arg;
	struct pollfd pollfd = { .fd = p->fd, .events = POLLIN };

	__atomic_store_n(&p->tid, gettid(), __ATOMIC_RELEASE);
	if (poll(&pollfd, 1, -1) == 1)
		__atomic_store_n(&p->revents, pollfd.revents, __ATOMIC_RELEASE);
	return NULL;
}

static void pollers_start(struct poller *pollers, int n, int fd)
{
	int i;

	for (i = 0; i < n; i++) {
		pollers[i] = (struct poller){ .fd = fd };
		pthread_create(&pollers[i].thread, NULL, poller_run, &pollers[i]);
		uffd_wait_until_asleep(&pollers[i].tid, SYS_poll);
	}
}

/*
 * Pollers that came first are ahead of blocked readers in the queue. With the descriptor
 * blocking again, a poller that is woken reports POLLERR and a reader takes the fault; a
 * poller that is not woken sleeps on, and the harness ends the test.
 */
TEST_F(userfaultfd, pollers_are_woken_beside_readers)
{
	struct poller pollers[4];
	struct reader readers[READERS];
	int i;

	set_nonblock(self->area.fd, true);
	pollers_start(pollers, 4, self->area.fd);
	set_nonblock(self->area.fd, false);
	readers_start(readers, READERS, &self->area);
	EXPECT_EQ(0, faults_make(&self->area, 1, 1));
	for (i = 0; i < 4; i++) {
		pthread_join(pollers[i].thread, NULL);
		EXPECT_EQ(POLLERR, pollers[i].revents);
	}
	readers_stop(readers, READERS);
}

/* A process that reads once. Its exit status is 0, or the error. */
static pid_t reading_process(int fd, rlim_t files)
{
	struct rlimit limit = { files, files };
	struct uffd_msg message;
	pid_t pid = fork();

	if (pid)
		return pid;
	if (files && setrlimit(RLIMIT_NOFILE, &limit))
		_exit(255);
	if (read(fd, &message, sizeof(message)) == sizeof(message))
		_exit(message.event == UFFD_EVENT_FORK ? 0 : 254);
	_exit(errno);
}

static int exit_status(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ?
		WEXITSTATUS(status) : -1;
}

/*
 * The first reader has no descriptor left, so that it cannot be given a fork event. The
 * event goes back to its queue, for the next reader. Without the livepatch, that reader
 * can look while the event is off the queue, and sleep on.
 */
TEST(failed_fork_event_wakes_the_next_reader)
{
	pid_t full, free_one, child;
	struct area area = { .fd = -1 };

	if (!is_patched())
		SKIP(return, "without the livepatch the event can be missed");
	ASSERT_EQ(0, area_open(&area, PAGES, UFFD_FEATURE_EVENT_FORK));
	/* The forks of the readers must not be events. */
	ASSERT_EQ(0, area_unregister(&area));
	full = reading_process(area.fd, area.fd + 1);
	uffd_wait_until_asleep(&full, SYS_read);
	free_one = reading_process(area.fd, 0);
	uffd_wait_until_asleep(&free_one, SYS_read);
	ASSERT_EQ(0, area_register(&area));

	child = fork();
	if (!child)
		_exit(0);
	EXPECT_EQ(0, exit_status(child));
	EXPECT_EQ(EMFILE, exit_status(full));
	EXPECT_EQ(0, exit_status(free_one));
	area_close(&area);
}

TEST_HARNESS_MAIN
