// SPDX-License-Identifier: GPL-2.0-only
/*
 * To whom the memory of a ring is charged: RLIMIT_MEMLOCK of the user who created it,
 * also on error paths and after other users closed it, and the memory control group.
 */
#include "cgroup.h"
#include "ring_user.h"

#include <sys/wait.h>

/* Runs this as an unprivileged user with this limit in bytes; returns its result. */
static int as_user(unsigned int uid, rlim_t limit, int (*run)(void))
{
	struct rlimit memlock = { limit, limit };
	int status;
	pid_t child = fork();

	if (!child) {
		if (setrlimit(RLIMIT_MEMLOCK, &memlock) || setgid(uid) ||
		    setuid(uid))
			_exit(100);
		_exit(run());
	}
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return 101;
	return WEXITSTATUS(status);
}

static int fill_the_limit(void)
{
	int fds[64], n = 0;

	for (int round = 0; round < 50; round++) {
		struct flowfd_create_ring args = { .max_items = 100 };

		bool all;

		while (n < 64 && (fds[n] = ring_create(&args)) >= 0)
			n++;
		all = n == 16 && fds[n] == -ENOMEM;
		while (n)
			close(fds[--n]);
		if (!all)
			return 1;
	}
	return 0;
}

/* What a process had that ended is freed soon, on a busy machine not at once. */
static int fill_the_limit_soon(void)
{
	for (int ms = 0; ms < PATIENCE_MS; ms += 10) {
		if (!fill_the_limit())
			return 0;
		sleep_ms(10);
	}
	return 1;
}

static int fill_with_mappings(void)
{
	struct flowfd_create_ring one = { .max_items = 1 };
	struct user_ring rings[16];

	for (int i = 0; i < 16; i++) {
		if (ring_open(&rings[i], 100))
			return 1;
		close(rings[i].fd);
	}
	if (ring_create(&one) != -ENOMEM)
		return 2;
	munmap(rings[3].header, rings[3].map_size);
	return ring_create(&one) < 0 ? 3 : 0;
}

static int fail_and_leak_nothing(void)
{
	struct flowfd_create_ring *nowhere = mmap(NULL, PAGE, PROT_READ,
						  MAP_PRIVATE | MAP_ANONYMOUS,
						  -1, 0);
	int device = open(DEVICE, O_RDWR);

	mprotect(nowhere, PAGE, PROT_READ | PROT_WRITE);
	nowhere->max_items = 100;
	mprotect(nowhere, PAGE, PROT_READ);
	for (int i = 0; i < 100; i++) {
		if (ioctl(device, FLOWFD_IOC_CREATE_RING, nowhere) != -1 ||
		    errno != EFAULT)
			return 4;
	}
	return fill_the_limit();
}

/* Also when the table of descriptors is full. */
static int fail_without_numbers(void)
{
	int device = open(DEVICE, O_RDWR);
	struct flowfd_create_ring args = { .max_items = 100 };
	struct rlimit few = { device + 1, 64 }, enough = { 64, 64 };

	setrlimit(RLIMIT_NOFILE, &few);
	for (int i = 0; i < 100; i++) {
		if (ioctl(device, FLOWFD_IOC_CREATE_RING, &args) != -1 ||
		    errno != EMFILE)
			return 5;
	}
	setrlimit(RLIMIT_NOFILE, &enough);
	return fill_the_limit();
}

/* A ring that is too large fits neither alone nor beside others, nor in 16 large pages. */
static int fail_for_size(void)
{
	struct flowfd_create_ring large = { .max_items = 1 << 17 };

	for (int i = 0; i < 100; i++) {
		if (ring_create(&large) != -ENOMEM)
			return 6;
	}
	return fill_the_limit();
}

static int end_with_rings_open(void)
{
	struct user_ring r;

	for (int i = 0; i < 16; i++) {
		if (ring_open(&r, 100))
			return 7;
	}
	return 0;
}

