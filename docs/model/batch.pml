/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A mapped counter with a mark, docs/signals.md: below the mark readers are told only when
 * a maximum delay has passed, or while a writer sleeps. One task adds in memory, another
 * takes, one writes 2 by a call, others read by calls (READERS) or wait in a level-triggered
 * epoll and take in memory (POLLER). The kernel takes and adds for those who sleep. With
 * DELAY there is a maximum delay, with BUCKET a token for each wakeup. No wakeup may be
 * lost, and what programs do in memory must not keep the timer busy.
 *
 * Names are those of module/pace.c, sleeper.c, mapped.c, mapped_wake.c and mapped_poll.c.
 * Memory is in order here. Each access to a word in memory is a step that others see, also
 * of who has the lock.
 */
#ifndef READERS
#define READERS 0
#endif
#ifndef ADDS
#define ADDS 2
#endif
#ifndef TAKES
#define TAKES 1
#endif

#define MAXIMUM 4
#define MARK 3
#define WRITTEN 2
/* How often the timer may expire between tokens, and begins and ends of system calls. */
#ifndef EXPIRIES
#define EXPIRIES 2
#endif

byte produced, consumed;
bool readers, watched, writers;	/* bits of armed */
bool locked;		/* the wait queue */

/* Of the counter, under the lock; poll reads them without it. */
bool forced;
byte forced_at;		/* produced then */
bool deferred;
byte paced;
bool due;
byte reading;		/* tasks that sleep in read */
bool writing;		/* a task sleeps in write */
bool polling;		/* a poller is in the queue */

byte given;		/* reads that are done, by others */
bool woken;		/* the poller */
bool token = true;

/* For what the timer was started. */
#define DUE 1
#define TOKEN 2
byte timer;
byte expiries;

/* Of who has the lock. Local, so that Spin need not interleave what uses only these. */
#define LOCALS                                                           \
	byte c, p, n;                                                    \
	bool ready, ok, turn, count_news, room_news, later_count, later_room

#define WAITERS (reading || writing || polling)

/* Nobody would go on if a writer sleeps and readers wait for more. */
#ifndef WRITER_WAITS
#define READY_NOW(n) ((n) >= MARK || ((n) && writing))
#else
#define READY_NOW(n) ((n) >= MARK)
#endif
#define IS_READY(n) (READY_NOW(n) || ((n) && forced))

/* Whether something is left of what was there when the count was forced. */
#define IS_LEFT(at, c) ((at) > (c) && (at) <= produced)

inline lock()
{
	atomic { !locked -> locked = true }
}

inline unlock()
{
	atomic {
		c = 0;
		p = 0;
		n = 0;
		ready = false;
		ok = false;
		turn = false;
		count_news = false;
		room_news = false;
		later_count = false;
		later_room = false;
		locked = false
	}
}

/* A system call, which takes the lock. */
inline enter()
{
	atomic { !locked -> locked = true; expiries = 0 }
}

/* The count, or more: consumed is loaded first. */
inline count()
{
	c = consumed;
	n = produced - c
}

/*
 * One step each: the exchange is at the moment of the last load, and if it finds no room or
 * no count, that was so at one moment.
 */
inline try_add(v)
{
	atomic {
		ok = produced - consumed + (v) < MAXIMUM;
		if
		:: ok -> produced = produced + (v)
		:: else
		fi
	}
}

inline try_take()
{
	atomic {
		ok = produced != consumed;
		p = produced;
		consumed = p
	}
}

inline arm_readers()
{
	if
	:: atomic { WAITERS && !deferred -> readers = true; watched = true }
	:: else
	fi
}

/* pace.c */

inline pace_restart()
{
	atomic { c = consumed; due = false; forced = false };
	paced = c
}

/* The timer of a deferred wakeup comes first. */
inline pace_wait_for_due()
{
	if
	:: due && !deferred -> timer = DUE
	:: else
	fi
}

inline pace_see_takes()
{
	if
	:: consumed != paced ->
		c = consumed;
		if
		:: forced && IS_LEFT(forced_at, c) -> c = consumed; paced = c
		:: else -> pace_restart()
		fi
	:: else
	fi
}

