/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two threads that do an operation each at the same time, round after round. Whoever
 * includes this says what a scene is: what both operate on.
 */
#ifndef RACERS_H
#define RACERS_H

#include "selftest.h"

/* Longest delay before an operation: about as long as one takes. */
#define RACERS_DELAY_NS 60000

struct scene;

typedef void operation_run(struct scene *s);

/* One of the two threads; @run is NULL for it to exit. */
struct racer {
	pthread_t thread;
	struct racers *all;
	operation_run *run;
	unsigned int random;
};

/* They meet before and after each round. */
struct racers {
	struct racer both[2];
	struct scene *scene;
	pthread_barrier_t meet;
	int started;
};

/* With the barrier alone, one thread would be ahead by the time of a wakeup. */
static inline void racer_start(int *started)
{
	__atomic_add_fetch(started, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(started, __ATOMIC_SEQ_CST) < 2)
		sched_yield();
}

static inline void *racer_run(void *arg)
{
	struct racer *r = arg;

	for (;;) {
		pthread_barrier_wait(&r->all->meet);
		if (!r->run)
			return NULL;
		racer_start(&r->all->started);
		spin_ns(rand_r(&r->random) % RACERS_DELAY_NS);
		r->run(r->all->scene);
		pthread_barrier_wait(&r->all->meet);
	}
}

static inline bool racers_start(struct racers *all, struct scene *s)
{
	*all = (struct racers){ .scene = s };
	pthread_barrier_init(&all->meet, NULL, 3);
	for (int i = 0; i < 2; i++) {
		struct racer *r = &all->both[i];

		*r = (struct racer){ .all = all, .random = i + 1 };
		if (pthread_create(&r->thread, NULL, racer_run, r))
			return false;
	}
	return true;
}

/* Returns when both operations are done. The two threads take turns in doing them. */
static inline void racers_race(struct racers *all, unsigned long round, operation_run *a,
			       operation_run *b)
{
	all->started = 0;
	all->both[round % 2].run = a;
	all->both[1 - round % 2].run = b;
	pthread_barrier_wait(&all->meet);
	pthread_barrier_wait(&all->meet);
}

static inline void racers_end(struct racers *all)
{
	all->both[0].run = NULL;
	all->both[1].run = NULL;
	pthread_barrier_wait(&all->meet);
	pthread_join(all->both[0].thread, NULL);
	pthread_join(all->both[1].thread, NULL);
}

#endif /* RACERS_H */
