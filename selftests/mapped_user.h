/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A mapped counter as programs use it: create, map, add and take. The steps are those
 * of <linux/flowfd.h>. The mapped tests share it.
 */
#ifndef MAPPED_USER_H
#define MAPPED_USER_H

#include "selftest.h"

struct mapped {
	int fd;
	const struct flowfd_counter_header *header;
	struct flowfd_counter_producer *producer;
	struct flowfd_counter_consumer *consumer;
	unsigned long calls;	/* notifications */
};

#define ARMED_ALL (FLOWFD_ARMED_READERS | FLOWFD_ARMED_WRITERS | FLOWFD_ARMED_WATCHED)

static inline void *map_page(int fd, int page, int prot)
{
	long size = sysconf(_SC_PAGESIZE);

	return mmap(NULL, size, prot, MAP_SHARED, fd, page * size);
}

/* Maps a counter of which only the descriptor is known. Returns 0 or a negative errno. */
static inline int mapped_map(struct mapped *m, int fd)
{
	*m = (struct mapped){ .fd = fd };
	m->header = map_page(fd, 0, PROT_READ);
	m->producer = map_page(fd, 1, PROT_READ | PROT_WRITE);
	m->consumer = map_page(fd, 2, PROT_READ | PROT_WRITE);
	return m->header == MAP_FAILED || m->producer == MAP_FAILED ||
	       m->consumer == MAP_FAILED ? -errno : 0;
}

static inline int mapped_create(struct mapped *m, struct flowfd_create_counter args)
{
	int fd, err;

	*m = (struct mapped){ .fd = -1 };
	args.flags |= FLOWFD_MAPPED;
	fd = create_counter(&args);
	if (fd < 0)
		return fd;
	err = mapped_map(m, fd);
	if (err)
		close(fd);
	return err;
}

#define MAPPED_CREATE(m, ...) \
	mapped_create(m, (struct flowfd_create_counter){ __VA_ARGS__ })

static inline void mapped_unmap(struct mapped *m)
{
	long size = sysconf(_SC_PAGESIZE);

	munmap((void *)m->header, size);
	munmap(m->producer, size);
	munmap(m->consumer, size);
}

static inline void mapped_close(struct mapped *m)
{
	mapped_unmap(m);
	close(m->fd);
}

static inline long notify(int fd)
{
	return result_of(ioctl(fd, FLOWFD_IOC_COUNTER_NOTIFY));
}

static inline void mapped_notify(struct mapped *m)
{
	__atomic_add_fetch(&m->calls, 1, __ATOMIC_RELAXED);
	notify(m->fd);
}

static inline __u32 mapped_armed(const struct mapped *m)
{
	return __atomic_load_n(&m->consumer->armed, __ATOMIC_SEQ_CST);
}

static inline __u64 mapped_count(const struct mapped *m)
{
	__u64 consumed = __atomic_load_n(&m->consumer->consumed, __ATOMIC_ACQUIRE);

	return __atomic_load_n(&m->producer->produced, __ATOMIC_ACQUIRE) - consumed;
}

/* The first half of an add: false if there is no room. */
static inline bool mapped_produce(struct mapped *m, __u64 value)
{
	__u64 c, p, maximum;

	do {
		c = __atomic_load_n(&m->consumer->consumed, __ATOMIC_ACQUIRE);
		p = __atomic_load_n(&m->producer->produced, __ATOMIC_ACQUIRE);
		maximum = __atomic_load_n(&m->header->maximum, __ATOMIC_RELAXED);
		if (p - c >= maximum || maximum - (p - c) <= value)
			return false;
	} while (!__atomic_compare_exchange_n(&m->producer->produced, &p, p + value,
					      false, __ATOMIC_SEQ_CST,
					      __ATOMIC_RELAXED));
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return true;
}

/* Returns 8 or a negative errno, as a write does. */
static inline long mapped_add(struct mapped *m, __u64 value)
{
	if (!value || !mapped_produce(m, value))
		return add(m->fd, value);
	if (mapped_armed(m) & FLOWFD_ARMED_READERS)
		mapped_notify(m);
	return 8;
}

/* The first half of a take. Returns what @produced was. */
static inline __u64 mapped_consume(struct mapped *m, __u64 *value)
{
	__u64 c, p;

	do {
		c = __atomic_load_n(&m->consumer->consumed, __ATOMIC_ACQUIRE);
		p = __atomic_load_n(&m->producer->produced, __ATOMIC_ACQUIRE);
		*value = p - c;
	} while (p != c &&
		 !__atomic_compare_exchange_n(&m->consumer->consumed, &c, p, false,
					      __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return p;
}

/* The second half. */
static inline void mapped_arm(struct mapped *m, __u64 produced)
{
	__u32 a = mapped_armed(m);
	bool call = a & FLOWFD_ARMED_WRITERS;

	if (a & FLOWFD_ARMED_WATCHED) {
		if (!(a & FLOWFD_ARMED_READERS))
			__atomic_fetch_or(&m->consumer->armed, FLOWFD_ARMED_READERS,
					  __ATOMIC_SEQ_CST);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		call |= __atomic_load_n(&m->producer->produced, __ATOMIC_SEQ_CST) !=
			produced;
	}
	if (call)
		mapped_notify(m);
}

/* Returns 8 or -EAGAIN, as a non-blocking read does, and makes no call to read. */
static inline long mapped_take(struct mapped *m, __u64 *value)
{
	/* Arms in any case: a take that finds nothing may follow a wakeup. */
	mapped_arm(m, mapped_consume(m, value));
	return *value ? 8 : -EAGAIN;
}

#define MAPPED_FIXTURE(name, ...)                              \
	FIXTURE(name)                                          \
	{                                                      \
		struct mapped m;                               \
	};                                                     \
	FIXTURE_SETUP(name)                                    \
	{                                                      \
		ASSERT_EQ(0, MAPPED_CREATE(&self->m, __VA_ARGS__)); \
	}                                                      \
	FIXTURE_TEARDOWN(name)                                 \
	{                                                      \
		mapped_close(&self->m);                        \
	}

#endif /* MAPPED_USER_H */