inline pace_is_ready()
{
	pace_see_takes();
	count();
	atomic {
		ready = IS_READY(n);
		if
		:: ready -> due = false
#ifdef DELAY
		:: !ready && n && !due -> due = true; pace_wait_for_due()
#endif
		:: else
		fi
	}
}

/* If the count is ready. */
inline pace_takes_token()
{
#ifdef BUCKET
	atomic {
		if
		:: ready && !deferred && token -> token = false; expiries = 0
		:: ready && !deferred && !token -> deferred = true; timer = TOKEN; ready = false
		:: ready && deferred -> ready = false
		:: !ready
		fi
	}
#else
	skip
#endif
}

inline pace_force()
{
	pace_is_ready();
	count();
	ok = !ready && n;
	if
	:: n -> forced_at = produced; atomic { forced = true; due = false }
	:: else
	fi
}

/* sleeper.c: ok says whether something was added or taken. */

inline writers_go_on()
{
	ok = false;
	if
	:: writing ->
		try_add(WRITTEN);
		writing = !ok
	:: else
	fi
}

inline readers_go_on(room)
{
	do
	:: reading ->
		count();
		if
		:: IS_READY(n) -> try_take()
		:: else -> ok = false
		fi;
		if
		:: ok ->
			room = true;
			pace_restart();
			atomic { reading--; given++; expiries = 0 }
		:: else -> break
		fi
	:: else -> break
	od
}

/* mapped_wake.c */

/* ready says whether to wake readers. */
inline mapped_admits()
{
	ready = false;
	if
	:: WAITERS ->
		pace_is_ready();
		pace_takes_token();
		if
		:: atomic { !ready && deferred -> readers = false; watched = false }
		:: else
		fi
	:: else
	fi
}

inline mapped_run_sleepers(count_too, room_too)
{
	do
	:: if
	   :: turn -> readers_go_on(room_too)
	   :: else
	   fi;
	   writers_go_on();
	   turn = false;
	   if
	   :: ok -> mapped_admits(); turn = ready; count_too = count_too || ready
	   :: else
	   fi;
	   if
	   :: !turn -> break
	   :: else
	   fi
	od
}

inline mapped_arm_again()
{
	ok = room_news || (count_news && reading);
	if
	:: ok ->
		arm_readers();
#ifndef NO_DELAY_AFTER_ARMING
		if
#ifndef NO_GUARD
		:: forced
		:: !forced -> pace_is_ready()
#else
		:: true -> pace_is_ready()
#endif
		fi
#endif
	:: else
	fi;
	if
	:: writing -> writers = true; ok = true
	:: else
	fi
}

inline mapped_deliver(wanted)
{
	if
	:: WAITERS ->
		atomic { turn = wanted; count_news = wanted };
		mapped_run_sleepers(count_news, room_news);
		if
		:: count_news -> readers = false; woken = woken || polling
		:: else
		fi;
		if
		:: writers ->
			count();
			if
			:: n + 1 < MAXIMUM -> writers = false
			:: else
			fi
		:: else
		fi;
		mapped_arm_again();
#ifndef NO_LOOK_AFTER_ARMING
		if
		:: ok ->
			turn = count_news;
			mapped_run_sleepers(later_count, later_room);
			woken = woken || (later_count && polling)
		:: else
		fi
#endif
	:: else
	fi
}

inline mapped_added()
{
	mapped_admits();
	mapped_deliver(ready)
}

inline mapped_settle()
{
	if
	:: atomic { !WAITERS -> readers = false; watched = false; writers = false }
	:: else ->
		ready = false;
		if
		:: readers ->
			count();
			if
			:: n -> mapped_admits()
			:: else
			fi
		:: else
		fi;
		mapped_deliver(ready)
	fi
}

inline notify()
{
	enter();
	mapped_settle();
	unlock()
}

/* T1 to T4 */
inline take()
{
	try_take();
	/* One load of the bits. */
	atomic { ok = writers; turn = watched };
	if
	:: turn ->
		readers = true;
		ok = ok || produced != p
	:: else
	fi;
	atomic { p = 0; turn = false };
	if
	:: ok -> ok = false; notify()
	:: else
	fi
}

active proctype adder()
{
	LOCALS;
	byte i;

	for (i : 1 .. ADDS) {
		if
		:: try_add(1)
		:: try_add(MARK)
		fi;
		if
		:: ok && readers -> notify()
		:: else -> ok = false
		fi
	}
}

