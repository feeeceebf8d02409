/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Posts (docs/ring.md): posters that push items on a stack, one of which may die at any
 * step, a publisher of a file beside them, and a consumer that takes the stack, revives
 * items, and sleeps. Proven: no post and no wakeup is lost, and no item is in the stack
 * twice. A poster that died between P2 and P4 leaves its item silent, and the consumer
 * revives it at the end.
 *
 * The conventions are those of ring.pml. What the kernel does with posts that are taken
 * and not delivered is left out: the consumer delivers all before it sleeps.
 *
 * An exchange or compare-and-exchange acts on memory at once. Where a barrier keeps a
 * later load behind one, the -D that removes the barrier loads first.
 */

#ifndef ROUNDS
#define ROUNDS 1
#endif
#ifndef REVIVALS
#define REVIVALS 1
#endif
#define POSTERS 2
#define ITEMS 2

#define PUBLISHER POSTERS
#define CONSUMER (POSTERS + 1)
#define CPUS (POSTERS + 2)

/* Places in memory. The file has an item of its own and a slot. */
#define READY(item) (item)
#define FILE_READY ITEMS
#define QUEUED(item) (ITEMS + 1 + (item))
#define SLOT (2 * ITEMS + 1)
#define POSTED (SLOT + 1)
#define ARMED (SLOT + 2)
#define LISTENING (SLOT + 3)
#define PLACES (SLOT + 4)

#define OR_PLACE(place) ((place) <= FILE_READY)
#define IS_QUEUED(place) ((place) >= QUEUED(0) && (place) < SLOT)
#ifdef NO_RELEASE_OF_ARMED
#define RELEASE(place, value) IS_QUEUED(place)
#else
#define RELEASE(place, value) (IS_QUEUED(place) || (place) == ARMED)
#endif

/* POSTED is 0 or item + 1, and an epoch above it; QUEUED is 0 or a mark with that. */
#define TOP(posted) ((posted) & 3)
#define EPOCH(posted) ((posted) & 12)
#define NEXT_EPOCH(posted) (EPOCH((posted) + 4))
#define LINK(posted) ((posted) << 2 | 3)
/* In the list that the consumer has taken. */
#ifdef NO_EPOCH_IN_LINKS
#define TAKEN_LINK(next) LINK(next)
#else
#define TAKEN_LINK(next) LINK(EPOCH(memory[POSTED]) | (next))
#endif

/* Bits that were posted and not yet delivered. */
byte due[ITEMS + 1];

inline stored(cpu, where, what)
{
	if
	:: OR_PLACE(where) -> due[where] = due[where] | what
	:: else
	fi
}

#include "memory.pml"

#ifdef NO_BARRIER_BEFORE_QUEUED		/* a */
#define before_queued(cpu) atomic_may_run(cpu)
#else
#define before_queued(cpu) drained(cpu)
#endif
#ifdef NO_BARRIER_BEFORE_TAKE		/* b */
#define before_take(cpu) atomic_may_run(cpu)
#else
#define before_take(cpu) drained(cpu)
#endif
#ifdef NO_BARRIER_BEFORE_SLEEP		/* e */
#define before_sleep(cpu) true
#else
#define before_sleep(cpu) drained(cpu)
#endif

/* The consumer's sleep was ended. */
bool woken;
/* The bits of a poster that died between P1 and P2: nobody need deliver them. */
byte excused;
bool died;

/* No links are followed twice: of two items, each ends the list or leads to the other. */
#define IN_STACK(item) (TOP(memory[POSTED]) == (item) + 1 || \
	(TOP(memory[POSTED]) != 0 && \
	 TOP(memory[QUEUED(TOP(memory[POSTED]) - 1)] >> 2) == (item) + 1))

/*
 * STOP: a poster is stopped and not dead, so the kernel does not heal. A post that begins
 * later must wake for what the poster has pushed.
 */
#ifdef STOP
#define DEATH
#define NO_HEALING
bool posted_later;
#define MUST_WAKE (!died || posted_later)
#else
#define MUST_WAKE true
#endif

/* At the end of a step. The kernel heals what the poster leaves behind. */
#ifdef DEATH
#define MAY_DIE(me) \
	if \
	:: true \
	:: me == 0 -> died = true; rounds = 0; goto dead \
	fi
#else
#define MAY_DIE(me) skip
#endif

