// SPDX-License-Identifier: GPL-2.0-only
/*
 * The settings of a counter and what follows from a change of them, under the lock of its
 * wait queue. All requests that set something end in settings_apply().
 */
#include <linux/lockdep.h>

#include "counter.h"

#define SET_ALL                                                              \
	(FLOWFD_SET_MAXIMUM | FLOWFD_SET_READ_MARK | FLOWFD_SET_WRITE_MARK | \
	 FLOWFD_SET_MAX_DELAY | FLOWFD_SET_QOS | FLOWFD_SET_OVERFLOW)
#define SHOWN_FLAGS (FLOWFD_SEMAPHORE | FLOWFD_MAPPED)

/* A mark that could never be reached would be a lock-up. 1 is none. */
static bool mark_is_valid(u64 mark, u64 maximum)
{
	return mark <= 1 || mark < maximum;
}

/*
 * Whether a counter can have these settings. A semaphore's readers are woken one by one. The
 * memory of a mapped counter knows of a count and not of marks: each add below one would be
 * a call.
 */
static bool settings_are_valid(const struct flowfd_counter *c,
			       const struct flowfd_flow *args, u32 set)
{
	bool marks = args->read_mark > 1 || args->max_delay;
	u64 maximum = args->maximum ?: U64_MAX;

	if (c->store.semaphore &&
	    (marks || args->qos.token_capacity || args->qos.token_rate))
		return false;
	if (store_is_mapped(&c->store) && (marks || args->write_mark > 1))
		return false;
	if (!bridges_allow_maximum(c->bridges) && maximum != U64_MAX)
		return false;
	/* Programs can put more than the maximum into a mapped counter. */
	if (set & FLOWFD_SET_MAXIMUM && maximum <= counter_count(c))
		return false;
	return mark_is_valid(args->read_mark, maximum) &&
	       mark_is_valid(args->write_mark, maximum) &&
	       args->max_delay <= FLOWFD_MAX_DELAY_MAX &&
	       args->overflow <= FLOWFD_OVERFLOW_DROP && flowfd_qos_is_valid(&args->qos);
}

static void settings_get(const struct flowfd_counter *c, struct flowfd_flow *answer)
{
	const struct ready *r = &c->ready;

	*answer = (struct flowfd_flow){
		.maximum = store_maximum(&c->store),
		.read_mark = r->flow.read_mark,
		.write_mark = r->flow.write_mark,
		.max_delay = r->flow.max_delay,
		.qos = { r->bucket.capacity, r->bucket.rate },
		.overflow = r->flow.overflow,
		.flags = (c->sealed == COUNTER_SETTINGS_SEALED ? FLOWFD_SEAL : 0) |
			 (store_is_mapped(&c->store) ? FLOWFD_MAPPED : 0) |
			 (c->store.semaphore ? FLOWFD_SEMAPHORE : 0),
		.count = counter_count(c),
		.lost = r->flow.lost,
	};
}

/* What is not set stays. */
static void settings_merge(struct flowfd_flow *merged, const struct flowfd_flow *args,
			   u32 set)
{
	if (set & FLOWFD_SET_MAXIMUM)
		merged->maximum = args->maximum;
	if (set & FLOWFD_SET_READ_MARK)
		merged->read_mark = args->read_mark;
	if (set & FLOWFD_SET_WRITE_MARK)
		merged->write_mark = args->write_mark;
	if (set & FLOWFD_SET_MAX_DELAY)
		merged->max_delay = args->max_delay;
	if (set & FLOWFD_SET_QOS)
		merged->qos = args->qos;
	if (set & FLOWFD_SET_OVERFLOW)
		merged->overflow = args->overflow;
}

static void settings_store(struct flowfd_counter *c, const struct flowfd_flow *args)
{
	struct flow *f = &c->ready.flow;

	/* A delay goes on. What made the count ready until a take still does. */
	flow_move_due(f, args->max_delay);
	store_set_maximum(&c->store, args->maximum ?: U64_MAX);
	f->read_mark = args->read_mark ?: 1;
	f->write_mark = args->write_mark ?: 1;
	f->max_delay = args->max_delay;
	f->overflow = args->overflow;
	if (f->read_mark == 1)
		f->due = 0;
	f->has_policies = f->read_mark > 1 || f->write_mark > 1 ||
			  f->overflow != FLOWFD_OVERFLOW_WAIT;
	if (!f->has_policies)
		flow_restart(f);
	/* It may come earlier now. If it comes too early, it looks. */
	flowfd_ready_wait_for_due(&c->ready);
}

