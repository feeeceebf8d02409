// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls on the memory of rings and mapped counters. Another thread may unmap it meanwhile, which ends the
 * call, see kinds.c.
 */
#include "calls.h"

#include <linux/flowfd.h>

#define PAGE ((unsigned long)sysconf(_SC_PAGESIZE))

void call_map(const __u32 *a)
{
	struct map *m = any_map(a[1]);
	size_t size = PAGE * (a[2] % 8 ? 1 : a[2] / 8 % 8);
	int protection = a[3] % 8 ? PROT_READ | PROT_WRITE : a[3] / 8 % 8;
	char *at = mmap(NULL, size, protection,
			a[3] % 16 ? MAP_SHARED : MAP_PRIVATE, any_ring(a[0]),
			a[2] % 8 ? 0 : PAGE * (a[2] / 64 % 4));

	if (at == MAP_FAILED)
		return;
	if (m->at)
		munmap(m->at, m->size);
	*m = (struct map){ at, size };
}

/* Mostly the pages of producers and consumers. */
void call_map_counter(const __u32 *a)
{
	struct map *m = any_map(a[1]);
	size_t first = a[2] % 8 ? 1 + a[2] % 2 : a[2] / 8 % 4;
	size_t size = PAGE * (a[3] % 8 ? 1 : a[3] / 8 % 4);
	char *at = mmap(NULL, size,
			first ? PROT_READ | PROT_WRITE : (int)(a[3] / 32 % 4),
			MAP_SHARED, any_file(a[0]), first * PAGE);

	if (at == MAP_FAILED)
		return;
	if (m->at)
		munmap(m->at, m->size);
	*m = (struct map){ at, size };
}

/* Half an add or take in memory, or bits: what is missing, another call may do. */
void call_count(const __u32 *a)
{
	struct map *m = any_map(a[0]);
	struct flowfd_counter_consumer *c = (void *)m->at;

	if (!m->at)
		return;
	if (a[1] % 4 == 3)
		__atomic_fetch_or(&c->armed, a[2] % 8, __ATOMIC_SEQ_CST);
	else
		__atomic_add_fetch(&c->consumed, a[2] % 8 ? a[2] % 8 :
				   any_value(a[2] / 8), __ATOMIC_SEQ_CST);
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

/*
 * Half a post, of the first items, perhaps without the look at @armed: what is missing,
 * another call may do.
 */
void call_post(const __u32 *a)
{
	struct map *m = any_map(a[0]);
	struct flowfd_ring_header *header = (void *)m->at;
	struct flowfd_ring_item *item = (void *)(header + 1);
	__u32 number = a[1] % 8, top, none = 0;

	if (!m->at)
		return;
	item += number;
	__atomic_fetch_or(&item->ready, a[2], __ATOMIC_SEQ_CST);
	top = __atomic_load_n(&header->posted, __ATOMIC_SEQ_CST);
	if (!__atomic_compare_exchange_n(&item->queued, &none,
					 top << 2 | FLOWFD_RING_IN_STACK, false,
					 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return;
	__atomic_compare_exchange_n(&header->posted, &top, number + 1, false,
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	if (a[3] % 4 && __atomic_load_n(&header->armed, __ATOMIC_SEQ_CST))
		call_notify_ring(a + 3);
}

/* Takes the stack, and clears the marks of a few items. */
void call_take_posts(const __u32 *a)
{
	struct map *m = any_map(a[0]);
	struct flowfd_ring_header *header = (void *)m->at;
	struct flowfd_ring_item *items = (void *)(header + 1);
	__u32 number;

	if (!m->at)
		return;
	number = __atomic_exchange_n(&header->posted, 0, __ATOMIC_SEQ_CST);
	for (__u32 i = 0; i < 8 && number && number <= 8; i++) {
		header->taken = a[1] % 8 ? 0 : number;
		number = __atomic_exchange_n(&items[number - 1].queued, 0,
					     __ATOMIC_SEQ_CST) >> 2;
	}
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
