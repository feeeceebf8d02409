/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A counter without the module, docs/mapped.md: two producers add, a consumer sleeps
 * until its eventfd is readable, or with EDGES until it is written, and another thread
 * takes without being woken. With ONE there is one consumer, which takes until there is
 * nothing. With MAXIMUM the producers sleep until there is room. With CLOSED a process
 * adds whose system call fails. No wakeup may be lost.
 * Memory is in order here: a and b have litmus tests of their own.
 * Each step is one that others see.
 */
#ifndef MAXIMUM
#define MAXIMUM 100
#endif
#ifndef PRODUCERS
#define PRODUCERS 2
#endif
#ifndef ADDS
#define ADDS 1
#endif
/* How often the first producer adds. */
#ifndef FIRST
#define FIRST ADDS
#endif
#define ALL (FIRST + (PRODUCERS - 1) * ADDS)
#ifdef LATE_QUIET
#define LATE_OR_TOOK true
#else
#define LATE_OR_TOOK took
#endif
/* A repetition rings rather than keep the doorbell quiet. */
#ifdef KEEPS_QUIET
#define MAY_KEEP true
#else
#define MAY_KEEP !again
#endif

/* States; MOVING: a thread makes system calls. */
#define QUIET 0
#define EMPTY 1
#define RUNG 2
#define MOVING 3
#define FULL 4
#define FAILED 5
#define LOOKS(s) (s == MOVING || s == FAILED)

/* What the eventfd has. */
#define NOTHING 0
#define SOME 1
#define FILLED 2

byte produced, consumed;
byte state = EMPTY;
byte eventfd;
bool edge;

/* n is consumed, which was loaded first: so this is the count, or more. */
inline wanted(w, n, s, refused, took, missed, again)
{
	n = produced - n;
	if
	:: n == 0 && s == QUIET && !missed && !again -> w = QUIET
#ifdef ONE
	:: n == 0 && (s == RUNG || s == FULL) && LATE_OR_TOOK && !again -> w = QUIET
#endif
	:: n >= MAXIMUM && (refused || s == FULL) -> w = FULL
	:: n > 0 && n < MAXIMUM && s == QUIET && MAY_KEEP -> w = QUIET
	:: n >= MAXIMUM && !refused && s == QUIET && MAY_KEEP -> w = QUIET
	:: else -> w = (n == 0 -> EMPTY : RUNG)
	fi
}

/* Only what is empty can be filled. */
inline write_eventfd(value)
{
	atomic {
		if
		:: eventfd == NOTHING || (eventfd == SOME && value == SOME) ->
			eventfd = value; edge = true
		:: else
		fi
	}
}

/* @refused: the caller found no room; @took, @missed: it has taken, or found nothing. */
inline settle(s, w, n, again, refused, took, missed)
{
	again = false;
	do
	:: s = state;
	   n = consumed;
	   atomic {
		wanted(w, n, s, refused, took, missed, again);
		n = 0;
		if
#if defined(EDGES) && !defined(ONE) && !defined(NO_EDGE)
		:: s == w && !again && !(took && (s == RUNG || s == FULL)) -> break
#else
		:: s == w && !again -> break
#endif
		:: else
		fi
	   };
	   /* If another moves it, the thread waits, but not for ever. */
	   atomic {
		if
		:: state == s -> state = MOVING
		:: else -> s = 255
		fi
	   };
	   if
	   :: s == 255
	   :: s != 255 ->
			if
			:: again || s == FULL || LOOKS(s) || w == FULL ||
			   (s == RUNG && w != RUNG) ->
				eventfd = NOTHING
			:: else
			fi;
			if
			:: w == RUNG -> write_eventfd(SOME)
			:: w == FULL -> write_eventfd(FILLED)
			:: else
			fi;
			took = false;
			atomic {
				if
				:: state == MOVING ->
					state = w;
					again = false;
#ifdef NO_SECOND_LOOK
					break
#endif
				:: else ->
#ifndef NO_REPETITION
					again = true
#endif
				fi
			}
	   fi
	od;
	atomic { s = 0; w = 0; n = 0; again = false }
}

/* T1 to T4; @got: whether there was something. */
inline take(got, p, c, s, w, n, again, took)
{
	do
	:: c = consumed;
	   atomic {
		p = produced;
		if
		:: p == c -> got = false; break
		:: else
		fi
	   };
	   atomic {
		if
		:: consumed == c -> consumed = p; got = true
		:: else -> got = false
		fi
	   };
	   if
	   :: got ->
		if
		:: state == RUNG || LOOKS(state) || state == FULL ->
			took = true;
			settle(s, w, n, again, false, took, false)
		:: else
		fi;
		break
	   :: else
	   fi
	od;
	atomic { p = 0; c = 0; took = false }
}

active [PRODUCERS] proctype producer()
{
	byte i, s, w, n;
	bool again, added, took;

	for (i : 1 .. (_pid == 0 -> FIRST : ADDS)) {
		added = false;
		do
		:: added -> break
		:: else ->
			n = consumed;
			/* A1 and A2 in one step, with an old consumed. */
			atomic {
				if
				:: produced - n < MAXIMUM -> produced++; added = true
				:: else
				fi
			};
			n = 0;
			if
			:: added && (state == EMPTY || LOOKS(state)) ->
				settle(s, w, n, again, false, took, false)
			:: added && state != EMPTY && !LOOKS(state)
			:: !added ->
				settle(s, w, n, again, true, took, false);
				/* It looks once more, and then sleeps. */
				if
				:: produced - consumed < MAXIMUM
				:: produced - consumed >= MAXIMUM -> eventfd != FILLED
				fi
			fi
		od
	}
}

#ifndef ONE
active proctype thief()
{
	byte p, c, s, w, n;
	bool got, again, took;

	take(got, p, c, s, w, n, again, took)
}
#endif

active proctype consumer()
{
	byte p, c, s, w, n;
	bool got, again, took;

end:	do
#ifdef EDGES
	:: edge -> edge = false;
#else
	:: eventfd != NOTHING ->
#endif
		take(got, p, c, s, w, n, again, took);
#ifdef ONE
		do
		:: got -> take(got, p, c, s, w, n, again, took)
		:: else ->
			settle(s, w, n, again, false, took, true);
			take(got, p, c, s, w, n, again, took);
			if
			:: got
			:: else -> break
			fi
		od
#else
		if
		:: got
		:: else -> settle(s, w, n, again, false, took, true)
		fi;
		got = false
#endif
	od
}

#ifdef CLOSED
/* Its add is announced by the next of another process, which must look. */
active proctype closed()
{
	produced++;
	if
	:: state == EMPTY || LOOKS(state) ->
		state = MOVING;
#ifndef LEAVES_MOVING
		state = FAILED
#endif
	:: else
	fi
}
#endif

active proctype monitor()
{
	timeout;
#ifdef CLOSED
	assert(LOOKS(state) || consumed == ALL + 1)	/* adds are silent */
#else
	assert(produced == ALL && consumed == produced)	/* a wakeup is lost */
#endif
}
