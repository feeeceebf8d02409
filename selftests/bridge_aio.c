// SPDX-License-Identifier: GPL-2.0-only
/*
 * The eventfd that Linux AIO signals for each completion (IOCB_FLAG_RESFD) as the source
 * of a counter.
 */
#include <linux/aio_abi.h>
#include <sys/timerfd.h>

#include "bridge_user.h"
#include "flow_user.h"
#include "racers.h"

#define REQUESTS 64

struct scene {
	aio_context_t context;
	int file;	/* always ready to be read */
	int fd;		/* a counter */
	int event;	/* which completions signal */
	int out;	/* an eventfd, for the sink of @fd */
	int pipe[2];	/* not ready */
};

static bool scene_open(struct scene *s)
{
	*s = (struct scene){ .context = 0 };
	s->file = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
	s->fd = open_counter(CREATED, 0, EFD_NONBLOCK);
	s->event = new_eventfd();
	s->out = new_eventfd();
	return !pipe2(s->pipe, O_NONBLOCK | O_CLOEXEC) &&
	       !syscall(SYS_io_setup, 2 * REQUESTS, &s->context) &&
	       !source(s->fd, s->event);
}

static void scene_close(struct scene *s)
{
	syscall(SYS_io_destroy, s->context);
	close(s->file);
	close(s->fd);
	close(s->event);
	close(s->out);
	close(s->pipe[0]);
	close(s->pipe[1]);
}

static void prepare_poll(struct iocb *request, int fd, int event)
{
	*request = (struct iocb){
		.aio_fildes = fd,
		.aio_lio_opcode = IOCB_CMD_POLL,
		.aio_buf = POLLIN,
		.aio_flags = IOCB_FLAG_RESFD,
		.aio_resfd = event,
	};
}

/* Polls of a file, whose completions signal; how many were taken on, or -errno. */
static long submit(struct scene *s, int fd, long n)
{
	struct iocb requests[REQUESTS], *list[REQUESTS];

	for (long i = 0; i < n; i++) {
		prepare_poll(&requests[i], fd, s->event);
		list[i] = &requests[i];
	}
	return result_of(syscall(SYS_io_submit, s->context, n, list));
}

/* How many were complete. */
static long harvest(struct scene *s, long least)
{
	struct io_event done[REQUESTS];
	struct timespec patience = { PATIENCE_MS / 1000, 0 };

	return result_of(syscall(SYS_io_getevents, s->context, least, REQUESTS, done,
				 &patience));
}

FIXTURE(bridge_aio)
{
	bool there;
	struct scene scene;
	long users;
};

FIXTURE_SETUP(bridge_aio)
{
	self->users = module_users();
	self->there = scene_open(&self->scene);
	ASSERT_TRUE(self->there || errno == ENOSYS);
}

/* First in each test: in the harness of 6.1 a test runs though its setup is skipped. */
#define NEED_AIO()                                                \
	do {                                                      \
		if (!self->there)                                 \
			SKIP(return, "this kernel has no AIO");   \
	} while (0)

FIXTURE_TEARDOWN(bridge_aio)
{
	if (!self->there)
		return;
	scene_close(&self->scene);
	EXPECT_EQ(self->users, settled_module_users(self->users));
}

TEST_F(bridge_aio, completions_feed_the_counter)
{
	struct scene *s = &self->scene;
	__u64 value;

	NEED_AIO();
	for (int i = 0; i < 100; i++) {
		ASSERT_EQ(REQUESTS, submit(s, s->file, REQUESTS));
		ASSERT_EQ(REQUESTS, harvest(s, REQUESTS));
	}
	ASSERT_EQ(8, take(s->fd, &value));
	EXPECT_EQ(100 * REQUESTS, value);
}

/* Completions in a wakeup, or in a work item, by what a pipe announces. */
TEST_F(bridge_aio, late_completions_feed_the_counter)
{
	struct scene *s = &self->scene;
	char byte;

	NEED_AIO();
	for (int i = 1; i <= 50; i++) {
		ASSERT_EQ(10, submit(s, s->pipe[0], 10));
		EXPECT_EQ((i - 1) * 10, count_of(s->fd));
		ASSERT_EQ(1, write(s->pipe[1], "x", 1));
		ASSERT_EQ(10, harvest(s, 10));
		ASSERT_TRUE(count_becomes(s->fd, i * 10));
		ASSERT_EQ(1, read(s->pipe[0], &byte, 1));
	}
}

