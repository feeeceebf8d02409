// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bridges between vhost-net and a guest, which the program plays: the eventfd by which
 * vhost calls the guest as a source, the one by which the guest kicks vhost as a sink.
 * Skipped where there is no vhost-net.
 *
 * FLOWFD_BRIDGE_MS says how long each rate is measured, FLOWFD_BRIDGE_RATE the tokens a
 * second.
 */
#include "bridge_user.h"
#include "vhost_net.h"

#define LIMIT 200

struct scene {
	struct vhost_net vhost;
	int fd;		/* a counter */
	int call;	/* by which vhost calls, for RX */
	int kick;	/* by which the guest kicks, for RX */
	int tx_kick;	/* the same for TX */
	int in;		/* an eventfd, for the source of @fd */
	int out;	/* another, for its sink */
	__u64 sent;	/* frames for the guest */
	__u64 received;
	__u64 calls;	/* that the guest woke for */
	__u64 signals;	/* the sum of their values */
	bool in_order;
	bool stop;
};

static bool scene_open(struct scene *s)
{
	*s = (struct scene){ .in_order = true };
	s->fd = open_counter(CREATED, 0, EFD_NONBLOCK);
	s->call = new_eventfd();
	s->kick = new_eventfd();
	s->tx_kick = new_eventfd();
	s->in = new_eventfd();
	s->out = new_eventfd();
	return vhost_open(&s->vhost) && vhost_set_call(&s->vhost, RX, s->call) &&
	       vhost_set_kick(&s->vhost, RX, s->kick) &&
	       vhost_set_kick(&s->vhost, TX, s->tx_kick);
}

/* The guest has given all its buffers. */
static bool scene_start(struct scene *s)
{
	for (int i = 0; i < QUEUE_SIZE; i++)
		virtqueue_give(&s->vhost.memory[RX], i);
	return vhost_set_backend(&s->vhost, RX, s->vhost.tap) &&
	       vhost_set_backend(&s->vhost, TX, s->vhost.tap);
}

static void scene_close(struct scene *s)
{
	vhost_close(&s->vhost);
	close(s->fd);
	close(s->call);
	close(s->kick);
	close(s->tx_kick);
	close(s->in);
	close(s->out);
}

FIXTURE(bridge_vhost)
{
	bool there;
	struct scene scene;
	long users;
};

FIXTURE_SETUP(bridge_vhost)
{
	int fd = vhost_device_open();

	self->there = fd >= 0;
	if (!self->there)
		return;
	close(fd);
	ASSERT_EQ(0, unshare(CLONE_NEWNET));
	self->users = module_users();
	ASSERT_TRUE(scene_open(&self->scene));
	ASSERT_TRUE(scene_start(&self->scene));
}

/* First in each test: in the harness of 6.1 a test runs though its setup is skipped. */
#define NEED_VHOST()                                              \
	do {                                                      \
		if (!self->there)                                 \
			SKIP(return, "there is no vhost-net here"); \
	} while (0)

FIXTURE_TEARDOWN(bridge_vhost)
{
	if (!self->there)
		return;
	scene_close(&self->scene);
	EXPECT_EQ(self->users, settled_module_users(self->users));
}

/* The guest: one of the frames, or one that the kernel sent. */
static void receive(struct scene *s, const char *buffer)
{
	const struct frame *frame = (const void *)(buffer + HEADER_SIZE);

	if (frame->ether.ether_type != htons(FRAME_TYPE))
		return;
	s->in_order &= frame->number == s->received;
	__atomic_store_n(&s->received, s->received + 1, __ATOMIC_RELEASE);
}

static void receive_all(struct scene *s)
{
	struct virtqueue *q = &s->vhost.memory[RX];
	int i;

	while ((i = virtqueue_take(q)) >= 0) {
		receive(s, q->buffers[i]);
		virtqueue_give(q, i);
		if (virtqueue_wants_kick(q))
			add(s->kick, 1);
	}
}

/* The guest: sleeps until it is called, and then looks. */
struct guest {
	pthread_t thread;
	struct scene *scene;
	int fd;
};

static void *guest_run(void *arg)
{
	struct guest *g = arg;
	struct scene *s = g->scene;
	__u64 value;

	while (!__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE)) {
		poll_for(g->fd, POLLIN, 10);
		if (take(g->fd, &value) != 8)
			continue;
		s->calls++;
		s->signals += value;
		receive_all(s);
	}
	return NULL;
}

static bool guest_start(struct guest *g, struct scene *s, int fd)
{
	*g = (struct guest){ .scene = s, .fd = fd };
	s->calls = 0;
	s->signals = 0;
	s->stop = false;
	return !pthread_create(&g->thread, NULL, guest_run, g);
}

static void guest_end(struct guest *g)
{
	__atomic_store_n(&g->scene->stop, true, __ATOMIC_RELEASE);
	pthread_join(g->thread, NULL);
}

