// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the shim does in memory with mapped counters, and when it does not: with files
 * that look like counters in memory, and with requests that this program answers.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/flowfd.h>

#include "preload/cells.h"
#include "preload/going.h"
#include "preload/next.h"
#include "tests/raw-mmap.h"
#include "tests/steps.h"
#include "tests/tap.h"

#define ERRNO_BEFORE 4711
#define NAME	     "/memfd:counter"

#define ROUNDS 3000
#define ADDERS 2

static size_t page;
static _Atomic int notified;
static _Atomic int asked;
/* As under a filter of seccomp(2), which may refuse ioctl(2). */
static bool refuses;
/* What others do around a notification, which meets a closed descriptor. Called once. */
static void (*meanwhile)(void);
static long meanwhile_error = -EBADF;
/* What others do before a cell is cleared. Called once. */
static void (*before_clearing)(void);
/* What others do before and after memory of a file is mapped to arm. Called once each. */
static void (*before_mapping)(void);
static void (*after_mapping)(void);
static int mapped_to_arm;
static int wakes;
/* What was mapped there is gone, as Linux leaves it if a mapping fails. */
static bool no_memory;
/* Another thread gets that memory at once. */
static bool lost;
/* Moves to cells that may still succeed. */
static int moves = INT32_MAX;

static void *leave_hole(void *start, size_t size)
{
	munmap(start, size);
	if (lost)
		raw_mmap(start, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
			 -1, 0);
	errno = ENOMEM;
	return MAP_FAILED;
}

static void call_once(void (**others)(void))
{
	void (*call)(void) = *others;

	*others = NULL;
	if (call)
		call();
}

void *mmap(void *start, size_t size, int protection, int flags, int fd, off_t offset)
{
	bool arms = offset == (off_t)(2 * page);
	void *mapped;

	if (protection & PROT_WRITE && flags & MAP_FIXED) {
		call_once(&before_clearing);
		if (no_memory)
			return leave_hole(start, size);
	}
	if (arms) {
		mapped_to_arm++;
		call_once(&before_mapping);
	}
	mapped = raw_mmap(start, size, protection, flags, fd, offset);
	if (arms)
		call_once(&after_mapping);
	return mapped;
}

void *mremap(void *old, size_t old_size, size_t size, int flags, ...)
{
	va_list more;
	void *start;

	va_start(more, flags);
	start = va_arg(more, void *);
	va_end(more);
	if (moves-- == 0)
		return leave_hole(start, size);
	return (void *)syscall(SYS_mremap, old, old_size, size, flags, start);
}

/* A file of three pages is a counter. */
static long id_of(int fd)
{
	struct stat status;

	if (fstat(fd, &status) || status.st_size != (off_t)(3 * page))
		return -ENOTTY;
	return status.st_ino & 0x7fffffff;
}

static long notify(void)
{
	void (*others)(void) = meanwhile;

	meanwhile = NULL;
	if (others)
		return others(), meanwhile_error;
	notified++;
	return 0;
}

long next_call(long number, long first, long second, long third, long fourth)
{
	(void)fourth;
	if (number == SYS_write && third != 8)
		return -EINVAL;
	if (number == SYS_write && *(uint64_t *)second == 0)
		return wakes++, 8;
	if (number != SYS_ioctl)
		return -ENOSYS;
	if (refuses)
		return -EPERM;
	if (second == FLOWFD_IOC_COUNTER_ID) {
		asked++;
		return id_of(first);
	}
	return second == FLOWFD_IOC_COUNTER_NOTIFY ? notify() : -ENOTTY;
}

/* As the kernel sees it. */
struct counter {
	int fd;
	struct flowfd_counter_header *header;
	struct flowfd_counter_producer *producer;
	struct flowfd_counter_consumer *consumer;
};

static struct counter make(uint64_t initial, uint64_t maximum)
{
	struct counter c = { .fd = memfd_create("counter", MFD_CLOEXEC) };
	char *memory;

