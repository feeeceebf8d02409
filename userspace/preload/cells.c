// SPDX-License-Identifier: MIT
/*
 * A region of memory has a cell of three pages for each descriptor. A cell is never
 * unmapped once it was mapped: a descriptor that is forgotten leaves zeros there. The
 * words of each counter begin at another value, far from 0, and a thread that meets a 0
 * calls the kernel. So no exchange succeeds in memory that is no counter's, and none in
 * another counter's than that of the look before it: the cell can change in between.
 *
 * A descriptor is forgotten before it is closed. Closes that the shim does not see change
 * @closes in the memory of the counter.
 */
#include <errno.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/flowfd.h>

#include "preload/cells.h"
#include "preload/next.h"

_Atomic uint64_t cells_known[CELLS];

_Atomic(char *) cells_region;

#ifndef __x86_64__
size_t cells_page;
#endif

/*
 * Process whose memory this is; 0: not known yet. It is another than the caller in a
 * child of vfork(2), and in one of clone(2) that the C library was not told of.
 */
static _Atomic int owner;

/* Of the counter that was known last, for those who meet a cleared cell. */
static _Atomic uint32_t ids[CELLS];

/* Cells that could not be filled: the memory may be the program's. */
static _Atomic bool lost[CELLS];

/* Threads may have different tables of descriptors. */
static _Atomic bool ended;

/* An error: a filter of seccomp(2) refuses it, or another file has the number. */
static long notify(int fd)
{
	return next_call(SYS_ioctl, fd, FLOWFD_IOC_COUNTER_NOTIFY, 0, 0);
}

static bool has_id(int fd, uint32_t id)
{
	return next_call(SYS_ioctl, fd, FLOWFD_IOC_COUNTER_ID, 0, 0) == (long)id;
}

static bool is_own(void)
{
	return owner == getpid();
}

static char *page_of(int fd, size_t number)
{
	return (char *)cells_header(fd) + number * cells_page;
}

/*
 * A mapping that fails can leave a hole, which malloc(3) may get next. Pages that cannot
 * be written are not charged.
 */
static void fill(int fd, size_t first, size_t count)
{
	for (size_t number = first; number < first + count; number++) {
		if (mmap(page_of(fd, number), cells_page, PROT_READ,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
			 0) == MAP_FAILED)
			lost[fd] = true;
	}
}

/*
 * Zeros for pages of a cell, in one step: a thread that meets neither the old ones nor
 * the new ones waits. Without memory for that, nobody begins to use what is there.
 */
static void clear_pages(int fd, size_t first, size_t count)
{
	if (mmap(page_of(fd, first), count * cells_page, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
		 0) == MAP_FAILED)
		fill(fd, first, count);
}

static void clear(int fd)
{
	clear_pages(fd, 0, CELL_PAGES);
}

/*
 * Step T3 of <linux/flowfd.h>, for a take that may have met zeros instead of the bits;
 * notify() looks at the count. The number may be another file's by now, or become that at
 * any moment, so the kernel is asked whose memory was mapped before it is touched.
 */
static void arm(int fd)
{
	uint32_t id = ids[fd];
	struct flowfd_counter_consumer *consumer;

	if (!has_id(fd, id))
		return;
	consumer = mmap(NULL, cells_page, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			2 * cells_page);
	if (consumer == MAP_FAILED)
		return;
	if (has_id(fd, id) &&
	    __atomic_load_n(&consumer->armed, __ATOMIC_RELAXED) & FLOWFD_ARMED_WATCHED)
		__atomic_fetch_or(&consumer->armed, FLOWFD_ARMED_READERS,
				  __ATOMIC_SEQ_CST);
	munmap(consumer, cells_page);
}

/* For those who have added or taken, and saw no bits in a cell that was cleared. */
static void make_up(int fd)
{
	arm(fd);
	notify(fd);
}

/*
 * After the descriptor was forgotten. A thread that comes late may clear the cell of the
 * next counter, which then must not be known, or each operation on it would be tried in
 * vain.
 */
static void clear_forgotten(int fd)
{
	bool is_next = false;

	clear(fd);
	while (atomic_exchange(&cells_known[fd], 0)) {
		clear(fd);
		is_next = true;
	}
	if (is_next)
		make_up(fd);
}

static void forget(int fd)
{
	if (atomic_exchange(&cells_known[fd], 0))
		clear_forgotten(fd);
}

/*
 * Arms and notifies after the last add and take in memory: a thread that comes to do so
 * only when the descriptor is closed cannot. The cell does not tell whether that is
 * needed: a poller may come until it is cleared, and a late thread may clear it first.
 */
