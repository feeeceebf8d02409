/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Exclusive readers of a userfaultfd (livepatch/README.md): faults that queue a
 * message and wake, an event that cannot be delivered, and readers that read once
 * and exit. With DEATH one of them is killed, at any time, with BAD_BUFFER the copy to
 * another fails, and with COLD_BUFFER a third must fault its buffer in, for as long as
 * that takes, and try again.
 * Proven: when no process can go on, no message is pending while a reader sleeps, and
 * none was lost with a reader that could not use it. livepatch/model/prove removes each
 * part of the fix; then there must be an error.
 *
 * fd_wqh.lock is a lock here; an operation under the locks of the two message queues
 * is one step. Any sleeper may be woken, which covers more than the kernel does.
 */

#define FAULTS 3
#define READERS 3
#define EVENT FAULTS		/* the fork that every reader fails to take */
#define MESSAGES (FAULTS + 1)
#define NONE MESSAGES
#define VICTIM 1
#ifdef BAD_BUFFER
#define IS_BAD (me == 0)
#else
#define IS_BAD false
#endif

#ifdef COLD_BUFFER
#define IS_COLD (me == 2 && !faulted_in)
#else
#define IS_COLD false
#endif

bool pending[MESSAGES];
bool asleep[READERS];
bool dying[READERS];
bool locked;
bool lost;

inline lock()
{
	atomic { !locked -> locked = true }
}

inline unlock()
{
	locked = false
}

#define ANY_PENDING (pending[0] || pending[1] || pending[2] || pending[3])
#define ANY_ASLEEP (asleep[0] || asleep[1] || asleep[2])

inline wake_one()
{
	atomic {
		if
		:: asleep[0] -> asleep[0] = false
		:: asleep[1] -> asleep[1] = false
		:: asleep[2] -> asleep[2] = false
		:: !ANY_ASLEEP
		fi
	}
}

/* handle_userfault() */
proctype fault(byte me)
{
	pending[me] = true;
	if
	:: lock(); wake_one(); unlock()
#ifndef EVERY_FAULT_WAKES
	:: pending[me] = false	/* the page has arrived: no wakeup */
#endif
	fi
}

/* userfaultfd_event_wait_completion() */
proctype event()
{
	pending[EVENT] = true;
	lock(); wake_one(); unlock()
}

/* SIGKILL, which wakes its target without fd_wqh.lock */
proctype killer()
{
	atomic { dying[VICTIM] = true; asleep[VICTIM] = false }
}

/* A message is copied to the buffer first, and then leaves the queue. */
inline take(message)
{
	if
#ifndef TAKES_BEFORE_COPY
	:: IS_BAD || IS_COLD -> leaves = true
#endif
#ifndef DYING_TAKES
	:: dying[me] -> leaves = true
#endif
	:: else -> pending[message] = false; taken = message;
	   lost = lost || ((IS_BAD || dying[me]) && taken != EVENT)
	fi
}

/* userfaultfd_ctx_read() */
proctype reader(byte me)
{
	byte taken = NONE;
	bool slept = false;
	bool leaves = false;
	bool faulted_in = false;

again:
	lock();
	do
	:: asleep[me] = true;	/* from here on a wakeup counts as delivered */
	   atomic {
		if
		:: pending[0] -> take(0)
		:: pending[1] -> take(1)
		:: pending[2] -> take(2)
		:: pending[EVENT] -> take(EVENT)
		:: !ANY_PENDING -> leaves = dying[me]
		fi
	   };
	   if
	   :: taken != NONE || leaves -> break
	   :: else
	   fi;
	   unlock();
end_asleep:	/* for ever, if nothing comes */
	   !asleep[me];
	   slept = true;
	   lock()
	od;
	asleep[me] = false;
#ifndef NO_HANDING_ON
	if
	:: slept && ANY_PENDING -> wake_one()
	:: else
	fi;
#endif
	unlock();
	if
	:: IS_COLD && leaves && !dying[me] ->
		faulted_in = true; slept = false; leaves = false;
		goto again
	:: true		/* for a cold buffer: its memory never comes, or a signal does */
	fi;
	if
	:: taken == EVENT ->
		pending[EVENT] = true;
#ifndef NO_WAKEUP_AFTER_FAILURE
		lock(); wake_one(); unlock()
#endif
	:: else
	fi
}

init
{
	atomic {
		run fault(0); run fault(1);
#ifndef TWO_FAULTS	/* fewer than readers */
		run fault(2);
#endif
#ifndef NO_EVENT
		run event();
#endif
#ifdef DEATH
		run killer();
#endif
		run reader(0); run reader(1); run reader(2)
	};
	timeout;
	assert(!lost);	/* a message is lost */
	assert(!(ANY_PENDING && ANY_ASLEEP))	/* a message is missed */
}
