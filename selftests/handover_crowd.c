// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hand-over between many: whose turn comes how often, what it costs in context switches,
 * and that nothing is lost or added twice.
 */
#include <sys/resource.h>
#include <sys/wait.h>

#include "fixtures.h"
#include "flow_user.h"

FLOW_FIXTURE(flow);

/* Threads that write all the time. */
struct crowd {
	int fd;
	__u64 value;
	unsigned long writes;
	bool *stop;
	pthread_t thread;
	pid_t tid;
};

static void *crowd_run(void *arg)
{
	struct crowd *c = arg;

	__atomic_store_n(&c->tid, gettid(), __ATOMIC_RELEASE);
	while (!__atomic_load_n(c->stop, __ATOMIC_RELAXED) && add(c->fd, c->value) == 8)
		__atomic_add_fetch(&c->writes, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void crowd_start(struct __test_metadata *_metadata, struct crowd *crowd, int n)
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	for (int i = 0; i < n; i++) {
		ASSERT_EQ(0, pthread_create(&crowd[i].thread, &attr, crowd_run, &crowd[i]));
	}
	for (int i = 0; i < n; i++) {
		ASSERT_TRUE(wait_until_asleep(&crowd[i].tid, SYS_write))
			TH_LOG("writer %d", i);
	}
}

static void crowd_end(struct __test_metadata *_metadata, struct crowd *crowd, int n,
		      struct flow *f, bool *stop)
{
	__atomic_store_n(stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < n; i++) {
		while (pthread_tryjoin_np(crowd[i].thread, NULL)) {
			got(f);
			sched_yield();
		}
	}
}

/*
 * Big writers among small ones. All sleep when the reader comes, as it is slower than
 * they are: so in each round all get their turn once, whatever they write.
 */
#define CROWD 8

TEST_F(flow, big_writers_get_their_turn)
{
	unsigned long least = ULONG_MAX, small = 0;
	struct crowd crowd[CROWD];
	bool stop = false;
	__u64 taken = 0;

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(8, put(&self->f, 9));
	for (int i = 0; i < CROWD; i++)
		crowd[i] = (struct crowd){ .fd = self->fd, .value = i < 2 ? 9 : 1,
					   .stop = &stop };
	crowd_start(_metadata, crowd, CROWD);
	for (int i = 0; i < 300; i++) {
		taken += got(&self->f);
		sleep_ms(2);
	}
	for (int i = 0; i < CROWD; i++) {
		unsigned long writes = __atomic_load_n(&crowd[i].writes, __ATOMIC_RELAXED);

		if (i < 2)
			least = writes < least ? writes : least;
		else
			small += writes;
	}
	crowd_end(_metadata, crowd, CROWD, &self->f, &stop);
	small /= CROWD - 2;
	EXPECT_LE(small * 8, least * 10);
	TH_LOG("big: %lu, small: %lu each; %llu in all", least, small, taken);
}

/* Context switches of the whole process so far. */
static long switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

/*
 * 200 writers sleep, and one of them fits at a time. The reader is another process, so
 * that its own switches are not counted.
 */
#define HERD 200
#define HERD_TAKES 1000

/* Reads as often as it is told, then until it is killed. */
static pid_t start_reader(struct flow *f, int done)
{
	pid_t child = fork();
	__u64 n = 0;

	if (child)
		return child;
	for (;;) {
		while (!got(f))
			poll_for(f->fd, POLLIN, -1);
		if (++n == HERD_TAKES)
			add(done, 1);
	}
}

TEST_F(flow, no_herd_of_writers)
{
	struct crowd crowd[HERD];
	unsigned long writes = 0;
	int done = eventfd(0, EFD_CLOEXEC);
	bool stop = false;
	pid_t reader;
	__u64 value;
	long before;

	ASSERT_EQ(0, set_maximum(self->fd, 2));
	ASSERT_EQ(8, put(&self->f, 1));
	for (int i = 0; i < HERD; i++)
		crowd[i] = (struct crowd){ .fd = self->fd, .value = 1, .stop = &stop };
	crowd_start(_metadata, crowd, HERD);
	before = switches();
	reader = start_reader(&self->f, done);
	ASSERT_LT(0, reader);
	ASSERT_EQ(8, take(done, &value));
	for (int i = 0; i < HERD; i++)
		writes += __atomic_load_n(&crowd[i].writes, __ATOMIC_RELAXED);
	before = switches() - before;
	EXPECT_LE(HERD_TAKES - HERD, writes);
	/* On PREEMPT_RT, locks sleep. A herd would be some 200 for each. */
	EXPECT_GE(4 * writes + 50, before);
	TH_LOG("%ld context switches for %lu writes", before, writes);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < HERD; i++) {
		ASSERT_EQ(0, pthread_join(crowd[i].thread, NULL));
	}
	kill(reader, SIGKILL);
	waitpid(reader, NULL, 0);
	close(done);
}

