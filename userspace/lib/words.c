// SPDX-License-Identifier: MIT
/* Count, room and overflow of a counter without the module. */
#include <errno.h>

#include "deadline.h"
#include "words.h"

/* How often to look for a count that was there at one moment. */
#define LOOKS 64

uint64_t flowfd__count(const struct flowfd_counter *c)
{
	const __aligned_u64 *word = &c->take.consumer->consumed;
	uint64_t consumed, produced;
	unsigned int looks = LOOKS;

	do {
		consumed = __atomic_load_n(word, __ATOMIC_SEQ_CST);
		produced = __atomic_load_n(&c->take.producer->produced, __ATOMIC_SEQ_CST);
	} while (__atomic_load_n(word, __ATOMIC_SEQ_CST) != consumed && --looks);
	return produced - consumed;
}

static uint64_t maximum_now(const struct flowfd_counter *c)
{
	return __atomic_load_n(&c->add.header->maximum, __ATOMIC_SEQ_CST);
}

bool flowfd__has_room(const struct flowfd_counter *c, uint64_t count, uint64_t value)
{
	uint64_t maximum = maximum_now(c);

	return count < maximum && maximum - count > value;
}

/*
 * Without a loop, as others can store there all the time. If the process is killed between
 * the two, the sum has wrapped.
 */
static void lose(const struct flowfd_counter *c, uint64_t value)
{
	__aligned_u64 *lost = &flowfd__producer_page(c)->lost;

	if (__atomic_fetch_add(lost, value, __ATOMIC_RELAXED) > UINT64_MAX - value)
		__atomic_store_n(lost, UINT64_MAX, __ATOMIC_RELAXED);
}

/* Returns what was added. @whole: all of it, or nothing. */
static uint64_t add_what_fits(const struct flowfd_counter *c, uint64_t value, bool whole)
{
	uint64_t count, maximum, part;
	unsigned int looks = LOOKS;

	do {
		count = flowfd__count(c);
		maximum = maximum_now(c);
		part = count < maximum ? maximum - count - 1 : 0;
		if (part > value)
			part = value;
		if (!part || (whole && part < value))
			return 0;
	} while (!flowfd_counter_add(c, part) && --looks);
	return looks ? part : 0;
}

static uint32_t overflow_now(const struct flowfd_counter *c)
{
	return __atomic_load_n(&flowfd__settings_page(c)->overflow, __ATOMIC_SEQ_CST);
}

bool flowfd__never_waits(const struct flowfd_counter *c)
{
	uint32_t overflow = overflow_now(c);

	return overflow == FLOWFD_OVERFLOW_SATURATE || overflow == FLOWFD_OVERFLOW_DROP;
}

bool flowfd__may_wait(const struct flowfd_counter *c, uint64_t value)
{
	return overflow_now(c) == FLOWFD_OVERFLOW_WAIT && value < maximum_now(c);
}

int flowfd__overflows(const struct flowfd_counter *c, uint64_t value, uint64_t *deadline)
{
	uint32_t overflow = overflow_now(c);
	bool whole = overflow == FLOWFD_OVERFLOW_DROP;

	if (value == UINT64_MAX)
		return -EINVAL;
	if (whole || overflow == FLOWFD_OVERFLOW_SATURATE) {
		lose(c, value - add_what_fits(c, value, whole));
		return 0;
	}
	if (value >= maximum_now(c))
		return -EINVAL;
	if (overflow == FLOWFD_OVERFLOW_FAIL)
		*deadline = FLOWFD__AT_ONCE;
	return 1;
}
