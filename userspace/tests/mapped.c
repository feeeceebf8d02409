// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counters in memory, without the module: its part is played by this program, which
 * gives the library ioctl(2) and fstatfs(2) of its own, and a memfd as the counter.
 * build.mk builds it for 32 bits and for ThreadSanitizer as well.
 */
#include <flowfd.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "lib/device.h"
#include "tests/refuse.h"
#include "tests/steps.h"
#include "tests/tap.h"

#define ARMED_ALL (FLOWFD_ARMED_READERS | FLOWFD_ARMED_WRITERS | FLOWFD_ARMED_WATCHED)
#define NONE UINT64_MAX

/* The three pages, as in the module. */
static struct {
	struct flowfd_counter_header header __attribute__((aligned(4096)));
	struct flowfd_counter_producer producer __attribute__((aligned(64)));
	struct flowfd_counter_consumer consumer __attribute__((aligned(64)));
} memory;

static int not_a_counter = -1;	 /* the result of asking whether it is mapped */
static int answer;		 /* the same, if the request is known */
static int query_answer = -ENOTTY; /* the result of a query; negative: its error */
static int number;		 /* the result of each other request, if there is one */
static long file_system;	 /* as fstatfs(2) has it; negative: its error */
static unsigned int notified;
static bool has_maximum;	 /* as each counter */
static int untold;		 /* the error of a notification */

static uint64_t count(void)
{
	uint64_t consumed = __atomic_load_n(&memory.consumer.consumed, __ATOMIC_SEQ_CST);

	return __atomic_load_n(&memory.producer.produced, __ATOMIC_SEQ_CST) - consumed;
}

/*
 * Instead of that of libc. Notifications do what the module's do: without a count the
 * bits stay, otherwise the wakeup clears them.
 */
