// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffers of a userfaultfd's readers: a message that cannot be copied to one stays
 * for the next reader (without the livepatch it is lost), and a buffer whose pages
 * are not present yet is as good as any.
 */
#include <kselftest_harness.h>

#include <sys/resource.h>
#include <sys/wait.h>

#include "uffd.h"

#define PAGES 16

static const size_t size = sizeof(struct uffd_msg);
static void *const bad_buffer = (void *)PAGE;

FIXTURE(buffers)
{
	struct area area;
};

FIXTURE_SETUP(buffers)
{
	ASSERT_EQ(0, area_open(&self->area, PAGES,
			       UFFD_FEATURE_EVENT_FORK | UFFD_FEATURE_EVENT_REMOVE));
}

FIXTURE_TEARDOWN(buffers)
{
	area_close(&self->area);
}

/* A thread that reads once. */
struct one_read {
	pthread_t thread;
	pid_t tid;
	int fd;
	void *buffer;
	/* As read() returns it, or the error. */
	ssize_t result;
};

static void *one_read_run(void *arg)
{
	struct one_read *r = arg;

	__atomic_store_n(&r->tid, gettid(), __ATOMIC_RELEASE);
	r->result = read(r->fd, r->buffer, size);
	if (r->result < 0)
		r->result = -errno;
	return NULL;
}

/* Returns once it sleeps: the reader that is started first is woken first. */
static void one_read_start(struct one_read *r, int fd, void *buffer)
{
	*r = (struct one_read){ .fd = fd, .buffer = buffer };
	pthread_create(&r->thread, NULL, one_read_run, r);
	uffd_wait_until_asleep(&r->tid, SYS_read);
}

static ssize_t one_read_end(struct one_read *r)
{
	pthread_join(r->thread, NULL);
	return r->result;
}

/* One fault, without the madvise() of faulter_run(), which would be an event. */
static void *fault_run(void *arg)
{
	struct faulter *f = arg;

	f->wrong = f->area->memory[f->first * PAGE] != 1;
	return NULL;
}

static void fault_start(struct faulter *f, const struct area *area, size_t page)
{
	*f = (struct faulter){ .area = area, .first = page };
	pthread_create(&f->thread, NULL, fault_run, f);
}

static unsigned long fault_end(struct faulter *f)
{
	pthread_join(f->thread, NULL);
	return f->wrong;
}