	if (ftruncate(c.fd, 3 * page))
		exit(EXIT_FAILURE);
	memory = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_SHARED, c.fd, 0);
	c.header = (void *)memory;
	c.producer = (void *)(memory + page);
	c.consumer = (void *)(memory + 2 * page);
	*c.header = (struct flowfd_counter_header){
		.magic = FLOWFD_COUNTER_MAGIC,
		.version = FLOWFD_COUNTER_VERSION,
		.page_size = page,
		.flags = FLOWFD_MAPPED,
		.maximum = maximum,
		.id = id_of(c.fd),
	};
	c.producer->produced = initial;
	return c;
}

static struct counter make_mapped(uint64_t initial, uint64_t maximum)
{
	struct counter c = make(initial, maximum);

	if (cells_map(c.fd))
		exit(EXIT_FAILURE);
	return c;
}

static bool add(int fd, uint64_t value)
{
	return cells_know(fd) && cells_write(fd, &value);
}

static bool take(int fd, uint64_t *value)
{
	return cells_know(fd) && cells_read(fd, value);
}

static uint64_t count_of(const struct counter *c)
{
	return c->producer->produced - c->consumer->consumed;
}

/* The kernel counts it. */
static void close_unseen(struct counter *c)
{
	close(c->fd);
	__atomic_fetch_add(&c->header->closes, 1, __ATOMIC_SEQ_CST);
}

static void unmap(struct counter *c)
{
	munmap(c->header, 3 * page);
}

static void end(struct counter *c)
{
	cells_forget(c->fd);
	close_unseen(c);
	unmap(c);
}

/* How many mappings of counters this process has; @c.header is one. */
static int mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	int found = 0;

	while (maps && fgets(line, sizeof(line), maps))
		found += strstr(line, NAME) != NULL;
	if (maps)
		fclose(maps);
	return found;
}

static void test_before(void)
{
	uint64_t value;

	tap_ok(!cells_know(3) && !cells_know(-1) && !cells_know(CELLS), "none is known");
	tap_ok(cells_refuse(3) != NULL, "none can be before a constructor ran");
	cells_begin();
	tap_ok(!cells_refuse(0) && !cells_refuse(CELLS - 1), "then all can be");
	tap_ok(cells_refuse(CELLS) != NULL, "but those that are too high");
	tap_ok(!add(0, 1) && !take(0, &value), "and none is known yet");
}

static void test_count(void)
{
	struct counter c = make_mapped(5, 10);
	uint64_t value = 0;

	tap_ok(cells_know(c.fd), "a counter is known");
	tap_is(count_of(&c), 5, "and has its initial count");
	errno = ERRNO_BEFORE;
	tap_ok(add(c.fd, 3), "an add");
	tap_is(count_of(&c), 8, "adds");
	tap_ok(!add(c.fd, 2), "up to the maximum");
	tap_ok(add(c.fd, 1), "less one");
	tap_ok(!add(c.fd, 1), "is full");
	tap_ok(take(c.fd, &value), "a take");
	tap_is(value, 9, "takes all");
	tap_is(count_of(&c), 0, "and leaves nothing");
	tap_ok(!take(c.fd, &value), "nothing is for the kernel");
	tap_ok(!add(c.fd, 0), "0 too");
	tap_ok(!add(c.fd, 10) && !add(c.fd, UINT64_MAX) &&
		       !add(c.fd, UINT64_MAX - 1),
	       "and what never fits");
	tap_is(notified, 0, "nobody was notified");
	tap_is(errno, ERRNO_BEFORE, "errno is as before");
	end(&c);
	c = make_mapped(0, UINT64_MAX);
	tap_ok(add(c.fd, UINT64_MAX - 1), "the highest count");
	tap_ok(!add(c.fd, 1), "is full");
	tap_ok(take(c.fd, &value) && value == UINT64_MAX - 1, "and can be taken");
	tap_ok(add(c.fd, 7) && take(c.fd, &value) && value == 7,
	       "the words wrap");
	end(&c);
}