int ioctl(int fd, unsigned long request, ...)
{
	(void)fd;
	if (request == (unsigned int)EFD_IOC_GET_MAXIMUM && has_maximum)
		return 0;
	if (request == (unsigned int)FLOWFD_IOC_QUERY) {
		errno = query_answer < 0 ? -query_answer : errno;
		return query_answer < 0 ? -1 : query_answer;
	}
	if (number)
		return number;
	if (request != (unsigned int)FLOWFD_IOC_COUNTER_NOTIFY || not_a_counter) {
		errno = not_a_counter > 0 ? not_a_counter : ENOTTY;
		return -1;
	}
	if (untold) {
		errno = untold;
		return -1;
	}
	__atomic_fetch_add(&notified, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_and(&memory.consumer.armed, ~FLOWFD_ARMED_WRITERS,
			   __ATOMIC_SEQ_CST);
	if (count())
		__atomic_fetch_and(&memory.consumer.armed, ~FLOWFD_ARMED_READERS,
				   __ATOMIC_SEQ_CST);
	return answer;
}

int fstatfs(int fd, struct statfs *status)
{
	(void)fd;
	*status = (struct statfs){ .f_type = file_system };
	if (file_system >= 0)
		return 0;
	errno = -file_system;
	return -1;
}

/* A counter whose calls go to an eventfd, where they can be told from what is in memory. */
static struct flowfd_counter open_counter(uint64_t start, uint64_t maximum, uint32_t armed)
{
	struct flowfd_counter c = {
		.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
		.roles = FLOWFD_PRODUCER | FLOWFD_CONSUMER,
		.add = { &memory.header, &memory.producer, &memory.consumer },
		.take = { &memory.producer, &memory.consumer },
	};

	memset(&memory, 0, sizeof(memory));
	memory.header.maximum = maximum;
	memory.producer.produced = start;
	memory.consumer.consumed = start;
	memory.consumer.armed = armed;
	notified = 0;
	not_a_counter = 0;
	return c;
}

/* What was written to the descriptor. Not by the macro, which takes counters alone. */
static uint64_t called(const struct flowfd_counter *c)
{
	uint64_t value = 0;

	return (flowfd_read)(c->fd, &value) ? 0 : value;
}

static void test_values(uint64_t start, const char *where)
{
	struct flowfd_counter c = open_counter(start, NONE, 0);
	uint64_t value = 42;

	printf("# %s\n", where);
	tap_is(flowfd_counter_is_mapped(&c), 1, "in memory");
	tap_is(flowfd_try_take(&c, &value), -EAGAIN, "there is nothing to take");
	tap_is(value, 42, "and the value stays");
	tap_is(flowfd_take(&c, &value), -EAGAIN, "nor by a call");
	tap_is(flowfd_add(&c, 3), 0, "add 3");
	tap_is(flowfd_add(&c, 0), 0, "add 0");
	tap_is(flowfd_add(&c, 4), 0, "add 4");
	tap_is(flowfd_take(&c, &value), 0, "take");
	tap_is(value, 7, "all of it");
	tap_is(flowfd_add(&c, NONE - 1), 0, "add as much as fits");
	tap_is(flowfd_try_take(&c, &value), 0, "take");
	tap_ok(value == NONE - 1, "all of it");
	tap_is(notified + called(&c), 0, "without a call");
	close(c.fd);
}

static void test_maximum(void)
{
	struct flowfd_counter c = open_counter(NONE - 5, 10, 0);
	uint64_t value = 0;

	tap_is(flowfd_add(&c, 9), 0, "add below the maximum");
	tap_is(flowfd_add(&c, 0), 0, "and nothing");
	tap_is(called(&c), 0, "in memory");
	tap_is(flowfd_add(&c, 1), 0, "one more");
	tap_is(called(&c), 1, "is a call");
	tap_is(flowfd_take(&c, &value), 0, "take");
	tap_is(value, 9, "all of it");
	tap_is(flowfd_add(&c, 10), 0, "what can never fit");
	tap_is(called(&c), 10, "is a call");
	tap_is(flowfd_add(&c, NONE), -EINVAL, "ULLONG_MAX");
	tap_is(flowfd_add(&c, 8), 0, "add");
	memory.header.maximum = 4;
	tap_is(flowfd_add(&c, 1), 0, "above a maximum that was lowered");
	tap_is(called(&c), 1, "is a call");
	tap_is(flowfd_add(&c, 0), 0, "so is nothing");
	tap_is(flowfd_take(&c, &value), 0, "take");
	tap_is(value, 8, "what was there");
	close(c.fd);
}

/* Which bits make an add or a take notify, and which bits a take sets. */
static void test_bits(void)
{
	struct flowfd_counter c = open_counter(0, NONE, 0);
	unsigned int wrong = 0;
	uint32_t bits, left;
	uint64_t value;

	for (bits = 0; bits <= ARMED_ALL; bits++) {
		left = bits & ~FLOWFD_ARMED_WRITERS;
		if (bits & FLOWFD_ARMED_WATCHED)
			left |= FLOWFD_ARMED_READERS;
		memory.consumer.armed = bits;
		notified = 0;
		wrong += flowfd_add(&c, 1) || notified != !!(bits & FLOWFD_ARMED_READERS);
		memory.consumer.armed = bits;
		notified = 0;
		wrong += flowfd_take(&c, &value) ||
			 notified != !!(bits & FLOWFD_ARMED_WRITERS) ||
			 memory.consumer.armed != left;
	}
	tap_is(wrong, 0, "bits, one by one");

	memory.consumer.armed = FLOWFD_ARMED_WATCHED;
	notified = 0;
	tap_is(flowfd_try_take(&c, &value), -EAGAIN, "a take that finds nothing");
	tap_is(memory.consumer.armed, FLOWFD_ARMED_WATCHED | FLOWFD_ARMED_READERS, "arms");
	tap_is(notified, 0, "and does not notify");
	close(c.fd);
}

/* What happens to an add or a take, point by point. */
static struct flowfd_counter stepped;
static bool slept;

static void arm(uint32_t bits)
{
	__atomic_fetch_or(&memory.consumer.armed, bits, __ATOMIC_SEQ_CST);
}

/* Another thread adds. Who polls sees it if it was notified, or looks before it sleeps. */
static void other_adds(void)
{
	flowfd_add(&stepped, 1);
}

/* A poller that finds no count arms, looks again, and tells only its caller. */
static void other_adds_beside_poller(void)
{
	bool none = !count();

	other_adds();
	if (none)
		arm(FLOWFD_ARMED_READERS);
}

static void other_takes(void)
{
	uint64_t value;

	flowfd_try_take(&stepped, &value);
}

static void reader_sleeps(void)
{
	arm(FLOWFD_ARMED_READERS | FLOWFD_ARMED_WATCHED);
	slept = !count();
}

static void writer_sleeps(void)
{
	arm(FLOWFD_ARMED_WRITERS);
	slept = count() > 0;
}

/* A wakeup clears READERS, and the count is gone when the thread takes. */
static void is_woken(void)
{
	__atomic_fetch_and(&memory.consumer.armed, ~FLOWFD_ARMED_READERS, __ATOMIC_SEQ_CST);
}

static void add_one(void)
{
	flowfd_add(&stepped, 1);
}

static void take_all(void)
{
	uint64_t value;

	flowfd_try_take(&stepped, &value);
}

/* Of a watched counter: somebody was woken, who takes and thereby arms, or will be. */
static bool is_told(void)
{
	return notified || (!count() && memory.consumer.armed & FLOWFD_ARMED_READERS);
}

static bool is_woken_up(void)
{
	return !slept || notified;
}

static const struct situation {
	const char *what;
	void (*run)(void);
	void (*happen)(void);
	bool (*is_right)(void);
	uint32_t armed;
	uint64_t count;
} situations[] = {
	{ "a reader goes to sleep during an add", add_one, reader_sleeps, is_woken_up, 0, 0 },
	{ "a writer goes to sleep during a take", take_all, writer_sleeps, is_woken_up, 0, 5 },
	{ "an add during a take", take_all, other_adds, is_told, FLOWFD_ARMED_WATCHED, 5 },
	{ "an add during a take that finds nothing", take_all, other_adds, is_told,
	  FLOWFD_ARMED_WATCHED, 0 },
	{ "an add and a poll during a take", take_all, other_adds_beside_poller, is_told,
	  FLOWFD_ARMED_WATCHED, 5 },
	{ "a take during a take", take_all, other_takes, is_told, FLOWFD_ARMED_WATCHED, 5 },
	{ "a take during an add", add_one, other_takes, is_told,
	  FLOWFD_ARMED_WATCHED | FLOWFD_ARMED_READERS, 0 },
};

/* Whether the result is right after a run. */
static bool is_right(const struct situation *situation)
{
	uint64_t value;

	if (!situation->is_right())
		return false;
	/* And the next thread finds what is left. */
	if (count() && flowfd_try_take(&stepped, &value))
		return false;
	is_woken();
	return flowfd_try_take(&stepped, &value) == -EAGAIN &&
	       (!(memory.consumer.armed & FLOWFD_ARMED_WATCHED) ||
		memory.consumer.armed & FLOWFD_ARMED_READERS);
}

static void test_steps(const struct situation *situation)
{
	int point = 0, wrong = 0;
	bool happened;

	do {
		stepped = open_counter(NONE - 2, 100, situation->armed);
		memory.producer.produced += situation->count;
		slept = false;
		happened = steps_run(situation->run, situation->happen, point++);
		wrong += happened && !is_right(situation);
		close(stepped.fd);
	} while (happened);
	printf("# before each of %d points\n", point - 1);
	tap_ok(point > 3, "point by point");
	tap_is(wrong, 0, situation->what);
}

static void test_all_steps(void)
{
#ifdef STEPS_UNAVAILABLE
	tap_skip("point by point", STEPS_UNAVAILABLE);
	return;
#endif
	steps_watch(0, &memory, sizeof(memory));
	for (size_t i = 0; i < sizeof(situations) / sizeof(situations[0]); i++)
		test_steps(&situations[i]);
	steps_watch(0, NULL, 0);
}

/* A peer that stores all the time; there is always a count, and room. */
static void other_stores(void)
{
	__atomic_fetch_add(&memory.producer.produced, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&memory.consumer.consumed, 1, __ATOMIC_SEQ_CST);
}

static void test_hostile(void)
{
#ifdef STEPS_UNAVAILABLE
	tap_skip("a hostile peer", STEPS_UNAVAILABLE);
	return;
#endif
	stepped = open_counter(0, 100, 0);
	memory.producer.produced = 5;
	tap_ok(steps_run_each(add_one, other_stores, 0) < STEPS_MANY,
	       "a peer that stores all the time: an add");
	tap_is(called(&stepped), 1, "is a call in the end");
	tap_ok(steps_run_each(take_all, other_stores, 0) < STEPS_MANY, "and a take ends");
	close(stepped.fd);
}

/* Nor can it tell by a write, which an eventfd does not take like that. */
static void test_untold(int error, const char *what)
{
	struct flowfd_counter c = open_counter(0, 10, FLOWFD_ARMED_READERS);

	errno = 4711;
	untold = error;
	tap_is(flowfd_add(&c, 3), -EPERM, what);
	tap_is(count(), 3, "it has added");
	tap_is(flowfd_add_with(&c, 2, 0, FLOWFD_NONBLOCK), -EPERM, "without waiting, too");
	tap_is(count(), 5, "it has added once");
	tap_is(errno, 4711, "errno is as it was");
	untold = 0;
	close(c.fd);
}

/* The descriptor was closed, and another file got its number. */
static void test_other_file(int error)
{
	struct flowfd_counter c = open_counter(0, 10, FLOWFD_ARMED_READERS);
	int ends[2];
	char byte;

	if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) || dup2(ends[1], c.fd) < 0)
		abort();
	untold = error;
	tap_is(flowfd_add(&c, 3), -EPERM, "an add whose descriptor is another file");
	tap_is(count(), 3, "it has added");
	tap_is(read(ends[0], &byte, 1), -1, "nothing is written to that file");
	untold = 0;
	close(ends[0]);
	close(ends[1]);
	close(c.fd);
}

