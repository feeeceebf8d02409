/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ring (docs/ring.md): producers that publish, and a consumer that harvests
 * until the slot at its head is empty, and then sleeps. Proven: no event is lost,
 * no wakeup is lost, no entry is overwritten, an item is in the index at most
 * once. docs/model/prove checks this file as it is, then with each -D below that
 * removes a part of the algorithm; then there must be an error.
 *
 * Every step that another process can see is a separate step here. The rest of its
 * atomic or d_step is private to the process: its variables, and what it puts in its
 * own buffer, which no other process sees before it is drained. Waiting for the buffer
 * to drain shares a step with the access that follows, because the process does
 * nothing in between.
 *
 * Two publishers of one item are possible: a file can have two wait queues.
 *
 * With POLLED, all wake without a key: the bits come after the entry, by a poll.
 */

#ifndef PRODUCERS
#define PRODUCERS 3
#endif
#ifndef WANTED
#define WANTED 1
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#define ITEMS 2
#ifndef SLOTS
#define SLOTS 2
#endif

#define CONSUMER PRODUCERS
#define CPUS (PRODUCERS + 1)

/* Places in memory. A slot is 0 or item + 1. */
#define READY(item) (item)
#define QUEUED(item) (ITEMS + (item))
#define SLOT(n) (2 * ITEMS + (n))
#define SLEEPER (2 * ITEMS + SLOTS)
#define PLACES (SLEEPER + 1)

#define IS_QUEUED(place) ((place) >= QUEUED(0) && (place) < SLOT(0))
#define IS_SLOT(place) ((place) >= SLOT(0) && (place) < SLEEPER)
#define OR_PLACE(place) ((place) < ITEMS)

#ifdef NO_RELEASE_OF_QUEUED
#define RELEASES_QUEUED false
#else
#define RELEASES_QUEUED true
#endif
#define RELEASE(place, value) (IS_QUEUED(place) && RELEASES_QUEUED)

#define OTHER(place) ((place) == SLOT(0) -> SLOT(SLOTS - 1) : SLOT(0))

/* Bits that were published and not yet delivered. */
byte due[ITEMS];

inline stored(cpu, where, what)
{
	if
	:: OR_PLACE(where) -> due[where] = due[where] | what
	:: IS_SLOT(where) && what != 0 ->
		assert(memory[where] == 0);	/* an entry is overwritten */
#if SLOTS > 1
		assert(memory[OTHER(where)] != what)	/* an item is queued twice */
#endif
	:: else
	fi
}

#include "memory.pml"

/* Private to the kernel; only its lower bits are ever used. */
byte tail;
/*
 * The head as the kernel sees it. The consumer stores it before it announces itself and
 * passes barrier e. Wakers read it after barrier d: one that reads an older head comes
 * before e, and the consumer then sees its slot.
 */
byte kernel_head;
/* If the slot at the head is filled: the tail has advanced, perhaps by all slots. */
#define ENTRIES \
	(tail == kernel_head -> SLOTS : (tail + SLOTS - kernel_head) % SLOTS)

#ifdef NO_BARRIER_BEFORE_QUEUED
#define before_queued(cpu) atomic_may_run(cpu)
#else
#define before_queued(cpu) drained(cpu)
#endif
#ifdef NO_BARRIER_BEFORE_SLEEPER
#define before_sleeper(cpu) true
#else
#define before_sleeper(cpu) drained(cpu)
#endif
#ifdef NO_BARRIER_BEFORE_TAKE
#define before_take(cpu) atomic_may_run(cpu)
#else
#define before_take(cpu) drained(cpu)
#endif
#ifdef NO_BARRIER_BEFORE_SLEEP
#define before_sleep(cpu) true
#else
#define before_sleep(cpu) drained(cpu)
#endif

proctype producer(byte me)
{
	byte rounds = ROUNDS;
	byte item;

work:
	do
	:: atomic {
		rounds > 0 && atomic_may_run(me) ->
		if
		:: item = 0
		/* The items are alike, so the very first choice is fixed. */
		:: me > 0 || rounds < ROUNDS -> item = 1
		fi;
		rounds--;
#ifndef POLLED
		store(me, READY(item), 1 << me)	/* atomic_or() */
	   };
#else
	   };
	   /* A wakeup without a key: its place in the index, and no look for sleepers. */
	   atomic {
		drained(me);
		if
		:: memory[QUEUED(item)] -> goto poll
		:: else -> memory[QUEUED(item)] = 1
		fi
	   };
	   atomic {
		store(me, SLOT(tail), item + 1);
		tail = (tail + 1) % SLOTS
	   };
