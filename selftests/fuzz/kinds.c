// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kinds of calls: a name for printing, a weight for choosing, a function. Also runs
 * one of them, with an injected fault if the call has one.
 */
#include "calls.h"

#include <setjmp.h>
#include <signal.h>

static const struct kind {
	const char *name;
	void (*run)(const __u32 *arg);
	unsigned int weight;
} kinds[] = {
	{ "open", call_open, 3 },
	{ "eventfd", call_eventfd, 2 },
	{ "timer", call_timer, 2 },
	{ "terminal", call_terminal, 2 },
	{ "pipe", call_pipe, 3 },
	{ "sockets", call_sockets, 3 },
	{ "other_file", call_other_file, 2 },
	{ "close", call_close, 6 },
	{ "dup", call_dup, 2 },
	{ "shutdown", call_shutdown, 1 },
	{ "send", call_send, 3 },
	{ "receive", call_receive, 2 },
	{ "flags", call_flags, 2 },
	{ "fdinfo", call_fdinfo, 2 },
	{ "create_counter", call_create_counter, 5 },
	{ "setup_counter", call_setup_counter, 2 },
	{ "read", call_read, 5 },
	{ "write", call_write, 6 },
	{ "read_parts", call_read_parts, 2 },
	{ "write_parts", call_write_parts, 2 },
	{ "set_maximum", call_set_maximum, 3 },
	{ "get_maximum", call_get_maximum, 1 },
	{ "set_qos", call_set_qos, 4 },
	{ "get_qos", call_get_qos, 1 },
	{ "set_flow", call_set_flow, 4 },
	{ "get_flow", call_get_flow, 1 },
	{ "transfer", call_transfer, 5 },
	{ "notify", call_notify, 3 },
	{ "stats", call_stats, 2 },
	{ "bridge", call_bridge, 5 },
	{ "splice", call_splice, 1 },
	{ "create_ring", call_create_ring, 5 },
	{ "add", call_add, 10 },
	{ "change", call_change, 5 },
	{ "delete", call_delete, 6 },
	{ "add_post", call_add_post, 5 },
	{ "delete_post", call_delete_post, 3 },
	{ "notify_ring", call_notify_ring, 3 },
	{ "control", call_control, 3 },
	{ "wait", call_wait, 3 },
	{ "query", call_query, 1 },
	{ "any_ioctl", call_any_ioctl, 4 },
	{ "map", call_map, 4 },
	{ "map_counter", call_map_counter, 4 },
	{ "count", call_count, 5 },
	{ "unmap", call_unmap, 2 },
	{ "remap", call_remap, 1 },
	{ "protect", call_protect, 1 },
	{ "advise", call_advise, 1 },
	{ "scribble", call_scribble, 4 },
	{ "post", call_post, 6 },
	{ "take_posts", call_take_posts, 4 },
	{ "harvest", call_harvest, 5 },
	{ "poll", call_poll, 3 },
	{ "epoll", call_epoll, 2 },
	{ "epoll_add", call_epoll_add, 4 },
	{ "epoll_wait", call_epoll_wait, 2 },
	{ "aio_poll", call_aio_poll, 2 },
	{ "uring_poll", call_uring_poll, 3 },
	{ "uring_transfer", call_uring_transfer, 2 },
	{ "uring_wait", call_uring_wait, 1 },
	{ "pause", call_pause, 2 },
	{ "signal", call_signal, 1 },
	{ "fork", call_fork, 2 },
};

#define KINDS (sizeof(kinds) / sizeof(*kinds))

unsigned int kind_count(void)
{
	return KINDS;
}

const char *kind_name(unsigned int kind)
{
	return kinds[kind].name;
}

/* -1: no such kind. */
int kind_find(const char *name)
{
	for (unsigned int i = 0; i < KINDS; i++) {
		if (!strcmp(kinds[i].name, name))
			return i;
	}
	return -1;
}

unsigned int kind_random(void)
{
	unsigned int sum = 0, at, i;

	for (i = 0; i < KINDS; i++)
		sum += kinds[i].weight;
	at = random_below(sum);
	for (i = 0; at >= kinds[i].weight; i++)
		at -= kinds[i].weight;
	return i;
}

/* Another thread may unmap the memory that a call uses: the signal ends the call. */
static __thread sigjmp_buf *back;

static void on_bad_memory(int signal)
{
	if (!back)
		_exit(3);
	siglongjmp(*back, 1);
}

static void on_signal(int signal)
{
}

void kind_init(void)
{
	struct sigaction bad = { .sa_handler = on_bad_memory };
	struct sigaction other = { .sa_handler = on_signal };

	sigaction(SIGSEGV, &bad, NULL);
	sigaction(SIGBUS, &bad, NULL);
	sigaction(SIGUSR1, &other, NULL);
	sigaction(SIGIO, &other, NULL);
	signal(SIGPIPE, SIG_IGN);
}

void kind_call(const struct call *call)
{
	sigjmp_buf here;

	if (call->fail)
		fault_arm(call->fail);
	if (!sigsetjmp(here, 1)) {
		back = &here;
		kinds[call->kind].run(call->arg);
	}
	back = NULL;
	if (call->fail)
		fault_disarm();
}
