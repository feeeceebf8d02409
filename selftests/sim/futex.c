// SPDX-License-Identifier: GPL-2.0-only
/* futex(2) on words that processes share. */
#include "kernel.h"

#include "futex.h"

struct sleeper {
	struct sleeper *next;
	const u32 *word;
	u32 bits;
	struct task_struct *task;
	bool woken;
};

static struct sleeper *sleepers;

void futex_begin(void)
{
	sleepers = NULL;
}

static void leave(struct sleeper *s)
{
	struct sleeper **at = &sleepers;

	while (*at && *at != s)
		at = &(*at)->next;
	if (*at)
		*at = s->next;
}

/* Nothing else runs between the look at the word and the entry into the list. */
int futex_wait(const u32 *word, u32 value, u32 bits, u64 deadline)
{
	struct sleeper s = { .word = word, .bits = bits, .task = current };
	bool over = false;

	if (*word != value)
		return -EAGAIN;
	s.next = sleepers;
	sleepers = &s;
	while (!s.woken && !over && !signal_pending(current)) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (!s.woken)
			over = sim_sleep(deadline);
		__set_current_state(TASK_RUNNING);
	}
	leave(&s);
	if (s.woken)
		return 0;
	return over ? -ETIMEDOUT : -EINTR;
}

void futex_wake(const u32 *word, u32 bits)
{
	struct sleeper *s;

	for (s = sleepers; s; s = s->next) {
		if (s->word != word || !(s->bits & bits))
			continue;
		s->woken = true;
		wake_up_process(s->task);
	}
}