/*
 * Everything together: writers of all kinds, readers, signals, settings that change. What
 * the results say that was written is what the results say that was taken, or is there.
 */
struct mixed {
	struct flow f;		/* a view of its own */
	bool *stop;
	unsigned int seed;
	__u64 sum;
	unsigned long surprises;	/* errors that no call here may have */
	pthread_t thread;
};

/* The result of a call is 0 or 8, or the reason why it did nothing. */
static bool mixed_done(struct mixed *m, long result)
{
	m->surprises += result && result != 8 && result != -EAGAIN && result != -EINVAL &&
			result != -EINTR && result != -ETIMEDOUT;
	return result >= 0;
}

static void *mixed_write(void *arg)
{
	struct mixed *m = arg;

	while (!__atomic_load_n(m->stop, __ATOMIC_RELAXED)) {
		__u64 value = rand_r(&m->seed) % 6;
		long result;

		switch (rand_r(&m->seed) % 4) {
		case 0:
			result = write_with(m->f.fd, value, 0, FLOWFD_NONBLOCK);
			break;
		case 1:
			result = write_with(m->f.fd, value, 1 + rand_r(&m->seed) % 300000,
					    0);
			break;
		case 2:
			result = write_with(m->f.fd, value, 0, FLOWFD_URGENT);
			break;
		default:
			result = put(&m->f, value);
		}
		m->sum += mixed_done(m, result) ? value : 0;
	}
	return NULL;
}

static void *mixed_read(void *arg)
{
	struct mixed *m = arg;
	__u64 value = 0;

	while (!__atomic_load_n(m->stop, __ATOMIC_RELAXED)) {
		long result;

		switch (rand_r(&m->seed) % 4) {
		case 0:
			result = take(m->f.fd, &value);
			break;
		case 1:
			result = read_with(m->f.fd, &value, 1 + rand_r(&m->seed) % 300000,
					   0);
			break;
		case 2:
			/* With a bad buffer it takes nothing. */
			result = result_of(syscall(SYS_read, m->f.fd, NULL, 8));
			m->surprises += result != -EFAULT && result != -EINTR;
			continue;
		default:
			result = get(&m->f, &value);
		}
		m->sum += mixed_done(m, result) ? value : 0;
	}
	return NULL;
}

#define SIDES 3

TEST_F(flow, everything_adds_up)
{
	struct flow *f = &self->f;
	__u64 end = now_ns() + stress_ns(), written = 0, taken = 0;
	bool mapped = flow_of(f->fd).flags & FLOWFD_MAPPED, stop = false;
	unsigned long surprises = 0, settings = 0;
	struct mixed writer[SIDES], reader[SIDES];
	struct flowfd_flow flow;
	unsigned int seed = 1;
	long err;

	catch_signal(0);
	ASSERT_EQ(0, SET_FLOW(f->fd, .maximum = 8));
	for (int i = 0; i < SIDES; i++) {
		writer[i] = (struct mixed){ .f = *f, .stop = &stop, .seed = i + 1 };
		reader[i] = (struct mixed){ .f = *f, .stop = &stop, .seed = i + 9 };
		ASSERT_EQ(0, pthread_create(&writer[i].thread, NULL, mixed_write, &writer[i]));
		ASSERT_EQ(0, pthread_create(&reader[i].thread, NULL, mixed_read, &reader[i]));
	}
	while (now_ns() < end) {
		pthread_kill(writer[rand_r(&seed) % SIDES].thread, SIGUSR1);
		pthread_kill(reader[rand_r(&seed) % SIDES].thread, SIGUSR1);
		flow = (struct flowfd_flow){ .maximum = 8 + rand_r(&seed) % 8,
					     .qos = { 1 + rand_r(&seed) % 3,
						      rand_r(&seed) % 100000 },
					     .overflow = rand_r(&seed) % 2 };
		if (!mapped) {
			flow.read_mark = rand_r(&seed) % 8;
			flow.write_mark = rand_r(&seed) % 8;
			flow.max_delay = rand_r(&seed) % 300000;
		}
		/* EINVAL: there is more than this maximum admits. */
		err = set_flow(f->fd, flow);
		settings += !err;
		surprises += err && err != -EINVAL;
		spin_ns(rand_r(&seed) % 50000);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < SIDES; i++) {
		while (pthread_tryjoin_np(writer[i].thread, NULL))
			pthread_kill(writer[i].thread, SIGUSR1);
		while (pthread_tryjoin_np(reader[i].thread, NULL))
			pthread_kill(reader[i].thread, SIGUSR1);
		written += writer[i].sum;
		taken += reader[i].sum;
		surprises += writer[i].surprises + reader[i].surprises;
	}
	EXPECT_EQ(0, surprises);
	EXPECT_LT(0, settings);
	EXPECT_LT(0, taken);
	EXPECT_EQ(written, taken + count_of(f->fd));
}

TEST_HARNESS_MAIN
