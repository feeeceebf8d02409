/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A counter with policies as programs use it, by calls and, if it is mapped, in memory.
 * The flow tests share it.
 */
#ifndef FLOW_USER_H
#define FLOW_USER_H

#include "mapped_user.h"
#include "selftest.h"

#define MSEC 1000000ULL

static inline long set_flow(int fd, struct flowfd_flow flow)
{
	return result_of(ioctl(fd, FLOWFD_IOC_SET_FLOW, &flow));
}

#define SET_FLOW(fd, ...) set_flow(fd, (struct flowfd_flow){ __VA_ARGS__ })

/* A maximum of 0 shows that the call failed. */
static inline struct flowfd_flow flow_of(int fd)
{
	struct flowfd_flow flow = { 0 };

	if (ioctl(fd, FLOWFD_IOC_GET_FLOW, &flow))
		flow.maximum = 0;
	return flow;
}

static inline __u64 lost_of(int fd)
{
	return flow_of(fd).lost;
}

/* Returns 0 or a negative errno. */
static inline long write_with(int fd, __u64 value, __u64 timeout, __u32 flags)
{
	struct flowfd_transfer args = { .value = value, .timeout = timeout,
					.flags = flags };

	return result_of(ioctl(fd, FLOWFD_IOC_COUNTER_WRITE, &args));
}

static inline long read_with(int fd, __u64 *value, __u64 timeout, __u32 flags)
{
	struct flowfd_transfer args = { .value = 12345, .timeout = timeout,
					.flags = flags };
	long err = result_of(ioctl(fd, FLOWFD_IOC_COUNTER_READ, &args));

	*value = args.value;
	return err;
}

static inline long add_urgent(int fd, __u64 value)
{
	return write_with(fd, value, 0, FLOWFD_URGENT);
}

/* Takes what is there, though the descriptor is blocking. */
static inline long take_now(int fd, __u64 *value)
{
	return read_with(fd, value, 0, FLOWFD_NONBLOCK);
}

/* How a test adds and takes. */
enum access {
	BY_CALL,
	IN_MEMORY,
};

/**
 * struct flow - a blocking counter and how it is used
 * @fd: of the counter
 * @in_memory: puts and gets are made in memory, where the protocol allows it
 * @m: its memory, if @in_memory
 */
struct flow {
	int fd;
	bool in_memory;
	struct mapped m;
};

/* Returns 0 or a negative errno. */
static inline int flow_open(struct flow *f, enum origin origin, enum access access)
{
	*f = (struct flow){ .fd = open_counter(origin, 0, 0) };
	if (f->fd < 0)
		return -errno;
	f->in_memory = access == IN_MEMORY;
	return f->in_memory ? mapped_map(&f->m, f->fd) : 0;
}

static inline void flow_close(struct flow *f)
{
	if (f->in_memory)
		mapped_unmap(&f->m);
	close(f->fd);
}

/* Returns 8 or a negative errno; sleeps if there is no room. */
static inline long put(struct flow *f, __u64 value)
{
	return f->in_memory ? mapped_add(&f->m, value) : add(f->fd, value);
}

/* Returns 8 or -EAGAIN; never sleeps. */
static inline long get(struct flow *f, __u64 *value)
{
	if (f->in_memory)
		return mapped_take(&f->m, value);
	return take_now(f->fd, value) ?: 8;
}

/* What get() takes; 0: nothing. */
static inline __u64 got(struct flow *f)
{
	__u64 value = 0;

	return get(f, &value) == 8 ? value : 0;
}

/* Tests of marks and delay: a mapped counter has none. */
#define FLOW_MARKS_FIXTURE(name)                                                           \
	FIXTURE(name)                                                                \
	{                                                                            \
		struct flow f;                                                       \
		int fd;                                                              \
	};                                                                           \
	FIXTURE_VARIANT(name)                                                        \
	{                                                                            \
		enum origin origin;                                                  \
		enum access access;                                                  \
	};                                                                           \
	FIXTURE_SETUP(name)                                                          \
	{                                                                            \
		ASSERT_EQ(0, flow_open(&self->f, variant->origin, variant->access)); \
		self->fd = self->f.fd;                                               \
	}                                                                            \
	FIXTURE_TEARDOWN(name)                                                       \
	{                                                                            \
		flow_close(&self->f);                                                \
	}                                                                            \
	FIXTURE_VARIANT_ADD(name, opened) { .origin = OPENED };                      \
	FIXTURE_VARIANT_ADD(name, created) { .origin = CREATED }

/* Tests of "flow" run on each kind of counter, and in memory. */
#define FLOW_FIXTURE(name)                                                           \
	FLOW_MARKS_FIXTURE(name);                                                    \
	FIXTURE_VARIANT_ADD(name, mapped) { .origin = MAPPED };                      \
	FIXTURE_VARIANT_ADD(name, in_memory) { .origin = MAPPED, .access = IN_MEMORY }

#endif /* FLOW_USER_H */