/*
 * Stores settings and delivers what follows: writers that must not sleep now try again; a
 * wakeup that was deferred passes a bucket that is new; pollers for room are told, whatever
 * there was before, unless nothing but a lower maximum is new.
 */
static void settings_apply(struct flowfd_counter *c, const struct flowfd_flow *args,
			   u32 set)
{
	bool room = set & (FLOWFD_SET_WRITE_MARK | FLOWFD_SET_OVERFLOW) ||
		    (args->maximum ?: U64_MAX) > store_maximum(&c->store);
	bool new_bucket = set & FLOWFD_SET_QOS, deferred = c->ready.bucket.deferred;
	__poll_t news = 0;

	settings_store(c, args);
	if (new_bucket)
		flowfd_ready_set_bucket(&c->ready, &args->qos);
	if (new_bucket && deferred) {
		news |= EPOLLIN;
		/* Nobody did while it was deferred. */
		counter_arm_readers(c);
	}
	if (room) {
		news |= EPOLLOUT;
		c->write_refused = true;
	}
	flowfd_writers_retry(c);
	flowfd_counter_settle(c, news, new_bucket);
	/* A source waits for room, and what it has need not wait now. */
	if (room && counter_loses(c) &&
	    !store_has_room(&c->store, c->ready.flow.write_mark))
		flowfd_counter_wake(c, EPOLLOUT);
}

/*
 * FLOWFD_IOC_SET_FLOW. Takes the lock. Returns 0; -EINVAL if the settings are not valid
 * for this counter now; or -EPERM if they are sealed.
 */
int flowfd_counter_set_flow(struct flowfd_counter *c, const struct flowfd_flow *args)
{
	u32 set = args->set ?: SET_ALL;
	struct flowfd_flow merged;
	int err = 0;

	if (args->set & ~SET_ALL || args->flags & ~(SHOWN_FLAGS | FLOWFD_SEAL) ||
	    args->reserved)
		return -EINVAL;
	spin_lock_irq(&c->wqh.lock);
	settings_get(c, &merged);
	settings_merge(&merged, args, set);
	if (c->sealed == COUNTER_SETTINGS_SEALED)
		err = -EPERM;
	else if (!settings_are_valid(c, &merged, set))
		err = -EINVAL;
	if (!err) {
		settings_apply(c, &merged, set);
		if (args->flags & FLOWFD_SEAL)
			WRITE_ONCE(c->sealed, COUNTER_SETTINGS_SEALED);
	}
	spin_unlock_irq(&c->wqh.lock);
	return err;
}

/* Settings and count of one moment. Takes the lock. */
void flowfd_counter_get_flow(struct flowfd_counter *c, struct flowfd_flow *answer)
{
	spin_lock_irq(&c->wqh.lock);
	settings_get(c, answer);
	spin_unlock_irq(&c->wqh.lock);
}

static bool counter_is_untouched(const struct flowfd_counter *c)
{
	const struct ready *r = &c->ready;

	return !c->sealed && !c->store.count && c->store.maximum == U64_MAX &&
	       !r->flow.has_policies && !r->flow.max_delay && !r->flow.lost &&
	       !c->bridges && !r->bucket.capacity && !r->bucket.rate;
}

/*
 * FLOWFD_IOC_SETUP_COUNTER: gives an opened counter, which may be in use already, checked
 * settings, once. Takes the lock. Returns 0; -EBUSY if it has settings, a count or a
 * bridge; or -EPERM if the settings are sealed.
 */
int flowfd_counter_set_up(struct flowfd_counter *c,
			  const struct flowfd_create_counter *args)
{
	const struct flowfd_flow flow = { .maximum = args->maximum, .qos = args->qos };
	int err = 0;

	spin_lock_irq(&c->wqh.lock);
	if (c->sealed == COUNTER_SETTINGS_SEALED)
		err = -EPERM;
	else if (!counter_is_untouched(c))
		err = -EBUSY;
	if (!err) {
		WRITE_ONCE(c->sealed, COUNTER_SEALED);
		c->store.semaphore = args->flags & FLOWFD_SEMAPHORE;
		settings_apply(c, &flow, FLOWFD_SET_MAXIMUM | FLOWFD_SET_QOS);
		c->store.count = args->initial;
		flowfd_counter_settle(c, args->initial ? EPOLLIN : 0, false);
	}
	spin_unlock_irq(&c->wqh.lock);
	return err;
}