/* What keeps an exchange from succeeding in a cell that changed since the look. */
static void test_words(void)
{
	struct counter c = make_mapped(1, 10);
	struct counter other = make_mapped(1, 10);
	uint64_t value;

	tap_ok(c.producer->produced >> 32 && other.producer->produced >> 32 &&
		       c.producer->produced != other.producer->produced,
	       "words of two counters differ");
	c.producer->produced = 0;
	c.consumer->consumed = -(uint64_t)1;
	tap_ok(!add(c.fd, 1), "no add where 0 was produced");
	c.producer->produced = 1;
	c.consumer->consumed = 0;
	tap_ok(!take(c.fd, &value), "no take where 0 was consumed");
	end(&c);
	end(&other);
}

static void test_notify(void)
{
	struct counter c = make_mapped(0, 10);
	uint64_t value;

	notified = 0;
	c.consumer->armed = FLOWFD_ARMED_READERS | FLOWFD_ARMED_WATCHED;
	add(c.fd, 1);
	tap_is(notified, 1, "an add notifies readers");
	c.consumer->armed = FLOWFD_ARMED_WATCHED;
	add(c.fd, 1);
	tap_is(notified, 1, "only if they are armed");
	take(c.fd, &value);
	tap_is(c.consumer->armed, FLOWFD_ARMED_WATCHED | FLOWFD_ARMED_READERS,
	       "a take arms");
	tap_is(notified, 1, "and notifies nobody");
	c.consumer->armed = FLOWFD_ARMED_WRITERS;
	add(c.fd, 1);
	tap_is(notified, 1, "an add does not notify writers");
	take(c.fd, &value);
	tap_is(notified, 2, "a take does");
	tap_is(c.consumer->armed, FLOWFD_ARMED_WRITERS, "and leaves the bits");
	end(&c);
	tap_is(notified, 3, "so does a close");
	c = make_mapped(0, 10);
	c.consumer->armed = FLOWFD_ARMED_WATCHED;
	cells_forget(c.fd);
	tap_is(c.consumer->armed, FLOWFD_ARMED_WATCHED | FLOWFD_ARMED_READERS,
	       "which arms for a take that cannot");
	tap_is(notified, 4, "before that");
	end(&c);
	c = make_mapped(0, 10);
	c.consumer->armed = FLOWFD_ARMED_WRITERS;
	cells_forget(c.fd);
	tap_is(c.consumer->armed, FLOWFD_ARMED_WRITERS, "if somebody watches");
	end(&c);
}

static struct counter polled;

/* Another process adds; a poller that found no count arms, and tells only its caller. */
static void add_and_poll(void)
{
	bool none = !count_of(&polled);

	polled.producer->produced++;
	if (polled.consumer->armed & FLOWFD_ARMED_READERS)
		notified++;
	else if (none)
		polled.consumer->armed |= FLOWFD_ARMED_READERS;
}

static void take_polled(void)
{
	uint64_t value;

	take(polled.fd, &value);
}

static void test_steps(void)
{
	int instruction = 0, wrong = 0;
	bool more;

#ifdef STEPS_UNAVAILABLE
	tap_skip("step by step", STEPS_UNAVAILABLE);
	return;
#endif
	do {
		polled = make_mapped(5, 100);
		polled.consumer->armed = FLOWFD_ARMED_WATCHED;
		notified = 0;
		more = steps_run(take_polled, add_and_poll, instruction++);
		wrong += count_of(&polled) && !notified;
		end(&polled);
	} while (more);
	tap_ok(instruction > 10, "an add and a poll before each instruction of a take");
	tap_is(wrong, 0, "are noticed");
}

