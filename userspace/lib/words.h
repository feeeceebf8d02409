/* SPDX-License-Identifier: MIT */
/*
 * The memory of a counter without the module: the ABI's words, and after them, in the same
 * pages, what the library needs besides. docs/mapped.md has the protocol.
 */
#ifndef FLOWFD_LIB_WORDS_H
#define FLOWFD_LIB_WORDS_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "device.h"

#define FLOWFD__WORDS_MAGIC   0x66616c6cU
#define FLOWFD__WORDS_VERSION 1

/**
 * struct flowfd__settings_page - the first page; it is mapped for reading
 * @header: of the ABI
 * @magic: FLOWFD__WORDS_MAGIC
 * @version: FLOWFD__WORDS_VERSION
 * @doorbell: of struct flowfd_counter
 * @overflow: FLOWFD_OVERFLOW_*
 */
struct flowfd__settings_page {
	struct flowfd_counter_header header;
	uint32_t magic;
	uint32_t version;
	uint32_t doorbell;
	uint32_t overflow;
};

/**
 * struct flowfd__producer_page - the second page
 * @words: of the ABI
 * @lost: sum of what was lost, which stops at the highest number
 */
struct flowfd__producer_page {
	struct flowfd_counter_producer words;
	__aligned_u64 lost;
};

/**
 * struct flowfd__consumer_page - the third page
 * @words: of the ABI
 * @misses: how many takes found nothing
 * @sleeps: how often a consumer went to sleep on @armed
 */
struct flowfd__consumer_page {
	struct flowfd_counter_consumer words;
	uint32_t misses;
	uint32_t sleeps;
};

static inline const struct flowfd__settings_page *
flowfd__settings_page(const struct flowfd_counter *c)
{
	return (const struct flowfd__settings_page *)c->add.header;
}

static inline struct flowfd__producer_page *
flowfd__producer_page(const struct flowfd_counter *c)
{
	return (struct flowfd__producer_page *)c->add.producer;
}

static inline struct flowfd__consumer_page *
flowfd__consumer_page(const struct flowfd_counter *c)
{
	return (struct flowfd__consumer_page *)c->take.consumer;
}

/* The word that says who waits: see doorbell.c and unpolled.c. */
static inline uint32_t *flowfd__armed(const struct flowfd_counter *c)
{
	return &c->take.consumer->armed;
}

/* Between two looks at a word that another thread will change soon. */
static inline void flowfd__relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
	__asm__ volatile("yield" : : : "memory");
#endif
}

/**
 * flowfd__count - a count that was there at one moment
 * @c: counter
 *
 * If others take meanwhile, all the time, it is the count or more.
 */
uint64_t flowfd__count(const struct flowfd_counter *c);

/** flowfd__has_room - whether @value fits, if the count is @count */
bool flowfd__has_room(const struct flowfd_counter *c, uint64_t count, uint64_t value);

/** flowfd__never_waits - whether what does not fit is lost, so that each add ends at once */
bool flowfd__never_waits(const struct flowfd_counter *c);

/**
 * flowfd__may_wait - whether the settings let an add wait for room
 * @c: counter
 * @value: of flowfd_add()
 *
 * To be asked after it has said that it waits: a thread that changes them looks for that
 * afterwards.
 */
bool flowfd__may_wait(const struct flowfd_counter *c, uint64_t value);

/**
 * flowfd__try_add - add in memory
 * @c: counter
 * @value: of flowfd_add()
 *
 * Returns 0; -EAGAIN: there is no room; or -EPERM: it was added, and somebody who waits
 * for it was not told.
 */
static inline int flowfd__try_add(const struct flowfd_counter *c, uint64_t value)
{
	int ret = flowfd_counter_add(c, value);

	if (!ret)
		return -EAGAIN;
	return ret < 0 ? ret : 0;
}

/**
 * flowfd__overflows - do what the counter does to a value that does not fit
 * @c: counter
 * @value: of flowfd_add()
 * @deadline: of deadline.h; FLOWFD__AT_ONCE is stored if the add must not wait
 *
 * Returns 1: wait for room; 0: the value was added or is lost, all or in part; or
 * -EINVAL: it can never fit.
 */
int flowfd__overflows(const struct flowfd_counter *c, uint64_t value, uint64_t *deadline);

#endif /* FLOWFD_LIB_WORDS_H */
