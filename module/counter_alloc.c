// SPDX-License-Identifier: GPL-2.0-only
/*
 * Making and freeing counters, and the settings that one begins with.
 */
#include <linux/slab.h>

#include "compat.h"
#include "counter.h"

static struct kmem_cache *counter_cache;

/*
 * Makes a counter by checked settings; a maximum of 0 is no maximum. Returns it sealed,
 * for flowfd_counter_free(), or an ERR_PTR.
 */
struct flowfd_counter *flowfd_counter_alloc(const struct flowfd_create_counter *args)
{
	struct flowfd_mapped *mapped =
		args->flags & FLOWFD_MAPPED ? flowfd_mapped_alloc(args) : NULL;
	u64 maximum = args->maximum ?: U64_MAX;
	struct flowfd_counter *c;
	int err;

	if (IS_ERR(mapped))
		return ERR_CAST(mapped);
	c = kmem_cache_alloc(counter_cache, GFP_KERNEL_ACCOUNT);
	if (!c) {
		err = -ENOMEM;
		goto free_mapped;
	}
	refcount_set(&c->object.refs, 1);
	c->store = (struct store){
		.count = mapped ? 0 : args->initial,
		.maximum = mapped ? 0 : maximum,
		.mapped = mapped,
		.semaphore = args->flags & FLOWFD_SEMAPHORE,
	};
	c->events = count_events(c->store.count, c->store.maximum);
	c->busy = false;
	c->sealed = COUNTER_SEALED;
	c->write_refused = false;
	c->stats = (struct counter_stats){};
	c->bridge = NULL;
	c->bridges = 0;
	hrtimer_setup(&c->ready.timer, flowfd_counter_expired, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS);
	flow_init(&c->ready.flow);
	flowfd_ready_set_bucket(&c->ready, &args->qos);
	if (mapped)
		mapped->counter = c;
	/* Last: from here on the list shows it. */
	err = flowfd_object_add_counter(&c->object, &c->id);
	if (err)
		goto free_counter;
	if (mapped)
		mapped->header->id = c->id;
	return c;

free_counter:
	kmem_cache_free(counter_cache, c);
free_mapped:
	flowfd_mapped_free(mapped);
	return ERR_PTR(err);
}

/* Drops a reference. The last frees the memory. */
void flowfd_counter_put(struct flowfd_object *o)
{
	struct flowfd_counter *c = container_of(o, struct flowfd_counter, object);

	if (!refcount_dec_and_test(&o->refs))
		return;
	flowfd_mapped_free(c->store.mapped);
	kmem_cache_free(counter_cache, c);
}

/* Ends a counter that no file refers to. */
void flowfd_counter_free(struct flowfd_counter *c)
{
	xa_erase(&flowfd_counters, c->id);
	/* In this order: the work item may start the timer. */
	if (c->store.mapped)
		cancel_work_sync(&c->store.mapped->heal);
	hrtimer_cancel(&c->ready.timer);
	flowfd_counter_put(&c->object);
}

static void counter_construct(void *object)
{
	struct flowfd_counter *c = object;

	init_waitqueue_head(&c->wqh);
	INIT_LIST_HEAD(&c->readers);
	INIT_LIST_HEAD(&c->writers);
	c->hooks = RB_ROOT;
}

/*
 * Makes the slab cache of counters. Returns 0 or -ENOMEM. A cache with a constructor is
 * never merged with another cache, so a counter that leaked is reported when the module
 * is removed.
 */
int flowfd_counter_init(void)
{
	counter_cache = kmem_cache_create("flowfd_counter", sizeof(struct flowfd_counter),
					  0, SLAB_HWCACHE_ALIGN | SLAB_ACCOUNT,
					  counter_construct);
	return counter_cache ? 0 : -ENOMEM;
}

/* The last counter is gone. */
void flowfd_counter_exit(void)
{
	kmem_cache_destroy(counter_cache);
}