/* A limit of 16 pages allows 16 rings of a page. */
TEST(memory_is_charged)
{
	int (* const all[])(void) = {
		fill_the_limit, fill_with_mappings, fail_and_leak_nothing,
		fail_without_numbers, fail_for_size, end_with_rings_open,
		fill_the_limit_soon,
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		EXPECT_EQ(0, as_user(54321, 16 * PAGE, all[i]))
			TH_LOG("%zu", i);
	}
}

/*
 * The user who was charged is credited, no matter who closes the ring. A user who was
 * not charged is not credited.
 */
TEST(charge_stays_with_its_user)
{
	struct flowfd_create_ring args = { .max_items = 100 };
	int go[2], ready[2], fds[16], n = 0, status;
	struct rlimit memlock = { 16 * PAGE, 16 * PAGE };
	pid_t child;
	char byte;

	child = fork();
	if (!child) {
		fds[0] = ring_create(&args);
		_exit(fds[0] < 0 || setrlimit(RLIMIT_MEMLOCK, &memlock) || setgid(54322) ||
		      setresuid(54322, 54322, 54322) || close(fds[0]) || fill_the_limit());
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);

	ASSERT_EQ(0, pipe(go));
	ASSERT_EQ(0, pipe(ready));
	child = fork();
	if (!child) {
		if (setrlimit(RLIMIT_MEMLOCK, &memlock) || setgid(54323) ||
		    setresuid(54323, 54323, 0))
			_exit(100);
		while (n < 16 && (fds[n] = ring_create(&args)) >= 0)
			n++;
		/* As root again: a ring that is created now is charged to no user. */
		if (n != 16 || ring_create(&args) != -ENOMEM ||
		    setresuid(0, 0, 0) || ring_create(&args) < 0)
			_exit(8);
		close(go[1]);
		if (write(ready[1], "x", 1) != 1)
			_exit(9);
		_exit(read(go[0], &byte, 1));
	}
	close(ready[1]);
	ASSERT_EQ(1, read(ready[0], &byte, 1));
	/* The memory is still charged to that user. */
	EXPECT_EQ(1, as_user(54323, 16 * PAGE, fill_the_limit));
	EXPECT_EQ(0, as_user(54324, 16 * PAGE, fill_the_limit));
	close(go[1]);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	/* A work item may have had the last reference. */
	EXPECT_EQ(0, as_user(54323, 16 * PAGE, fill_the_limit_soon));
}

#define WATCHES 16384

static long long charged(const struct cgroup *g)
{
	return cgroup_number(g, "memory.current");
}

/* Pages are charged ahead in batches, so far more than that is measured. */
static int charge_group(const struct cgroup *g)
{
	struct flowfd_create_ring args = { .max_items = 200000 };
	struct rlimit files = { WATCHES + 100, WATCHES + 100 };
	int event = eventfd(0, EFD_CLOEXEC);
	struct user_ring r;
	long long before, with_ring, with_watches;

	if (!cgroup_enter(g) || setrlimit(RLIMIT_NOFILE, &files))
		return 1;
	for (int i = 0; i < WATCHES; i++)
		dup(event);
	before = charged(g);
	r.fd = ring_create(&args);
	with_ring = charged(g);
	for (int i = 0; i < WATCHES; i++)
		ring_add(&r, event + 1 + i, EPOLLIN, i);
	with_watches = charged(g);
	dprintf(1, "# ring of %u bytes: %lld charged, %d watches: %lld\n",
		args.map_size, with_ring - before, ring_watched(r.fd),
		with_watches - with_ring);
	if (with_ring - before < args.map_size)
		return 2;
	if (with_watches - with_ring < WATCHES * 100LL)
		return 3;
	close(r.fd);
	return charged(g) - before < args.map_size / 4 ? 0 : 4;
}

TEST(memory_is_charged_to_the_group)
{
	struct cgroup g;
	int status;
	pid_t child;

	if (!cgroup_make(&g, "+memory"))
		SKIP(return, "no control group for memory");
	child = fork();
	if (!child)
		_exit(charge_group(&g));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, WEXITSTATUS(status));
	cgroup_remove(&g);
}

TEST_HARNESS_MAIN
