/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A counter with one consumer and without the module, docs/mapped.md: two producers add,
 * the consumer sleeps until its eventfd is readable, and then takes until there is
 * nothing. With CLOSED a process adds whose system call fails. No wakeup may be lost.
 * Memory is in order here: a and b have litmus tests of their own.
 * Each step is one that others see.
 */
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
#define FAILED 5
#define LOOKS(s) (s == MOVING || s == FAILED)

byte produced, consumed;
byte state = EMPTY;
bool readable;	/* the eventfd */

/* n is consumed, which was loaded first: so this is the count, or more. */
inline wanted(w, n, s, took, missed, again)
{
	n = produced - n;
	if
	:: n == 0 && s == QUIET && !missed && !again -> w = QUIET
	:: n == 0 && s == RUNG && took && !again -> w = QUIET
	:: n > 0 && s == QUIET && MAY_KEEP -> w = QUIET
	:: else -> w = (n == 0 -> EMPTY : RUNG)
	fi
}

/* @took, @missed: the caller has taken, or found nothing. */
inline settle(s, w, n, again, took, missed)
{
	again = false;
	do
	:: s = state;
	   n = consumed;
	   atomic {
		wanted(w, n, s, took, missed, again);
		n = 0;
		if
		:: s == w && !again -> break
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
			:: again || LOOKS(s) || (s == RUNG && w != RUNG) ->
				readable = false
			:: else
			fi;
			if
			:: w == RUNG -> readable = true
			:: else
			fi;
			took = false;
			atomic {
				if
				:: state == MOVING ->
					state = w;
					again = false
				:: else -> again = true
				fi
			}
	   fi
	od;
	atomic { s = 0; w = 0; n = 0; again = false }
}

/* T1 to T4; @got: whether there was something. Nobody else takes. */
inline take(got, p, s, w, n, again, took)
{
	p = produced;
	atomic { got = p != consumed; consumed = p };
	if
	:: got && (state == RUNG || LOOKS(state)) ->
		took = true;
		settle(s, w, n, again, took, false)
	:: else
	fi;
	atomic { p = 0; took = false }
}

active [PRODUCERS] proctype producer()
{
	byte i, s, w, n;
	bool again, took;

	for (i : 1 .. (_pid == 0 -> FIRST : ADDS)) {
		produced++;
		if
		:: state == EMPTY || LOOKS(state) -> settle(s, w, n, again, took, false)
		:: else
		fi
	}
}

active proctype consumer()
{
	byte p, s, w, n;
	bool got, again, took;

end:	do
	:: readable ->
		take(got, p, s, w, n, again, took);
		do
		:: got -> take(got, p, s, w, n, again, took)
		:: else ->
			settle(s, w, n, again, took, true);
			take(got, p, s, w, n, again, took);
			if
			:: got
			:: else -> break
			fi
		od
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
