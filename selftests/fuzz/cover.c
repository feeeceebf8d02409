// SPDX-License-Identifier: GPL-2.0-only
/*
 * The code of the module that a program ran, by KCOV: the fuzzer shares a buffer with
 * each thread of it. Without KCOV, programs are made without guidance.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <linux/kcov.h>

#define ENTRIES 32768
#define EDGES (1 << 16)

static struct {
	int fd;
	unsigned long *pcs;	/* their number, then the addresses */
} buffers[THREADS];

static unsigned char seen[EDGES];
static int total;

static bool open_one(int i)
{
	void *map;

	buffers[i].fd = open("/sys/kernel/debug/kcov", O_RDWR | O_CLOEXEC);
	if (buffers[i].fd < 0 ||
	    ioctl(buffers[i].fd, KCOV_INIT_TRACE, ENTRIES))
		return false;
	map = mmap(NULL, ENTRIES * sizeof(long), PROT_READ | PROT_WRITE,
		   MAP_SHARED, buffers[i].fd, 0);
	buffers[i].pcs = map == MAP_FAILED ? NULL : map;
	return buffers[i].pcs;
}

bool cover_open(void)
{
	for (int i = 0; i < THREADS; i++) {
		if (!open_one(i))
			return false;
	}
	return true;
}

void cover_begin(unsigned int thread)
{
	if (buffers[thread].pcs)
		ioctl(buffers[thread].fd, KCOV_ENABLE, KCOV_TRACE_PC);
}

void cover_end(unsigned int thread)
{
	if (buffers[thread].pcs)
		ioctl(buffers[thread].fd, KCOV_DISABLE, 0);
}

void cover_forget(void)
{
	for (int i = 0; i < THREADS; i++) {
		if (buffers[i].pcs)
			__atomic_store_n(&buffers[i].pcs[0], 0, __ATOMIC_RELAXED);
	}
}

/* An edge: a pair of addresses in sequence, so that loops and orders count, too. */
static int take_edge(unsigned long from, unsigned long to)
{
	unsigned long edge = (from * 31 ^ to) * 0x9e3779b97f4a7c15ULL >> 48;

	if (seen[edge % EDGES])
		return 0;
	seen[edge % EDGES] = 1;
	return 1;
}

/* The number of new edges of the last program. */
int cover_take(void)
{
	int found = 0;

	for (int i = 0; i < THREADS; i++) {
		unsigned long from = 0, count;

		if (!buffers[i].pcs)
			continue;
		count = __atomic_load_n(&buffers[i].pcs[0], __ATOMIC_RELAXED);
		for (unsigned long n = 1; n <= count && n < ENTRIES; n++) {
			found += take_edge(from, buffers[i].pcs[n]);
			from = buffers[i].pcs[n];
		}
	}
	total += found;
	return found;
}

int cover_total(void)
{
	return total;
}