/* Nothing was added, so none of these is -EPERM. Returns an exit status. */
static int add_refused(const void *unused)
{
	struct flowfd_counter c = open_counter(0, 3, 0);
	uint64_t value = 42;

	(void)unused;
	flowfd_add(&c, 2);
	if (refuse(SYS_write, EPERM) || refuse(SYS_read, EPERM) ||
	    refuse(SYS_preadv2, EPERM))
		return REFUSE_UNABLE;
	if (flowfd_add(&c, 1) != -EACCES || flowfd_counter_write(&c, 1) != -EACCES)
		return 3;
	not_a_counter = EPERM;
	if (flowfd_add_with(&c, 1, 1, 0) != -EACCES || count() != 2)
		return 4;
	c.roles = FLOWFD_PRODUCER;
	return flowfd_counter_try_read(&c, &value) != -EACCES ||
	       flowfd_counter_read(&c, &value) != -EACCES ||
	       flowfd_read_with(c.fd, &value, 1, 0) != -EACCES || value != 42;
}

#define THREADS 2
#define ADDS 20000

/* What an adder stores before its last add; for ThreadSanitizer only the add orders it. */
static struct crowd {
	struct flowfd_counter counter;
	uint64_t taken;
	int message[THREADS];
} crowd;

static void *add_all(void *message)
{
	for (int i = 1; i < ADDS; i++)
		if (flowfd_add(&crowd.counter, 1))
			abort();
	*(int *)message = 1;
	if (flowfd_add(&crowd.counter, 1))
		abort();
	return NULL;
}

