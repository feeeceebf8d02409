/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pollers of a ring (docs/ring.md): producers that publish, a consumer that harvests
 * and sleeps until a multishot poll completes, and a work item that wakes pollers once, and
 * again only after one of them has looked at the ring. Proven: each poller looks after
 * the last event was published, and the consumer harvests all events.
 *
 * The conventions are those of ring.pml. Each producer has an item of its own.
 */

#ifndef PRODUCERS
#define PRODUCERS 2
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef POLLERS
#define POLLERS 2
#endif
#define SLOTS 2

#define CONSUMER PRODUCERS
#define POLLER(n) (PRODUCERS + 1 + (n))
#define CPUS (PRODUCERS + 1 + POLLERS)

/* Places in memory. A slot is 0 or item + 1. */
#define READY(item) (item)
#define QUEUED(item) (PRODUCERS + (item))
#define SLOT(n) (2 * PRODUCERS + (n) % SLOTS)
#define HEAD (2 * PRODUCERS + SLOTS)
#define LISTENING (HEAD + 1)
#define PLACES (LISTENING + 1)

#define OR_PLACE(place) ((place) < PRODUCERS)
#define RELEASE(place, value) ((place) >= PRODUCERS)

byte due[PRODUCERS];

inline stored(cpu, where, what)
{
	if
	:: OR_PLACE(where) -> due[where] = due[where] | what
	:: else
	fi
}

#include "memory.pml"

/* Private to the kernel. Neither it nor the head wraps here. */
byte tail;
/* The tail that a poller saw when it looked. */
byte seen[POLLERS];
/* A poller was woken, or starts. */
bool woken[POLLERS];
/* The first poller is the consumer's multishot poll. */
bool completed;
/* The work item is queued; the workqueue's own bit. */
bool pending;

/* Whether poll reports EPOLLIN. */
#ifdef LOOKS_AT_SLOT
#define HAS_EVENTS(cpu) (load(cpu, SLOT(memory[HEAD])) != 0)
#else
#define HAS_EVENTS(cpu) (tail != memory[HEAD])
#endif

proctype producer(byte me)
{
	byte rounds = ROUNDS;

work:
	do
	:: atomic {
		rounds > 0 && atomic_may_run(me) ->
		rounds--;
		store(me, READY(me), 1 << rounds)
	   };
	   atomic {
		drained(me);
		if
		:: memory[QUEUED(me)] -> goto work
		:: else -> memory[QUEUED(me)] = 1
		fi
	   };
	   atomic {
		store(me, SLOT(tail), me + 1);
		tail++
	   };
	   atomic {
		drained(me);
		if
		:: memory[LISTENING] == 0 -> goto work
		:: else
		fi
	   };
#ifdef QUEUES_FIRST
	   pending = true;
	   memory[LISTENING] = 0
#else
	   memory[LISTENING] = 0;
	   pending = true
#endif
	:: rounds == 0 -> break
	od
}

proctype worker()
{
	byte n;

end:
	do
	:: pending ->
#ifndef CLEARS_PENDING_LAST
		pending = false;
#endif
		/* The queue's lock is not held between the wakeups. */
		do
#ifdef WOKEN_WITH_EVENTS	/* with which a multishot poll completes, and does not look */
		:: n == 0 -> completed = true; n++
		:: n > 0 && n < POLLERS -> woken[n] = true; n++
#else
		:: n < POLLERS -> woken[n] = true; n++
#endif
		:: n == POLLERS -> n = 0; break
		od
#ifdef CLEARS_PENDING_LAST
		; pending = false
#endif
	od
}

proctype poller(byte n)
{
end:
	do
	:: atomic { woken[n] -> woken[n] = false };
#ifdef NO_BARRIER
	   atomic { store(POLLER(n), LISTENING, 1) };
#endif
#if !defined(NO_BARRIER) && !defined(LOOKS_FIRST)
	   memory[LISTENING] = 1;
#endif
	   atomic {
		seen[n] = tail;
		if
		:: HAS_EVENTS(POLLER(n)) && n == 0 -> completed = true
		:: else
		fi
	   };
#ifdef LOOKS_FIRST
	   memory[LISTENING] = 1;
#endif
	od
}

proctype consumer()
{
	byte head;
	byte value;
	byte bits;

harvest:
	atomic {
		value = load(CONSUMER, SLOT(head));
		if
		:: value == 0 -> goto stop
		:: else
		fi;
		store(CONSUMER, SLOT(head), 0);
		store(CONSUMER, QUEUED(value - 1), 0);
		head++
	};
	atomic {
		drained(CONSUMER);
		bits = memory[READY(value - 1)];
		memory[READY(value - 1)] = 0;
		due[value - 1] = due[value - 1] & ~bits;	/* delivered */
		bits = 0;
		value = 0
	};
	goto harvest;

stop:	/* It found nothing, and stores the head only now. */
	atomic { store(CONSUMER, HEAD, head) };
	if
	:: atomic { completed -> completed = false };
	   goto harvest
	:: timeout ->
#ifndef WOKEN_WITH_EVENTS
		assert(seen[0] == tail);	/* a wakeup is lost */
		assert(seen[POLLERS - 1] == tail);	/* a wakeup is lost */
#endif
		assert(due[0] == 0 && due[PRODUCERS - 1] == 0)	/* a wakeup is lost */
	fi
}

init
{
	byte cpu;

	atomic {
		run consumer();
		run worker();
		for (cpu : 0 .. POLLERS - 1) {
			woken[cpu] = true;
			run poller(cpu)
		}
		for (cpu : 0 .. PRODUCERS - 1) {
			run producer(cpu)
		}
		for (cpu : 0 .. CPUS - 1) {
			run drainer(cpu)
		}
	}
}
