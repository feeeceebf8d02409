// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls on the memory of rings and mapped counters. Another thread may unmap it
 * meanwhile, which ends the call, see kinds.c.
 */
#include "calls.h"

#include <linux/flowfd.h>

#define PAGE ((unsigned long)sysconf(_SC_PAGESIZE))

/* Mostly the page of a ring that has its header, or those of producers and consumers. */
void call_map(const __u32 *a)
{
	bool ring = a[2] % 2 == 0, any = a[3] % 8 == 7;
	struct map *m = any_map(a[1]);
	size_t first = a[2] % 32 > 27 ? a[2] / 32 % 4 : ring ? 0 : 1 + a[2] / 2 % 2;
	size_t size = PAGE * (any ? a[3] / 8 % 8 : 1);
	int protection = any ? a[3] / 64 % 8 : PROT_READ | PROT_WRITE;
	int sharing = a[3] % 16 == 15 ? MAP_PRIVATE : MAP_SHARED;
	int fd = ring ? any_ring(a[0]) : any_file(a[0]);
	char *at = mmap(NULL, size, protection, sharing, fd, PAGE * first);

	if (at == MAP_FAILED)
		return;
	if (m->at)
		munmap(m->at, m->size);
	*m = (struct map){ at, size };
}

void call_unmap(const __u32 *a)
{
	struct map *m = any_map(a[0]);

	if (m->at && a[1] % 4 == 3)
		munmap(m->at + PAGE * (a[1] / 4 % 4), PAGE);
	else if (m->at)
		munmap(m->at, m->size);
}

void call_remap(const __u32 *a)
{
	struct map *m = any_map(a[0]);
	size_t size = PAGE * (1 + a[1] % 8);
	char *at;

	if (!m->at)
		return;
	at = mremap(m->at, a[2] % 4 ? m->size : 0, size, MREMAP_MAYMOVE);
	if (at != MAP_FAILED)
		*m = (struct map){ at, size };
}

void call_protect(const __u32 *a)
{
	struct map *m = any_map(a[0]);

	if (m->at)
		mprotect(m->at, PAGE, a[1] % 2 ? PROT_READ | PROT_WRITE :
						 (int)(a[1] / 2 % 8));
}

void call_advise(const __u32 *a)
{
	static const int advice[] = {
		MADV_DONTNEED, MADV_REMOVE, MADV_DONTFORK, MADV_DOFORK,
		MADV_POPULATE_WRITE, MADV_WIPEONFORK, MADV_COLD, MADV_PAGEOUT,
	};
	struct map *m = any_map(a[0]);

	if (m->at)
		madvise(m->at, m->size, advice[a[1] % 8]);
}

/* Half of the time at words that matter: head, posts, an item, the index, a count. */
void call_scribble(const __u32 *a)
{
	struct map *m = any_map(a[0]);
	size_t offset = a[1] / 2 % PAGE & ~3UL;

	if (!m->at)
		return;
	if (a[1] % 4 == 0)
		offset = a[2] % 2 ? offsetof(struct flowfd_ring_header, head) :
				    offsetof(struct flowfd_ring_header, posted);
	else if (a[1] % 4 == 2)
		offset = a[1] % 8 == 2 ? sizeof(struct flowfd_ring_header) + a[1] / 8 % 64 * 4 :
					 a[1] / 8 % 4 * 4;
	for (__u32 i = 0; i <= a[3] % 64; i++)
		__atomic_store_n((__u32 *)(m->at + offset),
				 (__u32)any_value(a[2] + i), __ATOMIC_RELAXED);
}

/* The harvest of <linux/flowfd.h>; several threads may do it at the same time. */
void call_harvest(const __u32 *a)
{
	struct map *m = any_map(a[0]);
	struct flowfd_ring_header *header = (void *)m->at;
	struct flowfd_ring_item *items = (void *)(header + 1);
	__u32 *index, head, v;

	if (!m->at || header->index_offset >= PAGE - 64)
		return;
	index = (__u32 *)(m->at + header->index_offset);
	head = header->head;
	for (__u32 i = 0; i <= a[1] % 16; i++) {
		__u32 *slot = &index[head & 7 & (header->index_slots - 1)];

		v = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
		if (!v || v > 64)
			return;
		*slot = 0;
		__atomic_store_n(&header->head, ++head, __ATOMIC_RELEASE);
		__atomic_store_n(&items[v - 1].queued, 0, __ATOMIC_RELEASE);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		__atomic_exchange_n(&items[v - 1].ready, 0, __ATOMIC_SEQ_CST);
	}
}
