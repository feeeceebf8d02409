// SPDX-License-Identifier: GPL-2.0-only
/*
 * One of several reader processes of a userfaultfd is killed about when it is woken for
 * a message: another must get the message. A spinner with real-time priority keeps
 * readers from running between wakeup and death. The program counts lost messages.
 * Without the livepatch some orders lose messages, so a loss is a failure only with it.
 * Each order is tried FLOWFD_ROUNDS times.
 */
#include <kselftest_harness.h>

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "uffd.h"

#define READERS 4

enum message { FAULT, REMOVE, FORK };
enum victim { NOBODY, FIRST, LAST, ANY };
enum moment { AFTER_MESSAGE, BEFORE_MESSAGE };
/* Which readers run on the spinner's processor. */
enum behind { VICTIM, ALL };

struct order {
	enum message message;
	enum victim victim;
	enum moment moment;
	enum behind behind;
	int signal;
};

struct round {
	const struct order *order;
	/* Messages that each reader's read() has returned; shared with them. */
	int *got;
	struct area area;
	pid_t readers[READERS];
	int victim;
	pthread_t thread, spinner;
	pid_t tid;
	bool spins, stop, done;
};

struct counts {
	int lost;
	/* Still pending, while all readers sleep. */
	int missed;
};

static int rounds_wanted(void)
{
	const char *rounds = getenv("FLOWFD_ROUNDS");

	return rounds ? atoi(rounds) : 3;
}

static void run_on(int processor)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void *spinner_run(void *arg)
{
	struct round *r = arg;

	run_on(1);
	if (!sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = 1 }))
		__atomic_store_n(&r->spins, true, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE))
		;
	return NULL;
}

static void read_and_serve(const struct area *area, int *got)
{
	struct uffd_msg message;

	for (;;) {
		if (read(area->fd, &message, sizeof(message)) != sizeof(message))
			continue;
		__atomic_add_fetch(got, 1, __ATOMIC_RELEASE);
		if (message.event == UFFD_EVENT_PAGEFAULT)
			area_fill(area, message.arg.pagefault.address);
	}
}

static void readers_fork(struct round *r)
{
	enum behind behind = r->order->behind;
	int i;

	for (i = 0; i < READERS; i++) {
		r->readers[i] = fork();
		if (!r->readers[i]) {
			/* It ends with the test. */
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
			run_on(behind == ALL || i == r->victim);
			read_and_serve(&r->area, &r->got[i]);
		}
		uffd_wait_until_asleep(&r->readers[i], SYS_read);
	}
}

static char state_of(pid_t tid)
{
	char path[64], state = '?';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	f = fopen(path, "r");
	if (f) {
		if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
			state = '?';
		fclose(f);
	}
	return state;
}

