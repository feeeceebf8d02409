// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bridges between eventfds and a guest of KVM: what interrupts it (irqfd) as a sink, what
 * it writes to a port (ioeventfd) as a source. Skipped where there is no KVM.
 *
 * FLOWFD_BRIDGE_MS says how long each rate is measured, FLOWFD_BRIDGE_RATE the tokens a
 * second.
 */
#include "bridge_user.h"
#include "kvm_guest.h"

#ifdef __x86_64__

#define LIMIT 200

struct scene {
	struct kvm_guest guest;
	int fd;		/* a counter for what interrupts the guest */
	int in;		/* an eventfd, for its source */
	int irq;	/* interrupts the guest */
	int back;	/* a counter for what the guest answers */
	int port;	/* what the guest writes to its port */
	int answer;	/* an eventfd, for the sink of @back */
};

static bool scene_open(struct scene *s, int kvm)
{
	s->fd = open_counter(CREATED, 0, EFD_NONBLOCK);
	s->in = new_eventfd();
	s->irq = new_eventfd();
	s->back = open_counter(CREATED, 0, EFD_NONBLOCK);
	s->port = new_eventfd();
	s->answer = new_eventfd();
	return guest_open(&s->guest, kvm) && !guest_irqfd(&s->guest, s->irq, 0) &&
	       !guest_ioeventfd(&s->guest, s->port, 0);
}

static void scene_close(struct scene *s)
{
	guest_close(&s->guest);
	close(s->fd);
	close(s->in);
	close(s->irq);
	close(s->back);
	close(s->port);
	close(s->answer);
}

/* The way to the guest. */
static bool bridge_there(struct scene *s)
{
	return !source(s->fd, s->in) && !sink(s->fd, s->irq);
}

/* The way from it. */
static bool bridge_back(struct scene *s)
{
	return !source(s->back, s->port) && !sink(s->back, s->answer);
}

FIXTURE(bridge_kvm)
{
	const char *why_not;	/* to be skipped */
	int kvm;
	struct scene scene;
	long users;
};

FIXTURE_SETUP(bridge_kvm)
{
	self->kvm = -1;
	self->why_not = "this emulator hangs when KVM changes the kernel's code";
	if (emulator_hangs())
		return;
	self->kvm = kvm_open();
	self->why_not = self->kvm < 0 ? "there is no KVM here" : NULL;
	if (self->why_not)
		return;
	self->users = module_users();
	ASSERT_TRUE(scene_open(&self->scene, self->kvm));
}

/* First in each test: in the harness of 6.1 a test runs though its setup is skipped. */
#define NEED_KVM()                                                \
	do {                                                      \
		if (self->why_not)                                \
			SKIP(return, "%s", self->why_not);        \
	} while (0)

FIXTURE_TEARDOWN(bridge_kvm)
{
	if (self->why_not)
		return;
	scene_close(&self->scene);
	EXPECT_EQ(0, self->scene.guest.exit_reason);
	close(self->kvm);
	EXPECT_EQ(self->users, settled_module_users(self->users));
}

static __u32 word(const __u32 *w)
{
	return __atomic_load_n(w, __ATOMIC_SEQ_CST);
}

static bool raise_irq(struct kvm_guest *g, int fd)
{
	__atomic_add_fetch(&g->words->made, 1, __ATOMIC_SEQ_CST);
	return add(fd, 1) == 8;
}

/* Nobody raises another one: the last one must have come. */
static bool all_is_seen(struct kvm_guest *g)
{
	__u64 until = ms_from_now(PATIENCE_MS);

	while (word(&g->words->seen) != g->words->made) {
		if (now_ns() > until)
			return false;
		sched_yield();
	}
	return true;
}

struct rate {
	__u64 ns;
	__u64 raised;
	__u64 interrupts;
};

/* Raises interrupts without rest; false: the last one got lost. */
static bool measure(struct kvm_guest *g, int fd, struct rate *rate)
{
	__u64 begin = now_ns(), end = ms_from_now(parameter("FLOWFD_BRIDGE_MS", 500));
	__u32 before = word(&g->words->interrupts);
	bool seen;

	for (*rate = (struct rate){ 0 }; now_ns() < end; rate->raised++) {
		if (!raise_irq(g, fd))
			return false;
	}
	seen = all_is_seen(g);
	rate->ns = now_ns() - begin;
	rate->interrupts = word(&g->words->interrupts) - before;
	return seen;
}

/* The harness ends a test without stdio. */
static void report(const char *name, const struct rate *rate)
{
	printf("# %s: %lu raised/s, %lu interrupts/s\n", name,
	       per_second(rate->raised, rate->ns), per_second(rate->interrupts, rate->ns));
	fflush(stdout);
}

