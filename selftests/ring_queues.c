// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files with several wait queues: two that wake at the same time, which must not both
 * take the one shot, and more than a ring can join.
 */
#include "files.h"
#include "ring_user.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/utsname.h>

/*
 * Two threads that wake the two wait queues of a terminal at the same time: one types a
 * character for its readers, the other resumes the output for its writers.
 */
struct race {
	int slave;
	unsigned int go;	/* the round that was started */
	unsigned int done;
	unsigned int delay;
	__u32 winner;		/* of the last round */
	unsigned int streak;	/* how many rounds before had the same winner */
	bool stop;
};

#define STREAK_MAX	14
#define DELAY_MAX	(1U << 24)

static void spin(unsigned int n)
{
	while (n--)
		__asm__ volatile("" ::: "memory");
}

static void *type(void *arg)
{
	struct race *race = arg;

	for (unsigned int round = 1;; round++) {
		spin_until(&race->go, round);
		if (race->stop)
			return NULL;
		spin(race->delay);
		ioctl(race->slave, TIOCSTI, "x");
		__atomic_store_n(&race->done, round, __ATOMIC_RELEASE);
	}
}

FIXTURE(terminal)
{
	struct user_ring ring;
	int master;
	int slave;
};

FIXTURE_SETUP(terminal)
{
	ASSERT_EQ(0, ring_open(&self->ring, 4));
	ASSERT_TRUE(terminal_open(&self->master, &self->slave, O_NONBLOCK));
}

FIXTURE_TEARDOWN(terminal)
{
	ring_close(&self->ring);
	close(self->master);
	close(self->slave);
}

TEST_F(terminal, each_queue_wakes)
{
	struct user_ring *r = &self->ring;
	char byte;

	ASSERT_EQ(0, tcflow(self->slave, TCOOFF));
	ASSERT_LE(0, ring_add(r, self->slave, EPOLLIN | EPOLLOUT, 1));
	EXPECT_EQ(0, ring_take_only(r));
	ASSERT_EQ(0, tcflow(self->slave, TCOON));
	EXPECT_EQ(EPOLLOUT, ring_take_only(r));
	ASSERT_EQ(0, ioctl(self->slave, TIOCSTI, "x"));
	EXPECT_EQ(EPOLLIN, ring_take_only(r));
	ASSERT_EQ(1, read(self->slave, &byte, 1));
	ASSERT_EQ(0, ring_del(r, self->slave));
	ASSERT_EQ(0, ioctl(self->slave, TIOCSTI, "x"));
	ASSERT_EQ(0, tcflow(self->slave, TCOOFF));
	ASSERT_EQ(0, tcflow(self->slave, TCOON));
	EXPECT_EQ(0, ring_take_only(r));
}

/*
 * Delays the thread that won the last round, so that both stay close: twice as far for
 * each round in a row with the same winner, as a busy machine can delay the other for
 * long.
 */
static void balance(struct race *race, unsigned int *delay, __u32 winner)
{
	unsigned int *ahead = winner & EPOLLIN ? &race->delay : delay;
	unsigned int *behind = winner & EPOLLIN ? delay : &race->delay;
	unsigned int step;

	race->streak = winner == race->winner ? race->streak + 1 : 0;
	race->winner = winner;
	if (race->streak > STREAK_MAX)
		race->streak = STREAK_MAX;
	step = (1 + race->done % 64) << race->streak;
	if (*behind > step)
		*behind -= step;
	else if (*behind)
		*behind = 0;
	else if (*ahead < DELAY_MAX)
		*ahead += step;
}