/* Causes the message, and returns when it has been answered. */
static void *message_run(void *arg)
{
	struct round *r = arg;
	pid_t pid;

	__atomic_store_n(&r->tid, gettid(), __ATOMIC_RELEASE);
	switch (r->order->message) {
	case FAULT:
		(void)*(volatile char *)r->area.memory;
		break;
	case REMOVE:
		madvise(r->area.memory, PAGE, MADV_DONTNEED);
		break;
	case FORK:
		/* fork() would hold malloc()'s locks until it is answered. */
		pid = _Fork();
		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
		break;
	}
	__atomic_store_n(&r->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static bool is_done(struct round *r)
{
	return __atomic_load_n(&r->done, __ATOMIC_ACQUIRE);
}

/* The thread sleeps only after it has woken readers. */
static void wait_until_message_has_woken(struct round *r)
{
	pid_t tid;
	char state;

	do {
		uffd_nap();
		tid = __atomic_load_n(&r->tid, __ATOMIC_ACQUIRE);
		state = tid ? state_of(tid) : '?';
	} while (!is_done(r) && state != 'S' && state != 'D');
}

static int messages_got(const struct round *r)
{
	int i, got = 0;

	for (i = 0; i < READERS; i++)
		got += __atomic_load_n(&r->got[i], __ATOMIC_ACQUIRE);
	return got;
}

static bool all_sleep(const struct round *r)
{
	int i;

	for (i = 0; i < READERS; i++)
		if (i != r->victim && !uffd_sleeps_in(r->readers[i], SYS_read))
			return false;
	return true;
}

/*
 * It will never be if all live readers sleep, at five checks in a row. Once one has the
 * message, the task that waits for the answer, and its child, may need longer to run.
 */
static bool is_served(struct round *r)
{
	int asleep = 0;

	while (asleep < (messages_got(r) ? 10000 : 5)) {
		if (is_done(r) && messages_got(r))
			return true;
		uffd_nap();
		asleep = all_sleep(r) ? asleep + 1 : 0;
	}
	return is_done(r) && messages_got(r);
}

static void victim_kill(const struct round *r)
{
	if (r->victim >= 0)
		kill(r->readers[r->victim], r->order->signal);
}

static void round_start(struct round *r)
{
	static const __u64 features[] = {
		[FAULT] = 0,
		[REMOVE] = UFFD_FEATURE_EVENT_REMOVE,
		[FORK] = UFFD_FEATURE_EVENT_FORK,
	};
	enum victim victim = r->order->victim;

	r->victim = victim == NOBODY ? -1 :
		    victim == FIRST ? 0 :
		    victim == LAST ? READERS - 1 : rand() % READERS;
	memset(r->got, 0, READERS * sizeof(*r->got));
	area_open(&r->area, 1, features[r->order->message]);
	/* Forks must not be events yet. */
	area_unregister(&r->area);
	readers_fork(r);
	area_register(&r->area);
}

/* Whatever the outcome, the thread must not stay blocked. */
static void round_end(struct round *r)
{
	struct uffd_msg message;
	int i;

	for (i = 0; i < READERS; i++) {
		kill(r->readers[i], SIGKILL);
		waitpid(r->readers[i], NULL, 0);
	}
	fcntl(r->area.fd, F_SETFL, O_NONBLOCK);
	while (!is_done(r)) {
		if (r->order->message == FAULT)
			area_fill(&r->area, (unsigned long)r->area.memory);
		if (read(r->area.fd, &message, sizeof(message)) > 0 &&
		    message.event == UFFD_EVENT_FORK)
			close(message.arg.fork.ufd);
		uffd_nap();
	}
	pthread_join(r->thread, NULL);
	area_close(&r->area);
}

/* As the kernel throttles the spinner after a second. */
static bool victim_has_run(const struct round *r)
{
	return r->victim >= 0 && (r->got[r->victim] ||
				  state_of(r->readers[r->victim]) == 'Z');
}

/* Follows the order. False if the victim ran before its time. */
static bool round_run(struct round *r)
{
	const struct order *o = r->order;
	bool kept;

	pthread_create(&r->spinner, NULL, spinner_run, r);
	while (!__atomic_load_n(&r->spins, __ATOMIC_ACQUIRE))
		uffd_nap();
	if (o->moment == BEFORE_MESSAGE)
		victim_kill(r);
	pthread_create(&r->thread, NULL, message_run, r);
	wait_until_message_has_woken(r);
	if (o->moment == AFTER_MESSAGE)
		victim_kill(r);
	kept = !victim_has_run(r);
	__atomic_store_n(&r->stop, true, __ATOMIC_RELEASE);
	pthread_join(r->spinner, NULL);
	if (r->victim >= 0)
		waitid(P_PID, r->readers[r->victim], NULL, WEXITED | WNOWAIT);
	/* The victim may have been killed before there was a message. */
	wait_until_message_has_woken(r);
	return kept;
}

/* Returns whether the order was kept; if not, nothing is counted. */
static bool round_try(const struct order *order, int *got, struct counts *counts)
{
	struct round r = { .order = order, .got = got };
	bool kept;

	round_start(&r);
	kept = round_run(&r);
	if (kept && !is_served(&r)) {
		if (messages_pending(r.area.fd) > 0)
			counts->missed++;
		else
			counts->lost++;
	}
	round_end(&r);
	return kept;
}

FIXTURE(dying)
{
	int *got;
};

FIXTURE_VARIANT(dying)
{
	struct order order;
};

#define ORDER(name, ...) \
	FIXTURE_VARIANT_ADD(dying, name) { .order = { __VA_ARGS__ } }

ORDER(nobody, FAULT, NOBODY, AFTER_MESSAGE, ALL, 0);
ORDER(first_alone, FAULT, FIRST, AFTER_MESSAGE, VICTIM, SIGKILL);
ORDER(last_alone, FAULT, LAST, AFTER_MESSAGE, VICTIM, SIGKILL);
ORDER(first, FAULT, FIRST, AFTER_MESSAGE, ALL, SIGKILL);
ORDER(any, FAULT, ANY, AFTER_MESSAGE, ALL, SIGKILL);
ORDER(first_before_the_fault, FAULT, FIRST, BEFORE_MESSAGE, ALL, SIGKILL);
ORDER(any_before_the_fault, FAULT, ANY, BEFORE_MESSAGE, ALL, SIGKILL);
/* The kernel does not treat this signal as fatal until it is handled. */
ORDER(first_dumps_core, FAULT, FIRST, AFTER_MESSAGE, VICTIM, SIGQUIT);
ORDER(remove_event, REMOVE, FIRST, AFTER_MESSAGE, VICTIM, SIGKILL);
ORDER(remove_event_after_death, REMOVE, FIRST, BEFORE_MESSAGE, ALL, SIGKILL);
ORDER(fork_event, FORK, FIRST, AFTER_MESSAGE, VICTIM, SIGKILL);
ORDER(fork_event_after_death, FORK, FIRST, BEFORE_MESSAGE, ALL, SIGKILL);

FIXTURE_SETUP(dying)
{
	self->got = mmap(NULL, READERS * sizeof(*self->got), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->got);
}

FIXTURE_TEARDOWN(dying)
{
	munmap(self->got, READERS * sizeof(*self->got));
}

TEST_F_TIMEOUT(dying, reader_loses_no_message, 3600)
{
	struct counts counts = {};
	int wanted = rounds_wanted(), rounds = 0, tries = 0;

	run_on(0);
	while (rounds < wanted && tries++ < 5 * wanted + 20)
		rounds += round_try(&variant->order, self->got, &counts);
	TH_LOG("%d lost of %d", counts.lost, rounds);
	EXPECT_EQ(wanted, rounds);
	EXPECT_EQ(0, counts.missed);
	if (is_patched())
		EXPECT_EQ(0, counts.lost);
}

TEST_HARNESS_MAIN