static void *take_some(void *unused)
{
	uint64_t value, sum = 0;

	while (__atomic_load_n(&crowd.taken, __ATOMIC_ACQUIRE) + sum < THREADS * ADDS) {
		if (flowfd_try_take(&crowd.counter, &value)) {
			__atomic_fetch_add(&crowd.taken, sum, __ATOMIC_ACQ_REL);
			sum = 0;
			sched_yield();
			continue;
		}
		sum += value;
		if (value > THREADS * ADDS)
			abort();
	}
	__atomic_fetch_add(&crowd.taken, sum, __ATOMIC_ACQ_REL);
	return unused;
}

static void test_crowd(void)
{
	pthread_t threads[2 * THREADS];
	int sum = 0;

	crowd.counter = open_counter(NONE - ADDS, NONE, FLOWFD_ARMED_WATCHED);
	for (int i = 0; i < THREADS; i++) {
		if (pthread_create(&threads[i], NULL, add_all, &crowd.message[i]) ||
		    pthread_create(&threads[THREADS + i], NULL, take_some, NULL))
			abort();
	}
	for (int i = THREADS; i < 2 * THREADS; i++)
		pthread_join(threads[i], NULL);
	/* Not joined yet: the adders' stores are visible by what was taken. */
	for (int i = 0; i < THREADS; i++)
		sum += crowd.message[i];
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	tap_is(crowd.taken, THREADS * ADDS, "each item is taken once");
	tap_is(sum, THREADS, "and what came before it is there");
	close(crowd.counter.fd);
}