static char *pages_map(size_t pages)
{
	return mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* A message crosses the boundary of two pages, of which only the first is there. */
TEST_F(buffers, not_there_yet)
{
	char *pages = pages_map(2);
	struct uffd_msg message;
	struct one_read cold;
	struct faulter f;

	ASSERT_NE(MAP_FAILED, pages);
	pages[0] = 1;
	one_read_start(&cold, self->area.fd, pages + PAGE - 8);
	fault_start(&f, &self->area, 0);
	EXPECT_EQ(size, one_read_end(&cold));
	memcpy(&message, pages + PAGE - 8, size);
	EXPECT_EQ(UFFD_EVENT_PAGEFAULT, message.event);
	EXPECT_EQ((unsigned long)self->area.memory, message.arg.pagefault.address);
	area_fill(&self->area, message.arg.pagefault.address);
	EXPECT_EQ(0, fault_end(&f));
}

/* Its page comes too late, and goes again, for one message after the other. */
TEST_F(buffers, not_there_for_many_messages)
{
	struct uffd_msg message, *cold_message;
	struct one_read cold, good;
	struct area slow = {};
	struct faulter f;
	int i;

	if (!is_patched())
		SKIP(return, "without the livepatch the first message is lost");
	ASSERT_EQ(0, area_open(&slow, 1, 0));
	cold_message = (void *)slow.memory;
	one_read_start(&cold, self->area.fd, cold_message);
	for (i = 0; i < PAGES - 1; i++) {
		one_read_start(&good, self->area.fd, &message);
		fault_start(&f, &self->area, i);
		ASSERT_EQ(size, one_read_end(&good));
		area_fill(&self->area, message.arg.pagefault.address);
		EXPECT_EQ(0, fault_end(&f));
		ASSERT_EQ(size, read(slow.fd, &message, size));
		area_fill(&slow, (unsigned long)slow.memory);
		uffd_wait_until_asleep(&cold.tid, SYS_read);
		ASSERT_EQ(0, cold.result);
		ASSERT_EQ(0, madvise(slow.memory, PAGE, MADV_DONTNEED));
	}
	fault_start(&f, &self->area, i);
	ASSERT_EQ(size, read(slow.fd, &message, size));
	area_fill(&slow, (unsigned long)slow.memory);
	EXPECT_EQ(size, one_read_end(&cold));
	area_fill(&self->area, cold_message->arg.pagefault.address);
	EXPECT_EQ(0, fault_end(&f));
	area_close(&slow);
}

/* The signal might kill it: the message is for the next reader. */
TEST_F(buffers, a_signal_before_it_is_there)
{
	struct uffd_msg message;
	struct one_read cold;
	struct area slow = {};
	struct faulter f;

	if (!is_patched())
		SKIP(return, "without the livepatch the message goes with its reader");
	ASSERT_EQ(0, area_open(&slow, 1, 0));
	uffd_catch(SIGUSR1);
	one_read_start(&cold, self->area.fd, slow.memory);
	fault_start(&f, &self->area, 0);
	ASSERT_EQ(size, read(slow.fd, &message, size));
	pthread_kill(cold.thread, SIGUSR1);
	area_fill(&slow, (unsigned long)slow.memory);
	EXPECT_EQ(-EINTR, one_read_end(&cold));
	EXPECT_EQ(size, read(self->area.fd, &message, size));
	area_fill(&self->area, (unsigned long)self->area.memory);
	EXPECT_EQ(0, fault_end(&f));
	area_close(&slow);
}

/*
 * Below the only page that a stack has yet. The room to grow is between memory that cannot
 * be accessed, which may be close to a stack, and the stack, to which other mappings keep a
 * distance.
 */
TEST_F(buffers, in_a_stack_that_must_grow)
{
	const size_t room = 16;
	char *pages = pages_map(2 * room);
	struct uffd_msg *message;
	struct one_read cold;
	struct faulter f;
	char *top;

	ASSERT_NE(MAP_FAILED, pages);
	ASSERT_EQ(0, mprotect(pages, room * PAGE, PROT_NONE));
	ASSERT_EQ(0, munmap(pages + room * PAGE, room * PAGE));
	top = mmap(pages + (2 * room - 1) * PAGE, PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED_NOREPLACE, -1, 0);
	ASSERT_NE(MAP_FAILED, top);
	message = (void *)(top - PAGE);
	one_read_start(&cold, self->area.fd, message);
	fault_start(&f, &self->area, 0);
	EXPECT_EQ(size, one_read_end(&cold));
	EXPECT_EQ(UFFD_EVENT_PAGEFAULT, message->event);
	area_fill(&self->area, (unsigned long)self->area.memory);
	EXPECT_EQ(0, fault_end(&f));
}

/* The buffer is valid for the first message only: the second stays pending. */
TEST_F(buffers, too_bad_for_a_second_message)
{
	char *pages = pages_map(2);
	struct faulter faulters[2];
	struct uffd_msg *last, message;
	int i;

	if (!is_patched())
		SKIP(return, "without the livepatch the fault is lost");
	ASSERT_NE(MAP_FAILED, pages);
	ASSERT_EQ(0, munmap(pages + PAGE, PAGE));
	last = (void *)(pages + PAGE - size);
	for (i = 0; i < 2; i++)
		fault_start(&faulters[i], &self->area, i);
	while (messages_pending(self->area.fd) < 2)
		uffd_nap();
	EXPECT_EQ(size, read(self->area.fd, last, 2 * size));
	EXPECT_EQ(1, messages_pending(self->area.fd));
	EXPECT_EQ(size, read(self->area.fd, &message, size));
	area_fill(&self->area, last->arg.pagefault.address);
	area_fill(&self->area, message.arg.pagefault.address);
	for (i = 0; i < 2; i++)
		EXPECT_EQ(0, fault_end(&faulters[i]));
}

/* The buffer is in the area: another reader serves its fault too. */
TEST_F(buffers, in_the_area)
{
	char *buffer = self->area.memory + (PAGES - 1) * PAGE;
	struct one_read inside;
	struct reader other;
	struct faulter f;
	int page = 0;

	if (!is_patched())
		SKIP(return, "without the livepatch it was seen to hang");
	one_read_start(&inside, self->area.fd, buffer);
	readers_start(&other, 1, &self->area);
	do {
		fault_start(&f, &self->area, page++);
		while (pthread_tryjoin_np(f.thread, NULL)) {
			/* This message went to the reader inside, which serves none. */
			if (inside.result == (ssize_t)size)
				area_fill(&self->area,
					  (unsigned long)f.area->memory + f.first * PAGE);
			uffd_nap();
		}
		EXPECT_EQ(0, f.wrong);
	} while (!inside.result && page < PAGES - 1);
	EXPECT_EQ(size, one_read_end(&inside));
	readers_stop(&other, 1);
}

static void *remove_run(void *arg)
{
	struct faulter *f = arg;

	madvise(f->area->memory, PAGE, MADV_DONTNEED);
	return NULL;
}

/* The child touches its memory, which its new userfaultfd must report. */
static void *fork_run(void *arg)
{
	struct faulter *f = arg;
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(f->area->memory[0] != 1);
	f->wrong = waitpid(pid, &status, 0) != pid || status;
	return NULL;
}

static int next_descriptor(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

/* The message that a thread causes is left to the next reader. */
static void bad_buffer_test(struct __test_metadata *_metadata, const struct area *area,
			    void *(*cause)(void *), int event)
{
	struct faulter f = { .area = area };
	struct uffd_msg message = {};
	struct area faults = *area;
	struct one_read bad, good;
	int next = next_descriptor();

	if (!is_patched())
		SKIP(return, "without the livepatch the message is lost");
	one_read_start(&bad, area->fd, bad_buffer);
	one_read_start(&good, area->fd, &message);
	ASSERT_EQ(0, pthread_create(&f.thread, NULL, cause, &f));
	EXPECT_EQ(-EFAULT, one_read_end(&bad));
	EXPECT_EQ(size, one_read_end(&good));
	EXPECT_EQ(event, message.event);
	if (event == UFFD_EVENT_FORK) {
		EXPECT_EQ(next, (int)message.arg.fork.ufd);
		faults.fd = message.arg.fork.ufd;
		ASSERT_EQ(size, read(faults.fd, &message, size));
	}
	if (event != UFFD_EVENT_REMOVE)
		area_fill(&faults, message.arg.pagefault.address);
	EXPECT_EQ(0, fault_end(&f));
	if (event == UFFD_EVENT_FORK)
		close(faults.fd);
}

TEST_F(buffers, bad_one_leaves_a_fault)
{
	bad_buffer_test(_metadata, &self->area, fault_run, UFFD_EVENT_PAGEFAULT);
}

TEST_F(buffers, bad_one_leaves_a_remove_event)
{
	bad_buffer_test(_metadata, &self->area, remove_run, UFFD_EVENT_REMOVE);
}

TEST_F(buffers, bad_one_leaves_a_fork_event)
{
	bad_buffer_test(_metadata, &self->area, fork_run, UFFD_EVENT_FORK);
}

/* A thread that has an event wait for readers, and waits for its answer. */
struct event {
	pthread_t thread;
	pid_t tid;
	struct area *area;
};

/* Not by fork(), whose locks pthread_create() would wait for. */
static void *short_fork_run(void *arg)
{
	struct event *e = arg;
	pid_t pid;

	__atomic_store_n(&e->tid, gettid(), __ATOMIC_RELEASE);
	pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	return NULL;
}

static void *late_remove_run(void *arg)
{
	struct event *e = arg;

	__atomic_store_n(&e->tid, gettid(), __ATOMIC_RELEASE);
	return remove_run(&(struct faulter){ .area = e->area });
}

static void event_start(struct event *e, void *(*run)(void *), long call)
{
	pthread_create(&e->thread, NULL, run, e);
	uffd_wait_until_asleep(&e->tid, call);
}

static void events_start(struct event *fork, struct event *remove)
{
	event_start(fork, short_fork_run, SYS_clone);
	event_start(remove, late_remove_run, SYS_madvise);
}

/* The child has what is removed after its fork: a reader must know of the fork first. */
TEST_F(buffers, not_there_yet_for_the_first_of_two_events)
{
	struct event fork = { .area = &self->area }, remove = fork;
	struct uffd_msg *message = (void *)pages_map(1), second;

	ASSERT_NE(MAP_FAILED, (void *)message);
	events_start(&fork, &remove);
	EXPECT_EQ(size, read(self->area.fd, message, size));
	EXPECT_EQ(size, read(self->area.fd, &second, size));
	EXPECT_EQ(UFFD_EVENT_FORK, message->event);
	EXPECT_EQ(UFFD_EVENT_REMOVE, second.event);
	close(message->event == UFFD_EVENT_FORK ? message->arg.fork.ufd :
						  second.arg.fork.ufd);
	pthread_join(fork.thread, NULL);
	pthread_join(remove.thread, NULL);
}

/* The second one may tell it what to close. */
TEST_F(buffers, no_descriptor_for_the_first_of_two_events)
{
	struct event fork = { .area = &self->area }, remove = fork;
	struct uffd_msg message = {};
	struct rlimit none, before;

	events_start(&fork, &remove);
	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &before));
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = before.rlim_max };
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
	EXPECT_EQ(-1, read(self->area.fd, &message, size));
	EXPECT_EQ(EMFILE, errno);
	EXPECT_EQ(size, read(self->area.fd, &message, size));
	EXPECT_EQ(UFFD_EVENT_REMOVE, message.event);
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &before));
	EXPECT_EQ(size, read(self->area.fd, &message, size));
	EXPECT_EQ(UFFD_EVENT_FORK, message.event);
	close(message.arg.fork.ufd);
	pthread_join(fork.thread, NULL);
	pthread_join(remove.thread, NULL);
}

TEST_HARNESS_MAIN