/* So many frames may be on their way that none is dropped. */
static bool has_room(struct scene *s)
{
	return s->sent - __atomic_load_n(&s->received, __ATOMIC_ACQUIRE) < QUEUE_SIZE;
}

static void send_frames(struct scene *s, __u64 until)
{
	while (now_ns() < until) {
		if (!has_room(s))
			sched_yield();
		else if (vhost_send(&s->vhost, s->sent))
			s->sent++;
	}
}

struct rate {
	__u64 ns;
	__u64 frames;
	__u64 calls;
	__u64 signals;
};

/* The harness ends a test without stdio. */
static void report(const char *name, const struct rate *rate)
{
	printf("# %s: %lu frames/s, %lu calls/s\n", name, per_second(rate->frames, rate->ns),
	       per_second(rate->calls, rate->ns));
	fflush(stdout);
}

static void report_kicks(const char *name, const struct rate *rate)
{
	printf("# %s: %lu frames/s, each with a kick", name,
	       per_second(rate->frames, rate->ns));
	if (!signals_have_values())
		printf(", %lu signals/s", per_second(rate->signals, rate->ns));
	printf("\n");
	fflush(stdout);
}

/* Frames without rest to a guest that sleeps on @fd; false: the last ones got lost. */
static bool measure(struct scene *s, int fd, struct rate *rate)
{
	__u64 begin = now_ns(), before = s->sent;
	struct guest guest;
	bool all;

	if (!guest_start(&guest, s, fd))
		return false;
	send_frames(s, ms_from_now(parameter("FLOWFD_BRIDGE_MS", 500)));
	all = wait_until_sum(&s->received, s->sent);
	rate->ns = now_ns() - begin;
	guest_end(&guest);
	rate->frames = s->sent - before;
	rate->calls = s->calls;
	rate->signals = s->signals;
	return all;
}

TEST_F(bridge_vhost, calls_are_moderated)
{
	__u32 limit = parameter("FLOWFD_BRIDGE_RATE", LIMIT);
	struct rate plain, bridged, moderated;
	struct scene *s = &self->scene;

	NEED_VHOST();
	ASSERT_TRUE(measure(s, s->call, &plain));
	report("vhost's call", &plain);
	ASSERT_EQ(0, source(s->fd, s->call));
	ASSERT_EQ(0, sink(s->fd, s->out));
	ASSERT_TRUE(measure(s, s->out, &bridged));
	report("bridge", &bridged);
	ASSERT_EQ(0, set_qos(s->fd, 1, limit));
	ASSERT_TRUE(measure(s, s->out, &moderated));
	report("bridge with a bucket", &moderated);
	EXPECT_GE(moderated.ns * limit / 1000000000 + 2,
		  signals_have_values() ? moderated.calls : moderated.signals);
	EXPECT_LT(moderated.calls, moderated.frames);
	EXPECT_LT(0, moderated.calls);
	EXPECT_TRUE(s->in_order);
	EXPECT_EQ(s->sent, s->received);
	EXPECT_TRUE(count_becomes(s->fd, 0));
}

/* Frames that the interface got from the guest. */
static __u64 frames_of_the_interface(void)
{
	char value[128];
	__u64 bytes, frames;

	proc_value("/proc/self/net/dev", "  tap0", value, sizeof(value));
	return sscanf(value, "%llu %llu", &bytes, &frames) == 2 ? frames : ULLONG_MAX;
}

static unsigned int reclaim(struct virtqueue *q)
{
	unsigned int n = 0;

	while (virtqueue_take(q) >= 0)
		n++;
	return n;
}

/* vhost uses the buffers of TX in their order. */
static void transmit(struct virtqueue *q, __u64 number)
{
	__u16 i = number % QUEUE_SIZE;

	frame_init((struct frame *)(q->buffers[i] + HEADER_SIZE), number);
	q->desc[i].len = htole32(HEADER_SIZE + sizeof(struct frame));
	virtqueue_give(q, i);
}

/* A guest that kicks for each frame; false: the last ones were not sent. */
static bool measure_kicks(struct scene *s, int fd, struct rate *rate)
{
	__u64 begin = now_ns(), end = ms_from_now(parameter("FLOWFD_BRIDGE_MS", 500));
	struct virtqueue *q = &s->vhost.memory[TX];
	__u64 before = frames_of_the_interface(), done = 0;

	for (*rate = (struct rate){ 0 }; now_ns() < end; done += reclaim(q)) {
		if (rate->frames - done == QUEUE_SIZE)
			continue;
		transmit(q, s->sent++);
		rate->frames++;
		add(fd, 1);
	}
	for (end = ms_from_now(PATIENCE_MS); done < rate->frames && now_ns() < end;)
		done += reclaim(q);
	rate->ns = now_ns() - begin;
	rate->signals = count_of(s->tx_kick);
	return frames_of_the_interface() - before == rate->frames;
}