static void forget_open(int fd)
{
	if (!atomic_exchange(&cells_known[fd], 0))
		return;
	clear_forgotten(fd);
	make_up(fd);
}

/* Two words of a cell: whether it had the same counter. */
static bool is_same(uint64_t known, uint64_t other)
{
	return known >> 32 == other >> 32;
}

/*
 * After a notification that failed with @error. Without the kernel, which may refuse to be
 * asked; but a close frees the number before it counts.
 */
static bool is_closed(int fd, const struct flowfd_counter_header *header, uint64_t known,
		      long error)
{
	uint32_t closes = __atomic_load_n(&header->closes, __ATOMIC_ACQUIRE);
	uint64_t now = cells_known[fd];

	return error == -EBADF || error == -ENOTTY || (uint32_t)now != closes + 1 ||
	       !is_same(now, known);
}

/* Its number may be another counter's since then, which stays known. */
static void forget_refused(int fd, uint64_t known)
{
	uint64_t now = cells_known[fd];
	int saved = errno;

	if (is_same(now, known) && is_own() &&
	    atomic_compare_exchange_strong(&cells_known[fd], &now, 0))
		clear_forgotten(fd);
	errno = saved;
}

/*
 * Wakes readers, and adds nothing. After the counter was forgotten, so that it is for
 * those as well who have added and then saw no bits in zeros. Only if is_closed() was
 * false: another file must not be written.
 */
static void wake_by_write(int fd)
{
	const uint64_t nothing = 0;

	next_call(SYS_write, fd, (long)&nothing, sizeof(nothing), 0);
}

void cells_added(int fd, const struct flowfd_counter_header *header, uint64_t known)
{
	long error = notify(fd);
	bool closed;

	if (!error)
		return;
	closed = is_closed(fd, header, known, error);
	forget_refused(fd, known);
	if (!closed)
		wake_by_write(fd);
}

/*
 * If it was not given back there is a count, and the read(2) of whoever is woken here
 * wakes writers. If the descriptor was closed, the close has woken them.
 */
bool cells_taken(int fd, struct flowfd_counter_header *header, uint64_t known,
		 uint64_t produced, uint64_t value)
{
	long error = notify(fd);
	bool closed, returned;

	if (!error)
		return true;
	closed = is_closed(fd, header, known, error);
	returned = !closed && cells_add(header, value, &produced);
	forget_refused(fd, known);
	if (!closed && !returned)
		wake_by_write(fd);
	return !returned;
}

void cells_forget(int fd)
{
	int saved = errno;

	/* A child of vfork(2) has a table of its own: what it closes stays open here. */
	if (cells_know(fd) && is_own())
		forget_open(fd);
	errno = saved;
}

void cells_forget_range(unsigned int first, unsigned int last)
{
	int saved = errno;

	if (!cells_region || !is_own())
		return;
	for (unsigned int fd = first; fd <= last && fd < CELLS; fd++) {
		/* In a child that executes a program next, a store copies the page. */
		if (cells_known[fd])
			forget_open(fd);
	}
	errno = saved;
}

void cells_end(void)
{
	if (!is_own())
		return;
	ended = true;
	cells_forget_range(0, CELLS - 1);
}

/* @closes was read before the request, so that a later close is noticed. */
bool cells_look(int fd, const struct flowfd_counter_header *header, uint64_t known,
		uint64_t closes)
{
	uint32_t id = __atomic_load_n(&header->id, __ATOMIC_RELAXED);
	int saved = errno;
	bool still;

	if (!known)
		return false;
	still = has_id(fd, id);
	/* A child of vfork(2) knows nothing of its parent's descriptor. */
	if (!is_own())
		return still;
	if (!still && atomic_compare_exchange_strong(&cells_known[fd], &known, 0))
		clear_forgotten(fd);
	errno = saved;
	return still && atomic_compare_exchange_strong(&cells_known[fd], &known,
						       (known & ~(uint64_t)UINT32_MAX) |
							       (uint32_t)(closes + 1));
}