/* A file with the memory of a counter. Returns its descriptor. */
static int make_file(struct flowfd_counter_header header, uint64_t initial)
{
	long page = sysconf(_SC_PAGESIZE);
	int fd = memfd_create("counter", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, 3 * page) ||
	    pwrite(fd, &header, sizeof(header), 0) != sizeof(header) ||
	    pwrite(fd, &initial, sizeof(initial), page) != sizeof(initial))
		abort();
	return fd;
}

/* The kernel can store there only if the program can. */
static bool is_writable(const void *at)
{
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	bool writable = read(fd, (void *)at, 1) == 1;

	close(fd);
	return writable;
}

/* Which pages can be written: 1, 2 and 4. */
static int writable_pages(const struct flowfd_counter *c)
{
	long page = sysconf(_SC_PAGESIZE);
	int pages = 0;

	for (int i = 0; i < 3; i++)
		pages |= is_writable((char *)c->map + (i + 1) * page - 1) << i;
	return pages;
}

static void test_roles(void)
{
	const struct flowfd_counter_header header = {
		.magic = FLOWFD_COUNTER_MAGIC,
		.version = FLOWFD_COUNTER_VERSION,
		.page_size = sysconf(_SC_PAGESIZE),
		.flags = FLOWFD_MAPPED,
		.maximum = 10,
	};
	int fd = make_file(header, 3);
	struct flowfd_counter c, producer, consumer;
	uint64_t value = 0;

	not_a_counter = 0;
	file_system = ANON_INODE_FS_MAGIC;
	tap_is(flowfd_counter_map(&c, fd, FLOWFD_PRODUCER | FLOWFD_CONSUMER), 0, "map");
	tap_is(c.fd, fd, "the descriptor is in it");
	tap_is(writable_pages(&c), 6, "two pages can be written");
	tap_is(flowfd_counter_map(&producer, fd, FLOWFD_PRODUCER), 0, "map for adds");
	tap_is(writable_pages(&producer), 2, "one page can be written");
	tap_is(flowfd_counter_map(&consumer, fd, FLOWFD_CONSUMER), 0, "map for takes");
	tap_is(writable_pages(&consumer), 4, "one page can be written");
	tap_is(flowfd_take(&consumer, &value), 0, "take");
	tap_is(value, 3, "the first count");
	tap_is(flowfd_add(&producer, 4), 0, "add");
	tap_is(flowfd_take(&c, &value), 0, "take");
	tap_is(value, 4, "what another mapping added");

	/* The file is no counter for calls, which shows that there are some. */
	tap_is(lseek(fd, 3 * header.page_size - 4, SEEK_SET), 3 * header.page_size - 4,
	       "the end of the file");
	tap_is(flowfd_take(&producer, &value), -EIO, "a take by who may only add: a call");
	tap_is(flowfd_counter_is_mapped(&producer), 1, "though it is mapped");
	flowfd_counter_unmap(&producer);
	tap_is(flowfd_counter_is_mapped(&producer), 0, "not any more");
	flowfd_counter_unmap(&producer);
	tap_is(producer.fd, fd, "the descriptor stays");
	tap_is(fcntl(fd, F_GETFD), FD_CLOEXEC, "and is open");
	tap_is(flowfd_add(&c, 4), 0, "other mappings stay");
	flowfd_counter_unmap(&c);
	flowfd_counter_unmap(&consumer);
	close(fd);
}

