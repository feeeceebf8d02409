/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A split virtqueue in the memory of a program, which plays the guest: addresses of the
 * guest are those of the program. Each buffer has one descriptor, of the same number. The
 * numbers in it are little-endian, as in virtio 1.0.
 */
#ifndef VIRTQUEUE_H
#define VIRTQUEUE_H

#include <endian.h>
#include <linux/virtio_ring.h>

#include "selftest.h"

#define QUEUE_SIZE 256
#define BUFFER_SIZE 128

struct virtqueue {
	struct vring_desc desc[QUEUE_SIZE];
	struct {
		__u16 flags;
		__u16 idx;
		__u16 ring[QUEUE_SIZE];
		__u16 event;
	} avail;
	struct {
		__u16 flags;
		__u16 idx;
		struct vring_used_elem ring[QUEUE_SIZE];
		__u16 event;
	} used __attribute__((aligned(VRING_USED_ALIGN_SIZE)));
	__u16 taken;		/* of the used ones; the guest's own */
	char buffers[QUEUE_SIZE][BUFFER_SIZE];
};

/* @flags: VRING_DESC_F_WRITE for buffers that the device fills. */
static inline void virtqueue_init(struct virtqueue *q, __u16 flags)
{
	memset(q, 0, sizeof(*q));
	for (unsigned int i = 0; i < QUEUE_SIZE; i++) {
		q->desc[i].addr = htole64((unsigned long)q->buffers[i]);
		q->desc[i].len = htole32(BUFFER_SIZE);
		q->desc[i].flags = htole16(flags);
	}
}

/* The guest gives a buffer to the device. */
static inline void virtqueue_give(struct virtqueue *q, __u16 buffer)
{
	__u16 next = le16toh(q->avail.idx);

	q->avail.ring[next % QUEUE_SIZE] = htole16(buffer);
	__atomic_store_n(&q->avail.idx, htole16(next + 1), __ATOMIC_RELEASE);
}

/* The number of a buffer that the device has used; -1: none. */
static inline int virtqueue_take(struct virtqueue *q)
{
	if (le16toh(__atomic_load_n(&q->used.idx, __ATOMIC_ACQUIRE)) == q->taken)
		return -1;
	return le32toh(q->used.ring[q->taken++ % QUEUE_SIZE].id);
}

/* After virtqueue_give(): whether the device wants to be told. */
static inline bool virtqueue_wants_kick(struct virtqueue *q)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return !(__atomic_load_n(&q->used.flags, __ATOMIC_RELAXED) &
		 htole16(VRING_USED_F_NO_NOTIFY));
}

#endif /* VIRTQUEUE_H */