/* The wakeup of a timer's pollers: in an interrupt. */
TEST_F(bridge_aio, completions_in_an_interrupt_feed_the_counter)
{
	struct itimerspec soon = { .it_value.tv_nsec = MSEC };
	struct scene *s = &self->scene;
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	NEED_AIO();
	ASSERT_LE(0, timer);
	ASSERT_EQ(0, sink(s->fd, s->out));
	for (int i = 0; i < 50; i++) {
		ASSERT_EQ(4, submit(s, timer, 4));
		ASSERT_EQ(0, timerfd_settime(timer, 0, &soon, NULL));
		ASSERT_EQ(4, harvest(s, 4));
		EXPECT_TRUE(count_becomes(s->fd, 0));
		ASSERT_EQ(8, read(timer, &(__u64){ 0 }, 8));
	}
	EXPECT_EQ(200, fdinfo_number(s->fd, "flowfd-produced", 10));
	close(timer);
}

/* Each request is complete when it was taken on. Either thread harvests those of both. */
struct submitter {
	pthread_t thread;
	struct scene *scene;
	__u64 until;
	__u64 done;
};

static void *submitter_run(void *arg)
{
	struct submitter *t = arg;
	long n;

	while (now_ns() < t->until) {
		n = submit(t->scene, t->scene->file, 8);
		t->done += n > 0 ? n : 0;
		harvest(t->scene, 0);
	}
	return NULL;
}

static __u64 submit_without_rest(struct scene *s)
{
	struct submitter both[2];
	__u64 sum = 0;

	for (int i = 0; i < 2; i++) {
		both[i] = (struct submitter){ .scene = s, .until = ms_from_now(500) };
		pthread_create(&both[i].thread, NULL, submitter_run, &both[i]);
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(both[i].thread, NULL);
		sum += both[i].done;
	}
	return sum;
}

/* Two threads without rest: through the bucket come fewer signals, and nothing is lost. */
TEST_F(bridge_aio, completions_are_moderated)
{
	struct scene *s = &self->scene;
	__u64 begin = now_ns(), completions, value;

	NEED_AIO();
	ASSERT_EQ(0, set_qos(s->fd, 1, 200));
	ASSERT_EQ(0, sink(s->fd, s->out));
	completions = submit_without_rest(s);
	EXPECT_LT(200, completions);
	EXPECT_TRUE(count_becomes(s->fd, 0));
	ASSERT_EQ(8, take(s->out, &value));
	if (signals_have_values()) {
		EXPECT_EQ(completions, value);
	} else {
		EXPECT_GE((now_ns() - begin) / 5000000 + 2, value);
	}
}

/*
 * A poll of the counter completes as the counter is written, and signals the counter's own
 * source. Once, as each poll is for one event.
 */
TEST_F(bridge_aio, poll_that_feeds_itself)
{
	struct scene *s = &self->scene;
	__u64 value;

	NEED_AIO();
	for (int i = 0; i < 20; i++) {
		ASSERT_EQ(1, submit(s, s->fd, 1));
		ASSERT_EQ(8, add(i % 2 ? s->fd : s->event, 5));
		ASSERT_EQ(1, harvest(s, 1));
		ASSERT_TRUE(count_becomes(s->fd, 6));
		ASSERT_EQ(8, take(s->fd, &value));
	}
}

static void do_complete(struct scene *s)
{
	submit(s, s->file, 8);
	submit(s, s->pipe[0], 8);
	if (write(s->pipe[1], "x", 1) == 1)
		submit(s, s->fd, 1);
}

static void do_source(struct scene *s)
{
	source(s->fd, s->event);
}

static void do_remove_source(struct scene *s)
{
	remove_source(s->fd);
}

static void do_close_source(struct scene *s)
{
	close(s->event);
}

static void do_close_counter(struct scene *s)
{
	close(s->fd);
}

static void do_close_sink(struct scene *s)
{
	close(s->out);
}

static void do_destroy(struct scene *s)
{
	syscall(SYS_io_destroy, s->context);
}

/* The one that completes is against each other, and itself. */
static const struct operation {
	const char *name;
	operation_run *run;
} operations[] = {
	{ "complete", do_complete },
	{ "source", do_source },
	{ "remove_source", do_remove_source },
	{ "close_source", do_close_source },
	{ "close_counter", do_close_counter },
	{ "close_sink", do_close_sink },
	{ "destroy", do_destroy },
};

TEST_F_TIMEOUT(bridge_aio, ends_at_any_time, 120)
{
	unsigned long rounds = parameter("FLOWFD_RACES", 5) * 10;
	struct scene *s = &self->scene;
	struct racers racers;

	NEED_AIO();
	ASSERT_TRUE(racers_start(&racers, s));
	for (unsigned int i = 0; i < ARRAY_SIZE(operations); i++) {
		for (unsigned long round = 0; round < rounds; round++) {
			ASSERT_EQ(0, sink(s->fd, s->out));
			racers_race(&racers, round, do_complete, operations[i].run);
			scene_close(s);
			ASSERT_TRUE(scene_open(s))
				TH_LOG("%s", operations[i].name);
		}
	}
	racers_end(&racers);
}

TEST_HARNESS_MAIN