poll:	   atomic {
		atomic_may_run(me);
		store(me, READY(item), 1 << me)	/* atomic_or() */
	   };
#endif
	   atomic {
		before_queued(me);
#ifndef NO_QUEUED
		if
#if defined(POLLED) && !defined(NO_LOOK_IF_QUEUED)
		:: memory[QUEUED(item)] -> goto look
#else
		:: memory[QUEUED(item)] -> item = 0; goto work
#endif
		:: else -> memory[QUEUED(item)] = 1
		fi
#endif
	   };
	   atomic {
#ifdef TSO
		drained(me);
#endif
		store(me, SLOT(tail), item + 1);
		tail = (tail + 1) % SLOTS
	   };
	   /*
	    * The look for sleepers, then the wakeup, if there are enough entries for
	    * the sleeper. If the sleeper that was seen has begun another sleep by now,
	    * the wakeup is spurious.
	    */
look:	   atomic {
		before_sleeper(me);
		item = 0;
		if
		:: memory[SLEEPER] == 0 -> goto work
		:: else
		fi
	   };
	   atomic {
		if
		:: load(me, SLOT(kernel_head)) == 0 -> goto work
		:: else
		fi
#if WANTED > 1
	   };
	   atomic {
		if
		:: ENTRIES < WANTED -> goto work
		:: else
		fi;
#else
		;
#endif
		memory[SLEEPER] = 0	/* wake */
	   }
	:: rounds == 0 -> break
	od
}

proctype consumer()
{
	byte head;		/* as tail, modulo SLOTS */
	byte value;
	byte bits;

harvest:
	atomic {
		value = load(CONSUMER, SLOT(head));
		if
		:: value == 0 ->
			store(CONSUMER, SLEEPER, 1);
#ifndef STALE_HEAD
			kernel_head = head;
#endif
			goto sleep
		:: else
		fi;
#ifdef CLEARS_SLOT_LAST
		store(CONSUMER, QUEUED(value - 1), 0);
#endif
		store(CONSUMER, SLOT(head), 0);
#if !defined(CLEARS_SLOT_LAST) && !defined(TAKES_FIRST)
		store(CONSUMER, QUEUED(value - 1), 0);
#endif
		head = (head + 1) % SLOTS
	};
#ifdef TAKES_IN_TWO
	atomic {
		before_take(CONSUMER);
		bits = memory[READY(value - 1)]
	};
#endif
	atomic {
		before_take(CONSUMER);
#ifndef TAKES_IN_TWO
		bits = memory[READY(value - 1)];
#endif
		memory[READY(value - 1)] = 0;
		due[value - 1] = due[value - 1] & ~bits;	/* delivered */
#ifdef TAKES_FIRST
		store(CONSUMER, QUEUED(value - 1), 0);
#endif
		bits = 0;
		value = 0
	};
	goto harvest;

sleep:	/* in the kernel, announced as sleeper */
#ifndef NO_SECOND_LOOK
	atomic {
		before_sleep(CONSUMER);
		if
		:: load(CONSUMER, SLOT(kernel_head)) != 0 && ENTRIES >= WANTED ->
			store(CONSUMER, SLEEPER, 0);
			kernel_head = head;
			goto harvest
		:: else
		fi
	};
#endif
	if
	:: atomic {
		drained(CONSUMER) && memory[SLEEPER] == 0 ->
		kernel_head = head
	   };
	   goto harvest
	:: timeout ->
		/* All is done and drained, and no process will wake this one. */
#if WANTED > 1
		if
		:: memory[SLOT(kernel_head)] != 0 ->
			assert(ENTRIES < WANTED);	/* a wakeup is lost */
			goto end
		:: else
		fi;
#endif
		assert(memory[SLOT(head)] == 0);	/* a wakeup is lost */
		assert(due[0] == 0 && due[1] == 0);	/* an event is lost */
		assert(!memory[QUEUED(0)] && !memory[QUEUED(1)]); /* it is stuck */
		assert(!memory[SLOT(0)] && !memory[SLOT(SLOTS - 1)]) /* so is it */
	fi;
end:
	skip
}

init
{
	byte cpu;

	atomic {
		run consumer();
		for (cpu : 0 .. PRODUCERS - 1) {
			run producer(cpu)
		}
		for (cpu : 0 .. CPUS - 1) {
			run drainer(cpu)
		}
	}
}