active proctype taker()
{
	LOCALS;
	byte i;

	for (i : 1 .. TAKES) {
		take()
	}
}

#ifndef NO_WRITER
active proctype writer()
{
	LOCALS;

	enter();
	try_add(WRITTEN);
	if
	:: ok -> mapped_added()
	:: else ->
		/* mapped_refused(): who makes room must not wait for more to come. */
		pace_force();
		if
		:: ok -> mapped_added()
		:: else
		fi;
		writing = true;
		writers = true;
		mapped_deliver(false)
	fi;
	unlock();
	!writing
}
#endif

#if READERS
active [READERS] proctype reader()
{
	LOCALS;

end:	do
	:: enter();
	   do
	   :: pace_is_ready();
	      ok = false;
	      if
	      :: ready -> try_take()
	      :: else
	      fi;
	      if
	      :: ok ->
		pace_restart();
		arm_readers();
		mapped_settle();
		break
	      :: else
	      fi;
	      mapped_deliver(false);
	      reading++;
	      arm_readers();
	      pace_is_ready();
	      if
	      :: ready -> reading--;
		 unlock();
		 enter()	/* mapped_yield() */
	      :: else ->
		 unlock();
end_sleep:	 atomic { given -> given-- };
		 goto done
	      fi
	   od;
	   unlock();
done:	   skip
	od
}
#endif

#ifdef POLLER
active proctype poller()
{
	LOCALS;
	byte was;
	bool in;

	enter();
	polling = true;
	unlock();
	woken = true;
end:	do
	:: woken ->
		woken = false;
		do
		:: atomic { was = readers + 2 * watched; expiries = 0 };
		   count();
		   if
		   :: n == 0 -> in = false
		   :: n && READY_NOW(n) -> in = true
		   :: else ->
			in = forced;
			c = consumed;
			n = forced_at;
			in = in && IS_LEFT(n, c)
		   fi;
		   atomic { c = 0; n = 0 };
		   if
		   :: deferred || (was & 2 && (in || was & 1)) ->
#if defined(DELAY) && !defined(NO_DELAY_IN_POLL)
			if
			:: in
			:: !in ->
				enter();
				pace_is_ready();
				in = ready;
				unlock()
			fi;
#endif
			if
			:: in -> in = false; was = 0; take()
			:: else -> was = 0; break
			fi
		   :: else -> atomic { watched = true; readers = readers || !in }
		   fi
		od
	od
}
#endif

active proctype clock()
{
	LOCALS;
	byte fired;
	bool ended, delayed;

end:	do
	:: atomic { timer -> fired = timer; timer = 0; expiries++ };
	   assert(expiries <= EXPIRIES);	/* the timer is kept busy */
	   lock();
	   if
	   :: fired == TOKEN -> token = true; expiries = 0
	   :: else
	   fi;
	   ended = deferred;
	   if
	   :: ended ->
		deferred = false;
		arm_readers()
	   :: else
	   fi;
	   count();
	   if
	   :: !n -> due = false
	   /* It comes too early for a delay that began later. */
	   :: n && due && (fired == TOKEN || timer)
	   :: n && due ->
		forced_at = produced;
		atomic { due = false; forced = true; delayed = true }
	   :: n && !due
	   fi;
#ifndef NO_DELAY_AFTER_DEFERRAL
	   if
	   :: ended -> pace_is_ready()
	   :: else ->
		count();
		ready = IS_READY(n)
	   fi;
#else
	   count();
	   ready = IS_READY(n);
#endif
	   if
	   :: !ready -> pace_wait_for_due()
	   :: ready && (ended || delayed) && WAITERS ->
		pace_takes_token();
		if
		:: ready -> mapped_deliver(true)
		:: else
		fi
	   :: else
	   fi;
	   unlock();
	   atomic { fired = 0; ended = false; delayed = false }
	:: !timer && !token && !deferred -> token = true
	od
}

active proctype monitor()
{
	timeout;
	assert(!writing);	/* a writer is not told */
	assert(produced - consumed < MARK);	/* a reader is not told */
	assert(produced == consumed || !forced || !IS_LEFT(forced_at, consumed));	/* a reader is not told */
#ifdef DELAY
	assert(produced == consumed)	/* a reader is not told */
#endif
}
