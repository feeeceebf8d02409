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

/* Cells that could not be filled: the memory may be the program's. */
static _Atomic bool lost[CELLS];

/* Threads may have different tables of descriptors. */
static _Atomic bool ended;

/* False: a filter of seccomp(2) refuses it, or another file has the number. */
static bool notify(int fd)
{
	return next_call(SYS_ioctl, fd, FLOWFD_IOC_COUNTER_NOTIFY, 0, 0) == 0;
}

static bool is_own(void)
{
	return owner == getpid();
}

/*
 * Before Linux 6.12, a mapping that fails can leave a hole, which malloc(3) may get next.
 * Pages that cannot be written are not charged.
 */
static bool fill(char *start)
{
	bool filled = true;

	for (size_t page = 0; page < CELL_PAGES; page++)
		filled &= mmap(start + page * cells_page, cells_page, PROT_READ,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
			       0) != MAP_FAILED;
	return filled;
}

/*
 * Zeros for a cell, in one step: a thread that meets neither the old pages nor the new
 * ones waits. Without memory for that, nobody begins to use what is there.
 */
static void clear(int fd)
{
	char *start = (char *)cells_header(fd);

	if (mmap(start, CELL_PAGES * cells_page, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
		 0) == MAP_FAILED)
		lost[fd] = !fill(start);
}

/*
 * After the descriptor was forgotten. A thread that comes late may clear the cell of the
 * next counter, which then must not be known, or each operation on it would be tried in
 * vain.
 */
static void clear_forgotten(int fd)
{
	do {
		clear(fd);
	} while (atomic_exchange(&cells_known[fd], 0));
}

static void forget(int fd)
{
	if (atomic_exchange(&cells_known[fd], 0))
		clear_forgotten(fd);
}

/*
 * Notifies after the last add and take in memory: a thread that comes to notify only when
 * the descriptor is closed cannot.
 */
static void forget_open(int fd)
{
	if (!atomic_exchange(&cells_known[fd], 0))
		return;
	clear_forgotten(fd);
	notify(fd);
}

/* Two words of a cell: whether it had the same counter. */
static bool is_same(uint64_t known, uint64_t other)
{
	return known >> 32 == other >> 32;
}

/* Without the kernel, which may refuse to be asked. */
static bool is_closed(int fd, const struct flowfd_counter_header *header, uint64_t known)
{
	uint32_t closes = __atomic_load_n(&header->closes, __ATOMIC_ACQUIRE);
	uint64_t now = cells_known[fd];

	return (uint32_t)now != closes + 1 || !is_same(now, known);
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

/* A file that has the number since then must not be written. */
void cells_added(int fd, const struct flowfd_counter_header *header, uint64_t known)
{
	const uint64_t nothing = 0;
	bool closed;

	if (notify(fd))
		return;
	closed = is_closed(fd, header, known);
	forget_refused(fd, known);
	/* Wakes readers, and adds nothing. */
	if (!closed)
		next_call(SYS_write, fd, (long)&nothing, sizeof(nothing), 0);
}

/*
 * If it does not fit any more, there is a count, and the next read(2) wakes writers. If
 * the descriptor was closed, the close has woken them.
 */
bool cells_taken(int fd, struct flowfd_counter_header *header, uint64_t known,
		 uint64_t value)
{
	bool returned;

	if (notify(fd))
		return true;
	returned = is_same(cells_known[fd], known) && cells_add(header, value);
	forget_refused(fd, known);
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
	still = next_call(SYS_ioctl, fd, FLOWFD_IOC_COUNTER_ID, 0, 0) == (long)id;
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

/*
 * Moves the words before they come to the cell: a thread that notices only now that the
 * counter before this one was closed may clear the cell at any moment.
 */
static int map_words(int fd, struct flowfd_counter_header *header, uint64_t distance)
{
	size_t size = 2 * cells_page;
	char *words =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, cells_page);
	int error;

	if (words == MAP_FAILED)
		return errno;
	move(words, distance);
	if (mremap(words, size, size, MREMAP_MAYMOVE | MREMAP_FIXED,
		   cells_producer(header)) != MAP_FAILED)
		return 0;
	error = errno;
	munmap(words, size);
	return error;
}

static bool fits(const struct flowfd_counter_header *header)
{
	return header->magic == FLOWFD_COUNTER_MAGIC &&
	       header->version == FLOWFD_COUNTER_VERSION &&
	       header->page_size == cells_page;
}

static int map(int fd, struct flowfd_counter_header *header, uint64_t distance)
{
	int error = map_words(fd, header, distance);

	if (error)
		return error;
	if (mmap(header, cells_page, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) ==
	    MAP_FAILED)
		return errno;
	return fits(header) ? 0 : EINVAL;
}

int cells_map(int fd)
{
	struct flowfd_counter_header *header = cells_header(fd);
	uint64_t number = next_number();
	int saved = errno;
	int error;

	/* If the shim did not see how the counter before it was closed. */
	forget(fd);
	error = map(fd, header, number);
	if (!error) {
		atomic_store(&cells_known[fd], number | (uint32_t)(header->closes + 1));
		if (ended || !fits(header))
			forget(fd);
	} else {
		clear(fd);
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