TEST_F(bridge_kvm, interrupts_are_moderated)
{
	__u32 limit = parameter("FLOWFD_BRIDGE_RATE", LIMIT);
	struct rate plain, bridged, moderated;
	struct scene *s = &self->scene;

	NEED_KVM();
	ASSERT_TRUE(measure(&s->guest, s->irq, &plain));
	report("irqfd", &plain);
	ASSERT_TRUE(bridge_there(s));
	ASSERT_TRUE(measure(&s->guest, s->in, &bridged));
	report("bridge", &bridged);
	ASSERT_EQ(0, set_qos(s->fd, 1, limit));
	ASSERT_TRUE(measure(&s->guest, s->in, &moderated));
	report("bridge with a bucket", &moderated);
	EXPECT_GE(moderated.ns * limit / 1000000000 + 2, moderated.interrupts);
	EXPECT_LT(moderated.interrupts, moderated.raised);
	EXPECT_LT(0, moderated.interrupts);
	EXPECT_TRUE(count_becomes(s->fd, 0));
}

/* After each burst of a random length the guest must see the last one. */
TEST_F(bridge_kvm, no_interrupt_is_lost)
{
	unsigned long bursts = parameter("FLOWFD_BRIDGE_BURSTS", 300);
	struct scene *s = &self->scene;
	unsigned int seed = 1;

	NEED_KVM();
	ASSERT_TRUE(bridge_there(s));
	for (unsigned long i = 0; i < bursts; i++) {
		if (i % 50 == 0)
			ASSERT_EQ(0, set_qos(s->fd, 1, i % 100 ? 2000 : 0));
		for (int n = rand_r(&seed) % 5; n >= 0; n--) {
			ASSERT_TRUE(raise_irq(&s->guest, s->in));
			spin_ns(rand_r(&seed) % 100000);
		}
		ASSERT_TRUE(all_is_seen(&s->guest))
			TH_LOG("burst %lu: count %llu, %u of %u", i,
			       (unsigned long long)count_of(s->fd),
			       word(&s->guest.words->seen), s->guest.words->made);
	}
}

/* The guest counts an interrupt after it has seen what was made, and may get one more. */
static bool answers_are_counted(struct scene *s)
{
	__u64 until = ms_from_now(PATIENCE_MS);

	while (count_of(s->back) != word(&s->guest.words->interrupts)) {
		if (now_ns() > until)
			return false;
		sleep_ms(1);
	}
	return true;
}

/* Each write of the guest to its port is in the counter. */
TEST_F(bridge_kvm, exits_feed_the_counter)
{
	struct scene *s = &self->scene;
	struct rate rate;

	NEED_KVM();
	ASSERT_EQ(0, source(s->back, s->port));
	ASSERT_TRUE(measure(&s->guest, s->irq, &rate));
	EXPECT_TRUE(answers_are_counted(s));
}

/* An interrupt, and the answer of the guest. */
static bool round_trip(struct kvm_guest *g, int fd, int answer)
{
	__u64 value;

	return raise_irq(g, fd) && poll_for(answer, POLLIN, PATIENCE_MS) == POLLIN &&
	       take(answer, &value) == 8;
}

/* A second; 0: one of them got no answer. */
static unsigned long round_trips(struct kvm_guest *g, int fd, int answer)
{
	__u64 begin = now_ns(), end = ms_from_now(parameter("FLOWFD_BRIDGE_MS", 500));
	unsigned long rounds = 0;

	while (now_ns() < end) {
		if (!round_trip(g, fd, answer))
			return 0;
		rounds++;
	}
	return per_second(rounds, now_ns() - begin);
}

/* Both directions through bridges. */
TEST_F(bridge_kvm, round_trips)
{
	struct scene *s = &self->scene;
	unsigned long plain, bridged;

	NEED_KVM();
	plain = round_trips(&s->guest, s->irq, s->port);
	EXPECT_LT(0, plain);
	ASSERT_TRUE(bridge_there(s));
	ASSERT_TRUE(bridge_back(s));
	bridged = round_trips(&s->guest, s->in, s->answer);
	EXPECT_LT(0, bridged);
	printf("# round trips/s: %lu, with two bridges %lu\n", plain, bridged);
	fflush(stdout);
}

/* KVM takes the count of an eventfd first, in whatever order both were bound. */
TEST_F(bridge_kvm, irqfd_takes_all)
{
	struct scene *s = &self->scene;
	__u64 value;

	NEED_KVM();
	ASSERT_EQ(0, source(s->fd, s->irq));
	for (int round = 0; round < 2; round++) {
		ASSERT_TRUE(raise_irq(&s->guest, s->irq));
		EXPECT_TRUE(all_is_seen(&s->guest));
		EXPECT_EQ(0, count_of(s->fd));
		ASSERT_EQ(0, guest_irqfd(&s->guest, s->irq, KVM_IRQFD_FLAG_DEASSIGN));
		ASSERT_EQ(8, add(s->irq, 3));
		EXPECT_EQ(8, take(s->fd, &value));
		EXPECT_EQ(3, value);
		ASSERT_EQ(0, remove_source(s->fd));
		ASSERT_EQ(0, guest_irqfd(&s->guest, s->irq, 0));
		ASSERT_EQ(0, source(s->fd, s->irq));
	}
}

