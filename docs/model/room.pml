/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The room of a mapped counter, docs/mapped.md: one writer sleeps in write(2), another adds
 * in memory and is told of room by a level-triggered epoll; an edge-triggered poller joins
 * at some time. Two consumers take in memory; one dies between the steps of a take. The
 * count is full whenever it is not 0. No wakeup of a writer may be lost. Memory is in order
 * here, as in counter.pml.
 */
#define SLEEPER 0
#define LEVEL 1
#define EDGE 2

byte produced = 1, consumed;
bool armed;		/* WRITERS */
bool locked;		/* the wait queue, and these three */
bool queued[3];
bool edge_out;
byte told;		/* what consumed was when all were told */
bool woken[3];
byte finished;

#define HAS_ROOM (produced == consumed)
#define NOBODY (!queued[SLEEPER] && !queued[LEVEL] && !queued[EDGE])

inline lock()
{
	atomic { !locked -> locked = true }
}

/* It runs then, and leaves the queue. */
inline wake_sleeper()
{
	if
	:: queued[SLEEPER] && HAS_ROOM -> queued[SLEEPER] = false; woken[SLEEPER] = true
	:: else
	fi
}

/* N3 */
inline tell_writers(c)
{
	c = consumed;
	if
	:: !armed
	:: armed && edge_out && c == told
	:: armed && (!edge_out || c != told) && !HAS_ROOM -> wake_sleeper()
	:: armed && (!edge_out || c != told) && HAS_ROOM ->
		told = c;
		armed = edge_out;
		wake_sleeper();
		woken[LEVEL] = woken[LEVEL] || queued[LEVEL];
		woken[EDGE] = woken[EDGE] || queued[EDGE];
#ifndef NO_ARMING_FOR_SLEEPERS
		if
		:: queued[SLEEPER] -> armed = true; wake_sleeper()
		:: else
		fi
#endif
	fi
}

/* N1 and N3 */
inline notify(c)
{
	lock();
	if
	:: NOBODY -> edge_out = false; armed = false
	:: else -> tell_writers(c)
	fi;
	c = 0;
	locked = false
}

/* What the kernel does for a process that has died. */
inline heal(c)
{
	lock();
	armed = armed || !NOBODY;
	told = consumed - 1;
	locked = false;
	notify(c)
}

inline take(dies)
{
	do
	:: c = consumed;
	   p = produced;
	   if
	   :: atomic { p != c && consumed == c -> consumed = p }; break
	   :: p == c -> break
	   :: p != c && consumed != c
	   fi
	od;
	p = 0;
	c = 0;
	if
	:: armed -> notify(c)
	:: !armed
#ifndef NO_HEALING
	:: dies -> heal(c)
#else
	:: dies
#endif
	fi
}

active proctype mortal()
{
	byte p, c;

	take(true)
}

active proctype consumer()
{
	byte p, c;

end:	do
	:: !HAS_ROOM -> take(false)
	od
}

active proctype sleeper()
{
	lock();
	do
	:: atomic { HAS_ROOM -> produced++ }; break
	:: !HAS_ROOM ->
		queued[SLEEPER] = true;
		armed = true;
		if
		:: HAS_ROOM -> queued[SLEEPER] = false
		:: else ->
			locked = false;
			woken[SLEEPER];
			woken[SLEEPER] = false;
			lock()
		fi
	od;
	locked = false;
	finished++
}

/* A write that fails with EAGAIN arms, and looks once more. */
inline try_to_add()
{
	if
	:: atomic { HAS_ROOM -> produced++; done = true }
	:: !HAS_ROOM ->
		lock();
		armed = true;
		if
		:: atomic { HAS_ROOM -> produced++; done = true }
		:: !HAS_ROOM
		fi;
		locked = false
	fi
}

/* P1 to P3: the events of the last look are those that poll returns. */
inline poll(me)
{
	do
	:: was = armed;
	   room = HAS_ROOM;
	   if
	   :: was || (room && !edge_out) -> break
	   :: else -> armed = true
	   fi
	od;
	woken[me] = woken[me] || room;
	atomic { was = false; room = false }
}

active proctype level()
{
	bool done, was, room;

	lock();
	queued[LEVEL] = true;
	locked = false;
	do
	:: poll(LEVEL);
	   woken[LEVEL];
	   woken[LEVEL] = false;
	   try_to_add();
	   if
	   :: done -> break
	   :: else
	   fi
	od;
	lock();
	queued[LEVEL] = false;
	locked = false;
	finished++
}

/* It stays, and reads no event. */
active proctype edge()
{
	bool was, room;
	byte c, before;

	lock();
	queued[EDGE] = true;
	locked = false;
	lock();
	before = consumed;
#ifndef NOTE_WITHOUT_TELLING
	tell_writers(c);
#endif
	told = before;
	edge_out = true;
	atomic { c = 0; before = 0 };
	locked = false;
	poll(EDGE)
}

active proctype monitor()
{
	timeout;
	assert(finished == 2)	/* a writer is not told */
}