TEST_F(bridge_vhost, kicks_are_moderated)
{
	__u32 limit = parameter("FLOWFD_BRIDGE_RATE", LIMIT);
	struct rate plain, bridged, moderated;
	struct scene *s = &self->scene;
	__u64 value;

	NEED_VHOST();
	ASSERT_TRUE(measure_kicks(s, s->tx_kick, &plain));
	report_kicks("kick of vhost", &plain);
	EXPECT_EQ(plain.frames, plain.signals);
	EXPECT_EQ(8, take(s->tx_kick, &value));
	ASSERT_EQ(0, source(s->fd, s->in));
	ASSERT_EQ(0, sink(s->fd, s->tx_kick));
	ASSERT_TRUE(measure_kicks(s, s->in, &bridged));
	report_kicks("bridge", &bridged);
	EXPECT_TRUE(count_becomes(s->fd, 0));
	EXPECT_EQ(8, take(s->tx_kick, &value));
	EXPECT_EQ(signals_have_values() ? bridged.frames : value, value);
	ASSERT_EQ(0, set_qos(s->fd, 1, limit));
	ASSERT_TRUE(measure_kicks(s, s->in, &moderated));
	report_kicks("bridge with a bucket", &moderated);
	EXPECT_TRUE(count_becomes(s->fd, 0));
	EXPECT_EQ(8, take(s->tx_kick, &value));
	if (signals_have_values()) {
		EXPECT_EQ(moderated.frames, value);
	} else {
		EXPECT_GE(moderated.ns * limit / 1000000000 + 2, moderated.signals);
	}
}

static void *flood_run(void *arg)
{
	struct scene *s = arg;

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED))
		send_frames(s, ms_from_now(1));
	return NULL;
}

static void end_source(struct scene *s)
{
	close(s->call);
}

static void end_counter(struct scene *s)
{
	close(s->fd);
}

static void end_sink(struct scene *s)
{
	close(s->out);
}

static void end_bridges(struct scene *s)
{
	remove_source(s->fd);
	remove_sink(s->fd);
}

static void end_call(struct scene *s)
{
	vhost_set_call(&s->vhost, RX, -1);
}

static void end_backend(struct scene *s)
{
	vhost_set_backend(&s->vhost, RX, -1);
	vhost_set_backend(&s->vhost, RX, s->vhost.tap);
}

static void end_vhost(struct scene *s)
{
	close(s->vhost.fd);
}

static void end_tap(struct scene *s)
{
	close(s->vhost.tap);
}

static const struct ending {
	const char *name;
	void (*run)(struct scene *s);
	bool vhost_ends;
} endings[] = {
	{ "source", end_source },
	{ "counter", end_counter },
	{ "sink", end_sink },
	{ "bridges", end_bridges },
	{ "call", end_call },
	{ "backend", end_backend },
	{ "vhost", end_vhost, true },
	{ "tap", end_tap, true },
};

/*
 * Frames come by another eventfd. The guest looks once before, as one does that was told
 * nothing for a while.
 */
static bool vhost_lives(struct scene *s)
{
	int fd = new_eventfd();
	struct guest guest;
	bool lives;

	if (!vhost_set_call(&s->vhost, RX, fd) || add(fd, 1) != 8 ||
	    !guest_start(&guest, s, fd))
		return false;
	send_frames(s, ms_from_now(5));
	lives = wait_until_sum(&s->received, s->sent) && s->in_order;
	guest_end(&guest);
	close(fd);
	return lives;
}

/* One of all ends goes while frames come. What is left works on. */
static bool end_it(struct scene *s, const struct ending *ending, unsigned int *seed)
{
	struct guest guest;
	pthread_t flood;

	if (source(s->fd, s->call) || sink(s->fd, s->out) ||
	    set_qos(s->fd, 1, rand_r(seed) % 5000) || !guest_start(&guest, s, s->out) ||
	    pthread_create(&flood, NULL, flood_run, s))
		return false;
	sleep_ms(rand_r(seed) % 20);
	ending->run(s);
	sleep_ms(rand_r(seed) % 3);
	guest_end(&guest);
	pthread_join(flood, NULL);
	return ending->vhost_ends || vhost_lives(s);
}

TEST_F(bridge_vhost, ends_at_any_time)
{
	unsigned long rounds = parameter("FLOWFD_RACES", 3);
	struct scene *s = &self->scene;
	unsigned int seed = 1;

	NEED_VHOST();
	for (unsigned int i = 0; i < ARRAY_SIZE(endings) * rounds; i++) {
		const struct ending *ending = &endings[i % ARRAY_SIZE(endings)];

		EXPECT_TRUE(end_it(s, ending, &seed))
			TH_LOG("%s", ending->name);
		scene_close(s);
		ASSERT_TRUE(scene_open(s) && scene_start(s));
	}
}

TEST_HARNESS_MAIN