/* A thread that raises interrupts without rest, whatever becomes of them. */
struct flood {
	pthread_t thread;
	struct kvm_guest *guest;
	int fd;
	bool stop;
};

static void *flood_run(void *arg)
{
	struct flood *f = arg;

	while (!__atomic_load_n(&f->stop, __ATOMIC_RELAXED))
		raise_irq(f->guest, f->fd);
	return NULL;
}

static void flood_end(struct flood *f)
{
	__atomic_store_n(&f->stop, true, __ATOMIC_RELAXED);
	pthread_join(f->thread, NULL);
}

static void end_source(struct scene *s)
{
	close(s->in);
}

static void end_counter(struct scene *s)
{
	close(s->fd);
}

static void end_sink(struct scene *s)
{
	close(s->irq);
}

static void end_irqfd(struct scene *s)
{
	guest_irqfd(&s->guest, s->irq, KVM_IRQFD_FLAG_DEASSIGN);
}

static void end_port(struct scene *s)
{
	close(s->port);
}

static void end_ioeventfd(struct scene *s)
{
	guest_ioeventfd(&s->guest, s->port, KVM_IOEVENTFD_FLAG_DEASSIGN);
}

static void end_back(struct scene *s)
{
	close(s->back);
}

static void end_bridges(struct scene *s)
{
	remove_source(s->fd);
	remove_sink(s->fd);
}

/* The machine goes with its processor. */
static void end_guest(struct scene *s)
{
	close(s->guest.vm);
	guest_stop(&s->guest);
	munmap(s->guest.run, s->guest.run_size);
	s->guest.run = MAP_FAILED;
	close(s->guest.vcpu);
}

static const struct ending {
	const char *name;
	void (*run)(struct scene *s);
} endings[] = {
	{ "source", end_source },
	{ "counter", end_counter },
	{ "sink", end_sink },
	{ "irqfd", end_irqfd },
	{ "port", end_port },
	{ "ioeventfd", end_ioeventfd },
	{ "back", end_back },
	{ "bridges", end_bridges },
	{ "guest", end_guest },
};

static bool is_seen_soon(struct kvm_guest *g)
{
	for (int ms = 0; ms < 20; ms++) {
		if (word(&g->words->seen) == g->words->made)
			return true;
		sleep_ms(1);
	}
	return false;
}

/*
 * Interrupts it by another eventfd. More than once: two irqfds raise one line, and what is
 * left of the other one can hide the edge.
 */
static bool guest_lives(struct kvm_guest *g)
{
	__u64 until = ms_from_now(PATIENCE_MS);
	int fd = new_eventfd();
	bool lives = false;

	if (!guest_irqfd(g, fd, 0)) {
		while (!lives && now_ns() < until)
			lives = raise_irq(g, fd) && is_seen_soon(g);
	}
	guest_irqfd(g, fd, KVM_IRQFD_FLAG_DEASSIGN);
	close(fd);
	return lives;
}

/* One of all ends goes while interrupts come. What is left works on. */
static bool end_it(struct scene *s, const struct ending *ending, unsigned int *seed)
{
	struct flood flood = { .guest = &s->guest, .fd = s->in };

	if (!bridge_there(s) || !bridge_back(s) || set_qos(s->fd, 1, rand_r(seed) % 5000) ||
	    pthread_create(&flood.thread, NULL, flood_run, &flood))
		return false;
	sleep_ms(rand_r(seed) % 20);
	ending->run(s);
	sleep_ms(rand_r(seed) % 3);
	flood_end(&flood);
	return ending->run == end_guest || guest_lives(&s->guest);
}

TEST_F(bridge_kvm, ends_at_any_time)
{
	unsigned long rounds = parameter("FLOWFD_RACES", 3);
	struct scene *s = &self->scene;
	unsigned int seed = 1;

	NEED_KVM();
	for (unsigned int i = 0; i < ARRAY_SIZE(endings) * rounds; i++) {
		const struct ending *ending = &endings[i % ARRAY_SIZE(endings)];

		EXPECT_TRUE(end_it(s, ending, &seed))
			TH_LOG("%s", ending->name);
		scene_close(s);
		EXPECT_EQ(0, s->guest.exit_reason);
		ASSERT_TRUE(scene_open(s, self->kvm));
	}
}

#else

TEST(kvm)
{
	SKIP(return, "the guest is for another processor");
}

#endif

TEST_HARNESS_MAIN