/* The first wakeup takes the shot, the other gets nothing. */
TEST_F_TIMEOUT(terminal, one_shot_is_one, 24 * 3600)
{
	__u64 end = now_ns() + 2 * stress_ns();
	__u32 events = EPOLLIN | EPOLLOUT | EPOLLONESHOT;
	struct race race = { .slave = self->slave };
	unsigned int delay = 0, round = 0, typed = 0;
	struct user_ring *r = &self->ring;
	struct ring_event event, more;
	pthread_t thread;
	char byte;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "no race with one processor");
	ASSERT_EQ(0, tcflow(self->slave, TCOOFF));
	ASSERT_LE(0, ring_add(r, self->slave, events, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, type, &race));
	while (now_ns() < end) {
		ASSERT_EQ(0, ring_mod(r, self->slave, events, 1));
		ASSERT_FALSE(ring_take(r, &event));
		__atomic_store_n(&race.go, ++round, __ATOMIC_RELEASE);
		spin(delay);
		ASSERT_EQ(0, tcflow(self->slave, TCOON));
		spin_until(&race.done, round);
		ASSERT_TRUE(ring_take(r, &event));
		ASSERT_FALSE(ring_take(r, &more));
		ASSERT_TRUE(event.events == EPOLLIN ||
			    event.events == EPOLLOUT)
			TH_LOG("round %u: %#x", round, event.events);
		typed += event.events == EPOLLIN;
		balance(&race, &delay, event.events);
		ASSERT_EQ(1, read(self->slave, &byte, 1));
		ASSERT_EQ(0, tcflow(self->slave, TCOOFF));
	}
	race.stop = true;
	__atomic_store_n(&race.go, ++round, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	/* It was a race: each side has won. */
	EXPECT_LT(0, typed);
	EXPECT_LT(typed, round - 1);
}

#define GADGET "/sys/kernel/config/usb_gadget/flowfd"

static bool put(const char *name, const void *text, size_t size)
{
	char path[128];
	bool done;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", GADGET, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	done = fd >= 0 && write(fd, text, size) == (ssize_t)size;
	close(fd);
	return done;
}

/*
 * A USB keyboard gadget, connected to this machine. Its file has four wait queues since
 * 6.12.
 */
static int open_gadget(void)
{
	static const unsigned char report[] = { 0x06, 0x00, 0xff, 0x09, 0x01,
						0xa1, 0x01, 0x75, 0x08, 0x95,
						0x08, 0x15, 0x00, 0x25, 0x7f,
						0x09, 0x01, 0x81, 0x02, 0xc0 };

	if (system("modprobe -q dummy_hcd && modprobe -q libcomposite"))
		return -1;
	mount("none", "/sys/kernel/config", "configfs", 0, NULL);
	if (mkdir(GADGET, 0755) || mkdir(GADGET "/configs/c.1", 0755) ||
	    mkdir(GADGET "/functions/hid.0", 0755) ||
	    !put("idVendor", "0x1d6b", 6) || !put("idProduct", "0x0104", 6) ||
	    !put("functions/hid.0/report_length", "8", 1) ||
	    !put("functions/hid.0/report_desc", report, sizeof(report)) ||
	    symlink(GADGET "/functions/hid.0", GADGET "/configs/c.1/hid.0") ||
	    !put("UDC", "dummy_udc.0", 11))
		return -1;
	return open("/dev/hidg0", O_RDWR | O_NONBLOCK | O_CLOEXEC);
}

static void close_gadget(int fd)
{
	close(fd);
	put("UDC", "\n", 1);
	unlink(GADGET "/configs/c.1/hid.0");
	rmdir(GADGET "/functions/hid.0");
	rmdir(GADGET "/configs/c.1");
	rmdir(GADGET);
}

static bool kernel_is_before(unsigned int major, unsigned int minor)
{
	unsigned int here_major = 0, here_minor = 0;
	struct utsname name;

	uname(&name);
	sscanf(name.release, "%u.%u", &here_major, &here_minor);
	return here_major < major ||
	       (here_major == major && here_minor < minor);
}

TEST(more_than_two)
{
	int fd, event = eventfd(0, EFD_CLOEXEC);
	struct user_ring r;

	if (kernel_is_before(6, 12))
		SKIP(return, "no file with more than two wait queues");
	fd = open_gadget();
	if (fd < 0) {
		close_gadget(fd);
		SKIP(return, "no USB keyboard gadget");
	}
	ASSERT_EQ(0, ring_open(&r, 1));
	EXPECT_EQ(-EOPNOTSUPP, ring_add(&r, fd, EPOLLIN | EPOLLOUT, 1));
	EXPECT_EQ(0, ring_watched(r.fd));
	EXPECT_EQ(0, ring_take_only(&r));
	/* The failed ADD left the wait queues and released the file. */
	EXPECT_LE(0, ring_add(&r, event, EPOLLIN, 2));
	close_gadget(fd);
	EXPECT_EQ(0, ring_take_only(&r));
	add(event, 1);
	EXPECT_EQ(EPOLLIN, ring_take_only(&r));
	ring_close(&r);
}

TEST_HARNESS_MAIN
