// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs programs in a child process, a few in each. A program fails if the kernel
 * reports something, if a task cannot be killed, or if the module is still in use after
 * all programs have ended.
 */
#include "calls.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* Time for the threads of a program; then the child is killed with them. */
#define PROGRAM_MS 60
/* Time limit for anything that must happen, on a slow and busy machine. */
#define PATIENCE_MS 30000

struct actor {
	const struct program *program;
	unsigned int thread;
	int *running;
};

static void sleep_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

static void *act(void *arg)
{
	const struct actor *a = arg;

	cover_begin(a->thread);
	for (int i = 0; i < a->program->length; i++) {
		if (a->program->call[i].thread == a->thread)
			kind_call(&a->program->call[i]);
	}
	cover_end(a->thread);
	__atomic_sub_fetch(a->running, 1, __ATOMIC_RELEASE);
	return NULL;
}

static bool has_thread(const struct program *p, unsigned int thread)
{
	for (int i = 0; i < p->length; i++) {
		if (p->call[i].thread == thread)
			return true;
	}
	return false;
}

/*
 * The first calls of thread 0 run before the other threads start: they are the setup.
 */
static int setup_length(const struct program *p)
{
	int n = 0;

	while (n < p->length && !p->call[n].thread)
		n++;
	return n;
}

/* False: some threads still wait. */
static bool act_all(const struct program *p)
{
	static struct actor actors[THREADS];
	static struct program rest;
	static int running;
	int n = setup_length(p), spent = 0;
	pthread_attr_t detached;
	pthread_t thread;

	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	cover_begin(0);
	for (int i = 0; i < n; i++)
		kind_call(&p->call[i]);
	cover_end(0);
	rest.length = p->length - n;
	memcpy(rest.call, p->call + n, rest.length * sizeof(*rest.call));
	running = 0;
	for (int i = 0; i < THREADS; i++)
		running += has_thread(&rest, i);
	for (int i = 0; i < THREADS; i++) {
		actors[i] = (struct actor){ &rest, i, &running };
		if (has_thread(&rest, i) &&
		    pthread_create(&thread, &detached, act, &actors[i]))
			_exit(2);
	}
	while (__atomic_load_n(&running, __ATOMIC_ACQUIRE) &&
	       spent++ < PROGRAM_MS)
		sleep_ms(1);
	return !__atomic_load_n(&running, __ATOMIC_ACQUIRE);
}

/* Memory that the child and the fuzzer share; the pipes signal its changes. */
static struct program *shared;
static int go[2], done[2];
static pid_t child;
static unsigned int left;	/* programs that this child still runs */

static void run_child(void)
{
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(go[1]);
	close(done[0]);
	kind_init();
	place_init();
	while (read(go[0], &byte, 1) == 1) {
		alarm(5);	/* the setup may wait for ever */
		if (!act_all(shared))
			_exit(0);
		if (byte)
			_exit(0);	/* its exit closes everything */
		waiting_clear();
		place_clear();
		(void)!write(done[1], &byte, 1);
	}
	_exit(0);
}

static bool start_child(void)
{
	if (!shared)
		shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (pipe2(go, O_CLOEXEC) || pipe2(done, O_CLOEXEC))
		return false;
	left = 1 + random_below(12);
	child = fork();
	if (!child)
		run_child();
	close(go[0]);
	close(done[1]);
	return child > 0;
}

static bool can_be_read(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

/* False: it cannot be killed. */
static bool end_child(void)
{
	int pidfd = syscall(SYS_pidfd_open, child, 0);
	bool ended;

	kill(child, SIGKILL);
	ended = can_be_read(pidfd, PATIENCE_MS);
	close(pidfd);
	close(go[1]);
	close(done[0]);
	if (ended)
		waitpid(child, NULL, 0);
	child = 0;
	return ended;
}

const char *run_program(const struct program *p)
{
	char last, byte;

	cover_forget();
	if (!child && !start_child())
		return "no child to run it";
	*shared = *p;
	last = !--left;
	(void)!write(go[1], &last, 1);
	/* No answer: the child has exited, or takes too long. */
	if (!can_be_read(done[0], 1000) || read(done[0], &byte, 1) != 1) {
		if (!end_child())
			return "a task cannot be ended";
	}
	return log_complaint();
}

static long module_users(void)
{
	char text[32] = "";
	int fd = open("/sys/module/flowfd/refcnt", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	(void)!read(fd, text, sizeof(text) - 1);
	close(fd);
	return atol(text);
}

/*
 * Whether all resources of programs are released: sockets are collected with a delay.
 */
const char *run_settled(void)
{
	int spent = 0;

	if (child && !end_child())
		return "a task cannot be ended";
	while (module_users() && spent < PATIENCE_MS) {
		sleep_ms(50);
		spent += 50;
	}
	return module_users() ? "the module is still in use" : log_complaint();
}