/* Only the kernel says what a file is. */
static void test_refused(void)
{
	const struct flowfd_counter_header good = {
		.magic = FLOWFD_COUNTER_MAGIC,
		.version = FLOWFD_COUNTER_VERSION,
		.page_size = sysconf(_SC_PAGESIZE),
		.maximum = 10,
	};
	struct flowfd_counter_header bad = good;
	struct flowfd_counter c = { .fd = 42 };
	const unsigned int both = FLOWFD_PRODUCER | FLOWFD_CONSUMER;
	char path[64];
	int fd = make_file(good, 0), again;

	errno = 4711;
	not_a_counter = -1;
	tap_is(flowfd_counter_map(&c, fd, both), -ENOTTY, "memory like that of a counter");
	not_a_counter = EBADF;
	tap_is(flowfd_counter_map(&c, -1, both), -EBADF, "no descriptor");
	not_a_counter = EINVAL;
	tap_is(flowfd_counter_map(&c, fd, both), -ENOTTY, "an epoll");
	not_a_counter = ENODEV;
	tap_is(flowfd_counter_map(&c, fd, both), -ENOTTY, "a device that is gone");
	not_a_counter = 0;
	answer = 1;
	tap_is(flowfd_counter_map(&c, fd, both), -ENOTTY, "a file with another answer");
	answer = 0;
	file_system = FUSE_SUPER_MAGIC;
	tap_is(flowfd_counter_map(&c, fd, both), -ENOTTY, "a file of user space");
	file_system = -EPERM;
	tap_is(flowfd_counter_map(&c, fd, both), -EPERM, "a file that may not be looked at");
	file_system = -EACCES;
	tap_is(flowfd_counter_map(&c, fd, both), -EPERM, "EACCES means something else");
	file_system = -ENOSYS;
	tap_is(flowfd_counter_map(&c, fd, both), -EPERM, "a filter that does not know the call");
	file_system = ANON_INODE_FS_MAGIC;
	tap_is(flowfd_counter_map(&c, fd, 0), -EINVAL, "no role");
	tap_is(flowfd_counter_map(&c, fd, 4 | both), -EINVAL, "an unknown role");
	tap_is(c.fd, 42, "what could not be mapped is as it was");
	tap_is(errno, 4711, "so is errno");

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDONLY | O_CLOEXEC);
	tap_is(flowfd_counter_map(&c, again, both), -EACCES, "a descriptor for reading alone");
	close(again);
	close(fd);

	bad.magic++;
	fd = make_file(bad, 0);
	tap_is(flowfd_counter_map(&c, fd, both), -EPROTONOSUPPORT, "another magic number");
	close(fd);
	bad = good;
	bad.version++;
	fd = make_file(bad, 0);
	tap_is(flowfd_counter_map(&c, fd, both), -EPROTONOSUPPORT, "another version");
	close(fd);
	bad = good;
	bad.page_size *= 2;
	fd = make_file(bad, 0);
	tap_is(flowfd_counter_map(&c, fd, both), -EPROTONOSUPPORT, "pages of another size");
	close(fd);
}