proctype poster(byte me)
{
	byte rounds = ROUNDS;
	byte item, top, mark;
	bool armed;

work:
	atomic {
		mark = 0;
		top = 0;
		armed = false;
		if
		:: rounds == 0 -> item = 0; goto end
		:: rounds > 0 && atomic_may_run(me) ->
			if
			:: item = 0
			/* The items are alike. */
			:: me > 0 || rounds < ROUNDS -> item = 1
			fi;
			rounds--;
#ifdef STOP
			posted_later = posted_later || died;
#endif
			store(me, READY(item), 1 << me)		/* P1 */
		fi;
		MAY_DIE(me)
	};
	top = memory[POSTED];
claim:	atomic {	/* P2, and P3 after another one was faster */
		before_queued(me);
		if
		:: memory[QUEUED(item)] == mark ->
			mark = LINK(top);
			memory[QUEUED(item)] = mark
		:: memory[QUEUED(item)] != mark && mark != 0 ->
			/* It was revived. */
			mark = 0;
			goto claim
#ifdef MARKED_IS_DONE
		:: else -> goto work
#else
		:: else -> goto look
#endif
		fi;
		MAY_DIE(me)
	};
push:
#ifdef NO_BARRIER_BEFORE_LOOK		/* i */
	armed = load(me, ARMED);
#endif
	atomic {
		if
		:: memory[POSTED] != top ->
			top = memory[POSTED];
#ifdef PLAIN_LINK
			if
			:: EPOCH(top) == EPOCH(mark >> 2) -> goto link
			:: else
			fi;
#endif
			goto claim
		:: else ->
			assert(!IN_STACK(item));	/* an item is in the stack twice */
			memory[POSTED] = EPOCH(top) | (item + 1)	/* P4 */
		fi;
		MAY_DIE(me)
	};
#ifdef PLAIN_LINK
	goto look;
link:	atomic {
		mark = LINK(top);
		memory[QUEUED(item)] = mark;
		goto push
	};
#endif
look:	atomic {	/* P5 */
#ifndef NO_BARRIER_BEFORE_LOOK
		armed = load(me, ARMED);
#endif
		if
		:: armed == 0 -> goto work
		:: else
		fi;
		MAY_DIE(me)
	};
	goto notify;

dead:
#ifdef NO_HEALING
	goto end;
#endif
	drained(me);
notify:	/* A level test: without a post, nothing is done. */
	atomic {
		armed = false;
		mark = 0;
		top = 0;
		if
		:: TOP(memory[POSTED]) == 0 -> goto work
		:: else
		fi
	};
	memory[ARMED] = 0;
	atomic {
#ifdef LOOKS_AGAIN
		if
		:: TOP(memory[POSTED]) == 0 -> goto work
		:: else
		fi;
#endif
		if
		:: memory[LISTENING] -> memory[LISTENING] = 0; woken = true
		:: else
		fi;
		goto work
	};
end:
	skip
}

/* As flowfd_publish(). It publishes once, so there is no flag. */
proctype publisher()
{
	atomic { store(PUBLISHER, FILE_READY, 1) };
	atomic { drained(PUBLISHER); store(PUBLISHER, SLOT, 1) };
	atomic {
		drained(PUBLISHER);
		if
		:: memory[LISTENING] -> memory[LISTENING] = 0; woken = true
		:: else
		fi
	}
}

/* An item that is marked and not in the stack, when nothing else runs any more. */
#define SILENT(item) (memory[QUEUED(item)] != 0 && !IN_STACK(item))