/* Threads that race make one region. */
static bool start(void)
{
	char *seen = NULL;
	char *made;

	if (cells_region)
		return true;
#ifndef __x86_64__
	cells_page = sysconf(_SC_PAGESIZE);
#endif
	made = mmap(NULL, CELLS * CELL_PAGES * cells_page, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (made == MAP_FAILED)
		return false;
	if (!atomic_compare_exchange_strong(&cells_region, &seen, made))
		munmap(made, CELLS * CELL_PAGES * cells_page);
	return true;
}

const char *cells_refuse(int fd)
{
	int saved = errno;
	bool started;

	if (fd >= CELLS)
		return "its descriptor is too high";
	if (!owner)
		return "the program has not begun";
	if (lost[fd])
		return "there was no memory";
	if (ended)
		return "threads have descriptors of their own";
	if (!is_own())
		return "the process may share its memory";
	started = start();
	errno = saved;
	return started ? NULL : "there is no address space";
}

/* For the upper half of a word; not 0 before there were 2^32. */
static uint64_t next_number(void)
{
	static _Atomic uint64_t made;

	return (atomic_fetch_add(&made, 1) + 1) << 32;
}

/*
 * Moves both words of a counter that nobody uses yet to where no other's in this memory
 * are, unless 2^32 were added at once.
 */
static void move(char *words, uint64_t distance)
{
	struct flowfd_counter_producer *producer = (void *)words;
	struct flowfd_counter_consumer *consumer = (void *)(words + cells_page);

	__atomic_fetch_add(&producer->produced, distance, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&consumer->consumed, distance, __ATOMIC_SEQ_CST);
}

static bool fits(const struct flowfd_counter_header *header)
{
	return header->magic == FLOWFD_COUNTER_MAGIC &&
	       header->version == FLOWFD_COUNTER_VERSION &&
	       header->page_size == cells_page;
}

/* Moves pages to a cell. */
static int attach(int fd, char *pages, size_t first, size_t count)
{
	size_t size = count * cells_page;
	int error;

	if (mremap(pages, size, size, MREMAP_MAYMOVE | MREMAP_FIXED,
		   page_of(fd, first)) != MAP_FAILED)
		return 0;
	error = errno;
	munmap(pages, size);
	fill(fd, first, count);
	return error;
}

/*
 * Moves the words before they come to the cell: a thread that notices only now that the
 * counter before this one was closed may clear the cell at any moment.
 */
static int map_words(int fd, uint64_t distance)
{
	char *words = mmap(NULL, 2 * cells_page, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			   cells_page);

	if (words == MAP_FAILED)
		return errno;
	move(words, distance);
	return attach(fd, words, 1, 2);
}

/* Elsewhere first: a driver's error must not leave a hole in the cell. */
static int map_header(int fd)
{
	char *header = mmap(NULL, cells_page, PROT_READ, MAP_SHARED, fd, 0);

	return header == MAP_FAILED ? errno : attach(fd, header, 0, 1);
}

static int map(int fd, uint64_t distance)
{
	int error = map_words(fd, distance);

	if (error)
		return error;
	error = map_header(fd);
	if (error)
		clear_pages(fd, 1, 2);
	return error;
}

int cells_map(int fd)
{
	struct flowfd_counter_header *header = cells_header(fd);
	uint64_t number = next_number();
	int saved = errno;
	int error;

	/* If the shim did not see how the counter before it was closed. */
	forget(fd);
	error = lost[fd] ? ENOMEM : map(fd, number);
	if (!error && !fits(header)) {
		clear(fd);
		error = EINVAL;
	}
	if (!error) {
		ids[fd] = header->id;
		atomic_store(&cells_known[fd], number | (uint32_t)(header->closes + 1));
		if (ended || !fits(header))
			forget(fd);
	}
	errno = saved;
	return error;
}

/* The kernel is asked before the first use. */
static void doubt(int fd)
{
	uint64_t known = cells_known[fd];
	uint32_t closes;

	if (!known)
		return;
	closes = __atomic_load_n(&cells_header(fd)->closes, __ATOMIC_RELAXED);
	/* Unless a signal handler closed it. */
	atomic_compare_exchange_strong(&cells_known[fd], &known,
				       (known & ~(uint64_t)UINT32_MAX) | closes);
}

/*
 * A child of fork(2) has one thread, and memory and descriptors of its own. The kernel
 * copies the descriptors first: meanwhile another thread of the parent may have made a
 * counter, which only the memory knows. Handlers of fork(2) that were registered before
 * this one run before it, and have no such doubt.
 */
static void own(void)
{
	owner = getpid();
	ended = false;
	for (int fd = 0; fd < CELLS; fd++)
		doubt(fd);
}

/* glibc has the first, and the second only in a static part; musl has the second. */
extern int __register_atfork(void (*prepare)(void), void (*parent)(void),
			     void (*child)(void), void *library) __attribute__((weak));
extern int pthread_atfork(void (*prepare)(void), void (*parent)(void),
			  void (*child)(void)) __attribute__((weak));

void cells_begin(void)
{
	own();
	if (__register_atfork)
		__register_atfork(NULL, NULL, own, NULL);
	else if (pthread_atfork)
		pthread_atfork(NULL, NULL, own);
}
