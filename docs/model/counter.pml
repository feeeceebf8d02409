/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A mapped counter, docs/mapped.md: two producers add in memory, a consumer is woken
 * and takes, another takes without being woken or, with ONLOOKER, polls and does not take,
 * and a timer delivers what the token bucket deferred. No wakeup may be lost. Memory is in
 * order here: the barriers have litmus tests of their own.
 *
 * The consumer is a ring or a multishot poll, which does not poll again, or with LEVEL a
 * level-triggered epoll. Each add and each step under the lock is one that others see.
 */
#ifndef ADDS
#define ADDS 2
#endif

byte produced, consumed;
bool readers, watched;	/* bits of armed */
bool locked;		/* the wait queue */
bool woken;		/* the consumer */
bool deferred;		/* to the timer */
byte tokens = 1;
byte finished;

/* The count, or more: consumed is loaded first. */
inline count(n, c)
{
	c = consumed;
	n = produced - c
}

inline lock()
{
	atomic { !locked -> locked = true }
}

/* K1 to K3, under the lock. */
inline wake_readers()
{
	readers = false;
	woken = true
}

/* N2 */
inline notify(n, c)
{
	lock();
	count(n, c);
	if
	:: readers && n && tokens ->
		tokens--;
		wake_readers()
	:: readers && n && !tokens ->
		deferred = true;
		atomic { readers = false; watched = false }
	:: else
	fi;
	atomic { locked = false; n = 0; c = 0 }
}

/* What the kernel does for a process that has died. */
inline heal(n, c)
{
	skip;
#ifndef NO_HEALING
	lock();
	if
	:: !deferred -> atomic { readers = true; watched = true }
	:: else
	fi;
	locked = false;
	notify(n, c)
#endif
}

/* T1 to T3 */
inline take(p, c, n)
{
	do
	:: c = consumed;
	   p = produced;
#ifdef NO_ARMING_IF_EMPTY
	   if
	   :: p == c -> break
	   :: else
	   fi;
#endif
	   atomic {
		if
		:: p == c	/* nothing to take */
		:: p != c && consumed == c -> consumed = p
		:: else -> c = p + 1
		fi
	   };
	   if
	   :: c == p + 1
	   :: else ->
#ifndef NO_ARMING
		if
		:: watched ->
#ifdef NO_LOOK_IF_ARMED
			if
			:: readers -> goto done
			:: else
			fi;
#endif
			readers = true;
#ifndef NO_LOOK_AFTER_ARMING
			if
			:: produced != p -> notify(n, c)
			:: else
			fi
#endif
		:: else
		fi;
#ifdef NO_LOOK_IF_ARMED
done:		skip;
#endif
#endif
		break
	   fi
	od;
	atomic { p = 0; c = 0; n = 0 }
}

active [2] proctype producer()
{
	byte i, n, c;

	for (i : 1 .. ADDS) {
		produced++;
		if
		:: readers -> notify(n, c)
		:: !readers
		:: _pid == 0 && i == ADDS -> heal(n, c)	/* dies before it looks */
		fi
	}
	finished++
}

#ifndef ONLOOKER
active proctype thief()
{
	byte p, c, n;

	take(p, c, n);
	finished++
}
#else
/* It arms if it finds no count, and tells nobody but its caller what it finds then. */
active proctype onlooker()
{
	byte n, c;

	count(n, c);
	if
	:: !n && !deferred -> atomic { readers = true; watched = true }
	:: else
	fi;
	atomic { n = 0; c = 0 };
	finished++
}
#endif

active proctype timer()
{
	byte n, c;

end:	do
	:: deferred ->
		lock();
#ifndef NO_ARMING_BY_TIMER
		atomic { readers = true; watched = true };
#endif
		count(n, c);
		deferred = false;
		if
		:: n -> wake_readers()
		:: else
		fi;
		atomic { locked = false; n = 0; c = 0 }
	:: !deferred && !tokens -> tokens = 1
	od
}

active proctype consumer()
{
	byte p, c, n;
#ifdef LEVEL
	bool armed;
#endif

	/* It joins the queue, arms and looks, as each poller does. */
	atomic { readers = true; watched = true };
	count(n, c);
	if
	:: n -> woken = true
	:: else
	fi;
	atomic { n = 0; c = 0 };
end:	do
	:: woken ->
		woken = false;
#ifdef LEVEL
		do
		:: armed = readers && watched;
		   count(n, c);
		   if
		   :: n -> take(p, c, n)
		   :: n == 0 && (deferred || armed) -> c = 0; break
		   :: else -> atomic { readers = true; watched = true }
		   fi
		od
#else
		take(p, c, n)
#endif
	od
}

active proctype monitor()
{
	finished == 3;
	timeout;
	assert(produced == consumed)	/* a wakeup is lost */
}