static void test_refused(void)
{
	struct counter c = make_mapped(0, 10);
	uint64_t value;

	refuses = true;
	c.consumer->armed = FLOWFD_ARMED_READERS;
	errno = ERRNO_BEFORE;
	tap_ok(add(c.fd, 3), "an add whose notification is refused");
	tap_is(count_of(&c), 3, "adds once");
	tap_is(wakes, 1, "and wakes readers by a call");
	tap_ok(!cells_know(c.fd) && mappings() == 1, "the next is a call");
	cells_map(c.fd);
	c.consumer->armed = FLOWFD_ARMED_WRITERS;
	tap_ok(!take(c.fd, &value), "a take whose notification is refused is a call");
	tap_is(count_of(&c), 3, "that finds the count");
	tap_ok(!cells_know(c.fd) && mappings() == 1, "so is the next");
	tap_is(wakes, 1, "and wakes nobody itself");
	cells_map(c.fd);
	c.consumer->armed = FLOWFD_ARMED_READERS;
	c.header->closes++;
	tap_ok(!add(c.fd, 1) && !cells_know(c.fd), "a look that is refused");
	tap_is(errno, ERRNO_BEFORE, "errno is as before");
	refuses = false;
	end(&c);
}

static struct counter late;

static void close_seen(void)
{
	cells_forget(late.fd);
	close_unseen(&late);
}

static struct counter stranger;

/* The shim does not see it, and the kernel has yet to count it. */
static void give_to_stranger(void)
{
	dup2(stranger.fd, late.fd);
}

static void give_to_short(void)
{
	int file = memfd_create("short", MFD_CLOEXEC);

	dup2(file, late.fd);
	close(file);
}

/* It has the number when @when is called; NULL: before. */
static void forget_other(void (**when)(void), void (*give)(void), const char *what)
{
	late = make_mapped(0, 10);
	late.consumer->armed = FLOWFD_ARMED_WATCHED;
	if (when)
		*when = give;
	else
		give();
	mapped_to_arm = 0;
	cells_forget(late.fd);
	tap_ok(!cells_know(late.fd) && mappings() == 2, what);
	tap_is(mapped_to_arm, when == &before_mapping || when == &after_mapping,
	       "is mapped only if it is the counter's before");
	tap_is(stranger.consumer->armed, FLOWFD_ARMED_WATCHED, "which is not stored to");
	tap_is(late.consumer->armed, FLOWFD_ARMED_WATCHED, "nor is the counter");
	close_unseen(&late);
	unmap(&late);
}

/* A close comes when the number is another file's, that looks as if it could be armed. */
static void test_other_file(void)
{
	stranger = make(0, 10);
	stranger.consumer->armed = FLOWFD_ARMED_WATCHED;
	forget_other(NULL, give_to_stranger, "a number that is another file's");
	forget_other(&before_clearing, give_to_stranger, "since it was forgotten");
	forget_other(&before_mapping, give_to_stranger, "since the kernel was asked");
	forget_other(&after_mapping, give_to_stranger, "since it was mapped");
	forget_other(NULL, give_to_short, "a number that is a short file's");
	forget_other(&before_mapping, give_to_short, "since the kernel was asked");
	close_unseen(&stranger);
	unmap(&stranger);
}

static struct counter next_there;

/* Threads have just added to it and taken from it, and look at the bits next. */
static void make_and_add(void)
{
	next_there = make_mapped(0, 10);
	next_there.consumer->armed = FLOWFD_ARMED_WATCHED;
	next_there.producer->produced++;
}

/* A thread that comes late takes the next counter's bits away from them. */
static void test_late_clear(void)
{
	late = make_mapped(0, 10);
	close_unseen(&late);
	notified = 0;
	before_clearing = make_and_add;
	tap_ok(!add(late.fd, 1), "an add to a counter that is closed");
	tap_ok(!cells_know(next_there.fd), "clears the cell of the next one");
	tap_is(next_there.consumer->armed, FLOWFD_ARMED_WATCHED | FLOWFD_ARMED_READERS,
	       "and arms for a take that saw no bits");
	tap_is(notified, 1, "and notifies for an add");
	end(&next_there);
	unmap(&late);
}

