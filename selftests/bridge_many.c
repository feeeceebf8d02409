// SPDX-License-Identifier: GPL-2.0-only
/* Very many bridges left alone: all of them together must not keep a kernel thread busy. */
#include <sys/resource.h>

#include "bridge_user.h"
#include "stats_user.h"

/* With a round of each in a second, one program that sleeps would have 16384. */
#define MANY 16384
#define ROUNDS 4096
#define CREATE_NS 15000000000ULL
#define SETTLE_NS 90000000000ULL

static int fds[MANY];

static __u64 produced(void)
{
	__u64 sum = 0;

	for (int i = 0; i < MANY; i++)
		sum += stats_of(fds[i]).produced;
	return sum;
}

FIXTURE(many)
{
};

FIXTURE_SETUP(many)
{
}

FIXTURE_TEARDOWN(many)
{
}

TEST_F_TIMEOUT(many, sources_of_closed_eventfds, 140)
{
	struct rlimit files = { MANY + 100, MANY + 100 };
	__u64 start = now_ns(), before, ms, until;
	int in;

	if (setrlimit(RLIMIT_NOFILE, &files))
		SKIP(return, "too many files");
	for (int i = 0; i < MANY; i++) {
		/* As with KASAN: one round of each would take longer than a rest. */
		if (now_ns() > start + CREATE_NS)
			SKIP(return, "the machine is too slow for so many");
		in = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
		fds[i] = open_counter(CREATED, 0, EFD_NONBLOCK);
		ASSERT_LE(0, fds[i]);
		ASSERT_EQ(8, add(in, 1ULL << 62));
		ASSERT_EQ(0, source(fds[i], in));
		close(in);
	}
	TH_LOG("there after %llu ms", (now_ns() - start) / 1000000);
	/* Rests get longer; only after a long one does each move 1. */
	until = now_ns() + SETTLE_NS;
	do {
		start = now_ns();
		before = produced();
		sleep_ms(5000);
		before = produced() - before;
		ms = (now_ns() - start) / 1000000;
		TH_LOG("%llu in %llu ms", before, ms);
	} while (before > ROUNDS * ms / 1000 && now_ns() < until);
	EXPECT_GE(ROUNDS * ms / 1000, before);
	EXPECT_LT(0, before);
	for (int i = 0; i < MANY; i++)
		close(fds[i]);
}

TEST_HARNESS_MAIN