/* A file that is no device of flowfd, and knows the request all the same. */
static void test_check(void)
{
	query_answer = 1;
	tap_is(flowfd__check(0), -EPROTONOSUPPORT, "a device with another answer");
	query_answer = 0;
	tap_is(flowfd__check(0), -EPROTONOSUPPORT, "one without a version");
	query_answer = -EINVAL;
	tap_is(flowfd__check(0), -EPROTONOSUPPORT, "one that refuses it as an old driver");
	query_answer = -ENOTTY;
	tap_is(flowfd__check(0), -EPROTONOSUPPORT, "one without the request");
}

/* A file that answers with a number where the module answers 0. */
static void test_number(void)
{
	struct flowfd_counter_stats stats;
	struct flowfd_flow flow = { 0 };
	uint32_t capacity = 42, rate = 42;
	struct flowfd_key key;
	uint64_t value = 42;

	number = 1;
	tap_is(flowfd_set_maximum(0, 5), -ENOTTY, "a file that answers with a number");
	tap_is(flowfd_get_maximum(0, &value), -ENOTTY, "has no maximum");
	tap_is(flowfd_set_bucket(0, 1, 1), -ENOTTY, "takes no bucket");
	tap_is(flowfd_get_bucket(0, &capacity, &rate), -ENOTTY, "has no bucket");
	tap_is(flowfd_bridge(0, 1, FLOWFD_BRIDGE_SINK), -ENOTTY, "no bridge");
	tap_is(flowfd_set_flow(0, &flow, sizeof(flow)), -ENOTTY, "takes no policy");
	tap_is(flowfd_get_flow(0, &flow, sizeof(flow)), -ENOTTY, "has no policy");
	tap_is(flowfd_counter_stats(0, &stats, sizeof(stats)), -ENOTTY, "no statistics");
	tap_is(flowfd_write_with(0, 1, 1, 0), -ENOTTY, "takes no value");
	tap_is(flowfd_read_with(0, &value, 1, 0), -ENOTTY, "has no value");
	tap_is(flowfd_share(0, &key), -ENOTTY, "and no key");
	tap_ok(value == 42 && capacity == 42 && rate == 42, "nothing is stored");
	number = 0;
}

static bool mapper_ends;

/* Maps memory, and finds what it stored there. */
static void *map_and_look(void *argument)
{
	uintptr_t lost = 0;

	(void)argument;
	while (!__atomic_load_n(&mapper_ends, __ATOMIC_RELAXED)) {
		long *page = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (page == MAP_FAILED)
			continue;
		for (int i = 0; i < 100; i++) {
			lost += __atomic_load_n(page, __ATOMIC_RELAXED) != i;
			__atomic_store_n(page, i + 1, __ATOMIC_RELAXED);
		}
		munmap(page, sysconf(_SC_PAGESIZE));
	}
	return (void *)lost;
}

static int make_counter(void)
{
	const struct flowfd_counter_header header = {
		.magic = FLOWFD_COUNTER_MAGIC,
		.version = FLOWFD_COUNTER_VERSION,
		.page_size = sysconf(_SC_PAGESIZE),
		.maximum = 10,
	};
	int fd = memfd_create("counter", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (ftruncate(fd, 3 * header.page_size) ||
	    pwrite(fd, &header, sizeof(header), 0) != sizeof(header))
		abort();
	return fd;
}

/* Whether this kernel unmaps what is there, and then refuses the new memory. */
static bool leaves_holes(int fd)
{
	size_t size = sysconf(_SC_PAGESIZE);
	unsigned char there;
	void *page = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	bool hole;

	if (page == MAP_FAILED || mmap(page, size, PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED)
		abort();
	hole = mincore(page, size, &there) && errno == ENOMEM;
	if (!hole)
		munmap(page, size);
	return hole;
}

static void test_hole(void)
{
	int fd = make_counter();
	struct flowfd_counter c;
	pthread_t mapper;
	void *lost;
	int ret = 0;

	if (fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE))
		abort();
	pthread_create(&mapper, NULL, map_and_look, NULL);
	for (int i = 0; i < 3000; i++)
		ret |= flowfd_counter_map(&c, fd, FLOWFD_CONSUMER) != -EPERM;
	__atomic_store_n(&mapper_ends, true, __ATOMIC_RELAXED);
	pthread_join(mapper, &lost);
	tap_is(ret, 0, "memory that is not to be written");
	if (lost || leaves_holes(fd))
		tap_is((uintptr_t)lost, 0, "no memory of another thread is unmapped");
	else
		tap_skip("no memory of another thread is unmapped", "a newer kernel");
	close(fd);
}

static int count_mappings(const char *name)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	int count = 0;

	if (!maps)
		return -1;
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, name) != NULL;
	fclose(maps);
	return count;
}