/* Another thread clears the cell of a counter that is closed meanwhile. */
static void test_cleared(void)
{
	struct counter c = make_mapped(0, 10);

	c.consumer->armed = FLOWFD_ARMED_WATCHED;
	raw_mmap(cells_header(c.fd), 3 * page, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	notified = 0;
	cells_forget(c.fd);
	tap_is(c.consumer->armed, FLOWFD_ARMED_WATCHED | FLOWFD_ARMED_READERS,
	       "a close arms if the cell was cleared before");
	tap_is(notified, 1, "and notifies");
	end(&c);
}

static void close_unseen_and_make(void)
{
	close_unseen(&late);
	next_there = make_mapped(0, 10);
}

static void change_words(void)
{
	late.consumer->consumed += (uint64_t)1 << 40;
	late.producer->produced += (uint64_t)1 << 40;
}

static void fill_up(void)
{
	late.producer->produced += 8;
}

static void close_and_make(void)
{
	close_seen();
	next_there = make_mapped(0, 10);
}

/* Others sleep on a copy of it. */
static void test_late(void)
{
	uint64_t value = 0;

	notified = 0;
	late = make_mapped(0, 10);
	late.consumer->armed = FLOWFD_ARMED_READERS;
	meanwhile = close_seen;
	tap_ok(add(late.fd, 1), "an add whose number is closed before it notifies");
	tap_is(count_of(&late), 1, "adds");
	tap_is(notified, 1, "and the close notifies");
	unmap(&late);
	late = make_mapped(5, 10);
	late.consumer->armed = FLOWFD_ARMED_WRITERS;
	meanwhile = close_seen;
	tap_ok(take(late.fd, &value) && value == 5, "so for a take");
	tap_is(notified, 2, "and the close notifies");
	unmap(&late);

	late = make_mapped(5, 10);
	late.consumer->armed = FLOWFD_ARMED_WRITERS;
	meanwhile = close_and_make;
	tap_ok(take(late.fd, &value) && value == 5,
	       "a take whose number is another counter's before it notifies");
	tap_is(count_of(&next_there), 0, "gives nothing to that one");
	tap_ok(cells_know(next_there.fd), "which stays known");
	tap_is(count_of(&late), 0, "and nothing back");
	end(&next_there);
	unmap(&late);

	late = make_mapped(5, 10);
	late.consumer->armed = FLOWFD_ARMED_WRITERS;
	meanwhile = close_unseen_and_make;
	tap_ok(take(late.fd, &value) && value == 5, "so if the shim does not see that");
	tap_is(count_of(&next_there), 0, "the next one gets nothing");
	end(&next_there);
	unmap(&late);

	meanwhile_error = -EPERM;
	wakes = 0;
	late = make_mapped(5, 10);
	late.consumer->armed = FLOWFD_ARMED_WRITERS;
	meanwhile = change_words;
	tap_ok(take(late.fd, &value) && value == 5, "nor if its words are there");
	tap_is(count_of(&late), 0, "nothing was added to them");
	end(&late);
	late = make_mapped(5, 10);
	late.consumer->armed = FLOWFD_ARMED_WRITERS;
	meanwhile = fill_up;
	tap_ok(take(late.fd, &value) && value == 5, "nor if there is no room now");
	tap_is(count_of(&late), 8, "nothing is added");
	tap_is(wakes, 2, "and readers are woken by a call, as nobody saw their bit");
	meanwhile_error = -EBADF;
	end(&late);
}

static bool is_mapped(int fd)
{
	unsigned char there[3];

	return mincore(cells_header(fd), 3 * page, there) == 0;
}

static void test_no_memory(void)
{
	struct counter c = make_mapped(3, 10);
	uint64_t value;
	int high;

	no_memory = true;
	cells_forget(c.fd);
	no_memory = false;
	tap_ok(!cells_know(c.fd), "forgotten without memory for that");
	tap_ok(is_mapped(c.fd), "and nothing else can be mapped there");
	tap_is(cells_producer(cells_header(c.fd))->produced, 0, "zeros are");
	tap_is(cells_map(c.fd), 0, "mapped again");
	tap_ok(take(c.fd, &value) && value == 3, "and known");
	end(&c);
	for (int succeed = 0; succeed < 2; succeed++) {
		c = make(3, 10);
		moves = succeed;
		tap_is(cells_map(c.fd), ENOMEM, "no memory to map a counter");
		moves = INT32_MAX;
		tap_ok(!cells_know(c.fd) && is_mapped(c.fd) && mappings() == 1,
		       "its cell stays, with zeros");
		tap_ok(cells_map(c.fd) == 0 && take(c.fd, &value), "and can be used");
		end(&c);
	}
	c = make(0, 10);
	high = dup2(c.fd, CELLS - 1);
	cells_map(high);
	no_memory = true;
	lost = true;
	cells_forget(high);
	no_memory = false;
	tap_ok(cells_refuse(high) != NULL, "a cell that is another's is not used");
	tap_ok(!cells_refuse(c.fd), "others are");
	tap_is(cells_map(high), ENOMEM, "nor by who was not refused before");
	close(high);
	high = dup2(c.fd, CELLS - 2);
	moves = 0;
	tap_is(cells_map(high), ENOMEM, "no memory to map a counter");
	moves = INT32_MAX;
	tap_ok(cells_refuse(high) != NULL, "and the memory is another's");
	lost = false;
	close(high);
	close_unseen(&c);
	unmap(&c);
}

/* A store would be a copy of the page, in a child that executes a program next. */
static void test_range(void)
{
	uintptr_t start = ((uintptr_t)cells_known + page - 1) & -page;
	int status = -1;

	if (fork() == 0) {
		if (mprotect((void *)start, page, PROT_READ))
			_exit(1);
		cells_forget_range(0, UINT32_MAX);
		_exit(0);
	}
	wait(&status);
	tap_is(status, 0, "a range of which none is known is not stored to");
}

static void test_forget(void)
{
	struct counter c = make_mapped(3, 10);
	struct counter other;
	uint64_t value;

	tap_is(mappings(), 3, "two mappings of a counter");
	cells_forget(c.fd);
	tap_ok(!cells_know(c.fd), "forgotten");
	tap_is(mappings(), 1, "and unmapped");
	asked = 0;
	tap_ok(!add(c.fd, 1) && !take(c.fd, &value), "is for the kernel");
	tap_is(count_of(&c), 3, "and keeps its count");
	tap_is(asked, 0, "which nobody had to ask");
	close_unseen(&c);
	other = make_mapped(4, 10);
	tap_is(other.fd, c.fd, "its number is another's");
	tap_ok(take(other.fd, &value) && value == 4, "which is known");
	end(&other);
	unmap(&c);
}

/* Closes that are not interposed. */
static void test_closes(void)
{
	struct counter c = make_mapped(3, 10);
	struct counter other;
	uint64_t value;
	int ends[2];

	asked = 0;
	c.header->closes++;
	tap_ok(add(c.fd, 1), "a child closed a copy");
	tap_is(asked, 1, "which costs one look");
	tap_ok(take(c.fd, &value) && value == 4, "then it goes on");
	tap_is(asked, 1, "without another");

	close_unseen(&c);
	tap_ok(pipe(ends) == 0 && ends[0] == c.fd, "another file has the number");
	tap_ok(!add(c.fd, 1), "an add is for the kernel");
	tap_is(asked, 2, "after one look");
	tap_ok(!cells_know(c.fd), "and it is forgotten");
	tap_is(mappings(), 1, "and unmapped");
	tap_is(count_of(&c), 0, "nothing was added");
	close(ends[0]);
	close(ends[1]);
	unmap(&c);

	c = make_mapped(3, 10);
	close_unseen(&c);
	other = make(8, 10);
	tap_ok(other.fd == c.fd && !take(c.fd, &value), "a counter has the number");
	tap_ok(!cells_know(c.fd), "which is not that counter");
	close_unseen(&other);
	unmap(&other);
	unmap(&c);

	c = make_mapped(3, 10);
	close_unseen(&c);
	other = make_mapped(8, 10);
	tap_ok(other.fd == c.fd && take(c.fd, &value) && value == 8,
	       "a counter that is mapped has the number");
	end(&other);
	unmap(&c);
	asked = 0;
}

static void test_fork(void)
{
	struct counter c = make_mapped(0, 10);
	int status = -1;
	uint64_t value;

	if (fork() == 0) {
		struct counter own;

		if (cells_refuse(3) || !add(c.fd, 2))
			_exit(1);
		own = make_mapped(1, 10);
		if (!add(own.fd, 1) || count_of(&own) != 2)
			_exit(2);
		cells_forget(c.fd);
		_exit(cells_know(c.fd) || mappings() != 4);
	}
	wait(&status);
	tap_is(status, 0, "a child adds, makes its own, and forgets");
	tap_ok(take(c.fd, &value) && value == 2, "its parent does not");
	end(&c);
}

/* Its memory is copied after its descriptors, and may know one that it has not. */
static void test_fork_between(void)
{
	struct counter c = make_mapped(0, 10);
	int copy = fcntl(c.fd, F_DUPFD_CLOEXEC, 100);
	int status = -1;

	/* Nobody counts this: the child never had it. */
	close(c.fd);
	if (fork() == 0) {
		int ends[2];

		if (pipe(ends) || ends[0] != c.fd)
			_exit(1);
		_exit(add(c.fd, 1) ? 2 : cells_know(c.fd) ? 3 : 0);
	}
	wait(&status);
	tap_is(status, 0, "a child that has another file there adds nothing");
	tap_is(count_of(&c), 0, "to the counter");
	dup2(copy, c.fd);
	close(copy);
	end(&c);
}

/* It shares the memory, but not the descriptors. */
static void test_vfork(void)
{
	struct counter c = make_mapped(0, 10);
	int status = -1;
	uint64_t value;

	if (vfork() == 0) {
		if (!cells_refuse(3))
			_exit(1);
		cells_forget(c.fd);
		cells_forget_range(0, CELLS);
		going_unshare(CLONE_FILES);
		close_unseen(&c);
		_exit(add(c.fd, 1) || take(c.fd, &value) ? 2 : 0);
	}
	wait(&status);
	tap_is(status, 0, "a child of vfork(2) maps nothing, and sees that it closed");
	tap_ok(cells_know(c.fd) && !cells_refuse(3), "its parent still knows it");
	tap_ok(add(c.fd, 1), "and adds");
	asked = 0;
	c.header->closes++;
	if (vfork() == 0)
		_exit(!add(c.fd, 1));
	wait(&status);
	tap_is(status, 0, "a child may add");
	tap_ok(take(c.fd, &value) && value == 2, "its parent takes");
	tap_is(asked, 2, "and looks itself");
	asked = 0;
	end(&c);
}

static void test_going(void)
{
	struct counter c = make_mapped(0, 10);
	const long dup_over[6] = { STDERR_FILENO, c.fd };
	const long range[6] = { c.fd + 1, UINT32_MAX };

	going_dup(c.fd, c.fd);
	going_dup(c.fd, c.fd + 1);
	going_range(0, c.fd - 1, 0);
	going_range(c.fd + 1, UINT32_MAX, 0);
	going_range(0, UINT32_MAX, CLOSE_RANGE_CLOEXEC);
	going_unshare(CLONE_FS);
	going_syscall(SYS_close_range, range);
	tap_ok(cells_know(c.fd), "calls that leave it open");
	going_dup(STDERR_FILENO, c.fd);
	tap_ok(!cells_know(c.fd), "dup2(2) over it");
	cells_map(c.fd);
	going_syscall(SYS_dup3, dup_over);
	tap_ok(!cells_know(c.fd), "dup3(2) by syscall(2)");
	cells_map(c.fd);
	going_range(c.fd, c.fd, 0);
	tap_ok(!cells_know(c.fd), "close_range(2)");
	cells_map(c.fd);
	going_syscall(SYS_close, (const long[6]){ c.fd });
	tap_ok(!cells_know(c.fd), "close(2) by syscall(2)");
	tap_ok(going_is(SYS_close) && going_is(SYS_dup3) && going_is(SYS_close_range) &&
		       going_is(SYS_unshare) && !going_is(SYS_getpid),
	       "the calls by number");
	end(&c);
}

static void test_wrong(void)
{
	struct counter c = make(0, 10);

	c.header->version++;
	tap_is(cells_map(c.fd), EINVAL, "a version that is not known");
	tap_ok(!cells_know(c.fd) && mappings() == 1, "is not mapped");
	tap_is(cells_map(STDIN_FILENO) != 0, 1, "nor is what cannot be");
	end(&c);
}

/*
 * Threads add and take by number all the time, while counters come and go there. What
 * was added is there, or was taken.
 */
static _Atomic int number;
static _Atomic bool stop;
static _Atomic uint64_t added, taken;

static void *add_always(void *argument)
{
	int tries = 0;

	(void)argument;
	while (!stop) {
		int fd = number;

		if (add(fd, 1))
			added++;
		/* For the others, on a machine with few processors. */
		if (++tries % 64 == 0)
			sched_yield();
	}
	return NULL;
}

static void *take_always(void *argument)
{
	uint64_t value;

	(void)argument;
	while (!stop) {
		int fd = number;

		if (take(fd, &value))
			taken += value;
		sched_yield();
	}
	return NULL;
}

static void come_and_go(const char *what, bool seen, bool gone)
{
	static struct counter all[ROUNDS];
	pthread_t threads[ADDERS + 1];
	uint64_t left = 0;

	stop = false;
	added = 0;
	taken = 0;
	for (int i = 0; i < ADDERS; i++)
		pthread_create(&threads[i], NULL, add_always, NULL);
	pthread_create(&threads[ADDERS], NULL, take_always, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		all[i] = make_mapped(0, UINT64_MAX);
		number = all[i].fd;
		/* Interrupts the others anywhere. */
		usleep(i % 40);
		if (seen)
			cells_forget(all[i].fd);
		if (!gone)
			dup2(STDERR_FILENO, all[i].fd);
		close_unseen(&all[i]);
	}
	stop = true;
	for (int i = 0; i <= ADDERS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < ROUNDS; i++) {
		left += count_of(&all[i]);
		unmap(&all[i]);
	}
	tap_is(taken + left, added, what);
	tap_ok(added > 100, "and many were");
	printf("# added %llu, left %llu\n", (unsigned long long)added,
	       (unsigned long long)left);
}

static void test_end(void)
{
	struct counter c = make_mapped(0, 10);
	const long files[6] = { CLONE_FILES };
	int status = -1;

	going_syscall(SYS_unshare, files);
	tap_ok(!cells_know(c.fd), "unshare(2) of descriptors forgets all");
	tap_ok(cells_refuse(c.fd) != NULL, "for ever");
	if (fork() == 0)
		_exit(cells_refuse(c.fd) != NULL);
	wait(&status);
	tap_is(status, 0, "but not for a child");
	end(&c);
}

int main(void)
{
	page = sysconf(_SC_PAGESIZE);
	test_before();
	test_count();
	test_words();
	test_notify();
	test_steps();
	test_refused();
	test_late();
	test_late_clear();
	test_cleared();
	test_other_file();
	test_no_memory();
	test_range();
	test_forget();
	test_closes();
	test_fork();
	test_fork_between();
	test_vfork();
	test_going();
	test_wrong();
	come_and_go("all that was added, while counters are closed", true, true);
	come_and_go("so if the shim does not see that", false, true);
	test_end();
	return tap_done();
}