proctype consumer()
{
	byte first, second;	/* item + 1, the oldest first */
	byte bits, item, mark;
	byte revivals = REVIVALS;

harvest:
	atomic {
		if
		:: load(CONSUMER, SLOT) == 0 -> goto posts
		:: else -> store(CONSUMER, SLOT, 0)
		fi
	};
	atomic {
		drained(CONSUMER);
		due[FILE_READY] = due[FILE_READY] & ~memory[FILE_READY];
		memory[FILE_READY] = 0
	};

posts:
	if
	:: TOP(memory[POSTED]) != 0 ->
		atomic {	/* H6: takes the stack */
			second = TOP(memory[POSTED]);
			memory[POSTED] = EPOCH(memory[POSTED])
		};
		goto reverse
	:: revivals > 0 ->
		revivals--;
		if
		:: item = 0
		:: item = 1
		fi;
		goto revive
	:: TOP(memory[POSTED]) == 0 -> goto sleep
	fi;

reverse:
	atomic {
		first = 0;
		if
		:: second != 0 -> first = TOP(memory[QUEUED(second - 1)] >> 2)
		:: else
		fi;
		if
		:: first == 0 -> first = second; second = 0
		:: else
		fi;
		if
		:: first == 0 -> goto harvest
		:: else -> memory[QUEUED(first - 1)] = TAKEN_LINK(second)
		fi;
		if
		:: second != 0 -> memory[QUEUED(second - 1)] = TAKEN_LINK(0)
		:: else
		fi
	};
deliver:
	assert(memory[QUEUED(first - 1)] == TAKEN_LINK(second)); /* a taken list is cut */
#ifndef TAKES_FIRST
	store(CONSUMER, QUEUED(first - 1), 0);
#endif
	atomic {
		before_take(CONSUMER);
		bits = memory[READY(first - 1)];
		memory[READY(first - 1)] = 0;
		due[first - 1] = due[first - 1] & ~bits;	/* delivered */
		bits = 0
#ifndef TAKES_FIRST
		;
		first = second;
		second = 0;
		if
		:: first != 0 -> goto deliver
		:: else -> goto harvest
		fi
#endif
	};
#ifdef TAKES_FIRST
	atomic {
		store(CONSUMER, QUEUED(first - 1), 0);
		first = second;
		second = 0;
		if
		:: first != 0 -> goto deliver
		:: else -> goto harvest
		fi
	};
#endif

revive:	/* @item, whose poster may live */
	atomic {
		drained(CONSUMER);
		second = TOP(memory[POSTED]);
#ifdef NO_EPOCH
		memory[POSTED] = EPOCH(memory[POSTED])
#else
		memory[POSTED] = NEXT_EPOCH(memory[POSTED])
#endif
	};
	atomic {
		mark = memory[QUEUED(item)];
		if
		:: second == item + 1 || (second != 0 &&
		   TOP(memory[QUEUED(second - 1)] >> 2) == item + 1) ->
			mark = 0
#ifndef NO_EPOCH
		:: else ->
			/* Its poster has seen the new epoch, so it may live. */
			if
			:: EPOCH(mark >> 2) == EPOCH(memory[POSTED]) -> mark = 0
			:: else
			fi
#else
		:: else
#endif
		fi
	};
	atomic {
		if
		:: mark != 0 && memory[QUEUED(item)] == mark -> memory[QUEUED(item)] = 0
		:: else -> mark = 0; item = 0; goto reverse
		fi
	};
	atomic {	/* Delivers its bits, where the library posts them. */
		due[item] = due[item] & ~memory[READY(item)];
		memory[READY(item)] = 0;
		mark = 0;
		item = 0;
		goto reverse
	};

sleep:
	atomic {
		woken = false;
		store(CONSUMER, LISTENING, 1)
	};
	store(CONSUMER, ARMED, 1);
#ifndef NO_SECOND_LOOK
	atomic {
		before_sleep(CONSUMER);
		if
		:: load(CONSUMER, SLOT) != 0 || TOP(memory[POSTED]) != 0 -> goto harvest
		:: else
		fi
	};
#endif
	if
	:: woken -> goto sleep
	:: timeout ->
		/* All is done and drained. */
		assert(memory[SLOT] == 0);		/* a wakeup is lost */
		if
		:: TOP(memory[POSTED]) != 0 ->
			assert(!MUST_WAKE);		/* a wakeup is lost */
			goto harvest
		:: else
		fi;
		atomic {
			if
			:: died && SILENT(0) -> item = 0; goto revive
			:: died && !SILENT(0) && SILENT(1) -> item = 1; goto revive
			:: else
			fi
		};
		assert(due[FILE_READY] == 0);
		assert(!(due[0] >> died) && !(due[1] >> died));	/* a post is lost */
		assert(!memory[QUEUED(0)] && !memory[QUEUED(1)])	/* a post is lost */
	fi
}

init
{
	byte cpu;

	atomic {
		run consumer();
		run publisher();
		for (cpu : 0 .. POSTERS - 1) {
			run poster(cpu)
		}
		for (cpu : 0 .. CPUS - 1) {
			run drainer(cpu)
		}
	}
}