/* A filter that does not know mremap(2). Returns an exit status. */
static int map_without_mremap(const void *fd)
{
	struct flowfd_counter c;

	if (refuse(SYS_mremap, EPERM))
		return REFUSE_UNABLE;
	if (flowfd_counter_map(&c, *(const int *)fd, FLOWFD_CONSUMER) != -EPERM)
		return 3;
	return count_mappings("memfd:counter") != 0;
}

static void test_no_mremap(void)
{
	int fd = make_counter();

	refuse_in_child(map_without_mremap, &fd, "nothing stays mapped without mremap(2)");
	close(fd);
}

/* A counter that is not mapped, in whose place there is an eventfd. */
static void test_not_mapped(int flags)
{
	int fd = eventfd(0, EFD_CLOEXEC | flags);
	struct flowfd_counter c;
	uint64_t value = 42;

	not_a_counter = ENODEV;
	has_maximum = true;
	file_system = -EPERM;
	tap_is(flowfd_counter_map(&c, fd, FLOWFD_CONSUMER), 0, "map one that is not mapped");
	tap_is(flowfd_counter_is_mapped(&c), 0, "it is not mapped");
	tap_is(flowfd_try_take(&c, &value), -EAGAIN, "nothing, without waiting");
	tap_is(value, 42, "the value stays");
	tap_is(flowfd_add(&c, 3), 0, "add");
	tap_is(flowfd_add(&c, 0), 0, "add nothing");
	tap_is(flowfd_take(&c, &value), 0, "take");
	tap_is(value, 3, "what was added");
	tap_is(flowfd_add(&c, 4), 0, "add");
	tap_is(flowfd_try_take(&c, &value), 0, "take without waiting");
	tap_is(value, 4, "what was added");
	tap_is(flowfd_add(&c, NONE), -EINVAL, "ULLONG_MAX");
	tap_is(flowfd_counter_notify(&c, FLOWFD_PRODUCER), -ENODEV, "there is nothing to notify");
	flowfd_counter_unmap(&c);
	close(fd);
	errno = 4711;
	tap_is(flowfd_try_take(&c, &value), -EBADF, "a closed descriptor");
	tap_is(flowfd_add(&c, 1), -EBADF, "also to add");
	tap_is(flowfd_take(&c, &value), -EBADF, "and to take");
	tap_is(errno, 4711, "errno stays");
}

int main(void)
{
	test_values(0, "from 0");
	test_values(NONE - 4, "past 2^64");
	test_maximum();
	test_bits();
	test_all_steps();
	test_hostile();
	test_untold(EPERM, "an add that may not wake the consumer says so");
	test_untold(EBADF, "and one whose descriptor is closed");
	test_untold(EAGAIN, "that it has not added is no answer");
	test_untold(EINTR, "nor that it was interrupted");
	test_other_file(ENOTTY);
	test_other_file(EINVAL);
	test_other_file(ENODEV);
	test_other_file(EIO);
	refuse_in_child(add_refused, NULL, "what was not added is not -EPERM");
	test_crowd();
	test_roles();
	test_refused();
	test_check();
	test_number();
	test_hole();
	test_no_mremap();
	test_not_mapped(0);
	test_not_mapped(EFD_NONBLOCK);
	return tap_done();
}
