// SPDX-License-Identifier: MIT
/*
 * Adding and taking where nobody polls. The bits of @armed say who sleeps, as with the
 * module; the rest of the word is a number, which changes whenever somebody arms.
 */
#include <errno.h>

#include "deadline.h"
#include "doze.h"
#include "unpolled.h"
#include "words.h"

/* Added to @armed whenever a bit is set, and before anybody is woken. */
#define TURN 8U

/* How often to try to change a word that others change, too: each of them wakes. */
#define TRIES 64

/*
 * Returns the word to sleep on, or 0 if others were faster each time. Whoever calls looks
 * at the count afterwards (b).
 */
static uint32_t arm(const struct flowfd_counter *c, uint32_t bit)
{
	uint32_t armed = __atomic_load_n(flowfd__armed(c), __ATOMIC_RELAXED);
	unsigned int tries = TRIES;
	uint32_t wanted;

	do {
		if (!tries--)
			return 0;
		wanted = (armed | bit) + TURN;
	} while (!__atomic_compare_exchange_n(flowfd__armed(c), &armed, wanted, 0,
					      __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
	return wanted;
}

/* Whom to tell: readers of a count, and writers of any change. */
static uint32_t who_sleeps(const struct flowfd_counter *c, uint32_t armed)
{
	uint32_t who = armed & FLOWFD_ARMED_WRITERS;

	if (armed & FLOWFD_ARMED_READERS && flowfd__count(c))
		who |= FLOWFD_ARMED_READERS;
	return who;
}

static bool exchange(const struct flowfd_counter *c, uint32_t *from, uint32_t to)
{
	return __atomic_compare_exchange_n(flowfd__armed(c), from, to, 0,
					   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/*
 * Changes the word, so that nobody goes to sleep who looked before; wakes; and clears the
 * bits. If the process is killed in between, the bits are still there for the next add or
 * take. Whoever arms meanwhile changes the word, and keeps its bit.
 */
void flowfd__unpolled_notify(const struct flowfd_counter *c)
{
	uint32_t armed = __atomic_load_n(flowfd__armed(c), __ATOMIC_SEQ_CST);
	unsigned int tries = TRIES;
	uint32_t who, told;

	do {
		who = who_sleeps(c, armed);
		if (!who || !tries--)
			return;
		told = armed + TURN;
	} while (!exchange(c, &armed, told));
	flowfd__rouse(flowfd__armed(c), who);
	exchange(c, &told, told & ~who);
}

static int add_or_sleep(const struct flowfd_counter *c, uint64_t value, uint64_t deadline)
{
	uint32_t armed = arm(c, FLOWFD_ARMED_WRITERS);

	/* An add in memory may have looked at an old @consumed, or at old settings. */
	if (!armed || flowfd__has_room(c, flowfd__count(c), value) ||
	    !flowfd__may_wait(c, value))
		return flowfd__is_over(deadline) ? -ETIMEDOUT : 0;
	return flowfd__doze(flowfd__armed(c), armed, FLOWFD_ARMED_WRITERS, deadline);
}

/* Settings can change while it waits, so each look without room begins with them. */
int flowfd__unpolled_add(const struct flowfd_counter *c, uint64_t value,
			 uint64_t deadline)
{
	unsigned int vain = 0;
	int ret = 0, added;

	for (;;) {
		added = flowfd__try_add(c, value);
		if (added != -EAGAIN)
			return added;
		if (ret)
			return ret;
		ret = flowfd__overflows(c, value, &deadline);
		/* Also if nothing was added: the process that filled it may not have told. */
		if (!ret)
			flowfd__unpolled_notify(c);
		if (ret <= 0)
			return ret;
		if (deadline != FLOWFD__AT_ONCE)
			ret = add_or_sleep(c, value, deadline);
		else
			ret = flowfd__has_room(c, flowfd__count(c), value) ? 0 : -EAGAIN;
		if (!ret)
			ret = flowfd__rest(&vain, deadline);
	}
}

static int take_or_sleep(const struct flowfd_counter *c, uint64_t deadline)
{
	uint32_t armed = arm(c, FLOWFD_ARMED_READERS);

	if (!armed || flowfd__count(c))
		return flowfd__is_over(deadline) ? -ETIMEDOUT : 0;
	return flowfd__doze(flowfd__armed(c), armed, FLOWFD_ARMED_READERS, deadline);
}

int flowfd__unpolled_take(const struct flowfd_counter *c, uint64_t *value,
			  uint64_t deadline)
{
	unsigned int vain = 0;
	int ret = 0;

	while (!flowfd_counter_take(c, value)) {
		if (ret)
			return ret;
		/* For one that took and was killed. */
		flowfd__unpolled_notify(c);
		ret = deadline == FLOWFD__AT_ONCE ? -EAGAIN : take_or_sleep(c, deadline);
		if (!ret)
			ret = flowfd__rest(&vain, deadline);
	}
	return 0;
}
