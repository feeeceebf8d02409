/* SPDX-License-Identifier: GPL-2.0-only */
/* What was counted of a counter, by request and in fdinfo. */
#ifndef STATS_USER_H
#define STATS_USER_H

#include "selftest.h"

static inline struct flowfd_counter_stats stats_of(int fd)
{
	struct flowfd_counter_stats stats;

	if (ioctl(fd, FLOWFD_IOC_COUNTER_STATS, &stats))
		memset(&stats, 0xff, sizeof(stats));
	return stats;
}

/* What fdinfo says must be the same, but for @wait_ns, which may grow. */
static inline struct flowfd_counter_stats stats_in_fdinfo(int fd)
{
	return (struct flowfd_counter_stats){
		.produced = fdinfo_number(fd, "flowfd-produced", 10),
		.writes = fdinfo_number(fd, "flowfd-writes", 10),
		.reads = fdinfo_number(fd, "flowfd-reads", 10),
		.wakeups = fdinfo_number(fd, "flowfd-wakeups", 10),
		.held_back = fdinfo_number(fd, "flowfd-held-back", 10),
		.again = fdinfo_number(fd, "flowfd-again", 10),
		.waits = fdinfo_number(fd, "flowfd-waits", 10),
		.wait_ns = fdinfo_number(fd, "flowfd-wait-ns", 10),
		.highest = fdinfo_number(fd, "flowfd-highest", 10),
		.lost = fdinfo_number(fd, "flowfd-lost", 10),
	};
}

static inline void expect_same_stats(struct __test_metadata *_metadata, int line,
				     struct flowfd_counter_stats expected,
				     struct flowfd_counter_stats stats)
{
	EXPECT_EQ(expected.produced, stats.produced)
		TH_LOG("produced in line %d", line);
	EXPECT_EQ(expected.writes, stats.writes)
		TH_LOG("writes in line %d", line);
	EXPECT_EQ(expected.reads, stats.reads)
		TH_LOG("reads in line %d", line);
	EXPECT_EQ(expected.wakeups, stats.wakeups)
		TH_LOG("wakeups in line %d", line);
	EXPECT_EQ(expected.held_back, stats.held_back)
		TH_LOG("held_back in line %d", line);
	EXPECT_EQ(expected.again, stats.again)
		TH_LOG("again in line %d", line);
	EXPECT_EQ(expected.waits, stats.waits)
		TH_LOG("waits in line %d", line);
	EXPECT_EQ(expected.highest, stats.highest)
		TH_LOG("highest in line %d", line);
	EXPECT_EQ(expected.lost, stats.lost)
		TH_LOG("lost in line %d", line);
	EXPECT_EQ(!expected.waits, !stats.wait_ns)
		TH_LOG("wait_ns in line %d", line);
}

/* All numbers, but of @wait_ns only whether there is one. */
#define EXPECT_STATS(fd, ...)                                                    \
	do {                                                                     \
		struct flowfd_counter_stats wanted_ = { __VA_ARGS__ };           \
		expect_same_stats(_metadata, __LINE__, wanted_, stats_of(fd));   \
		expect_same_stats(_metadata, __LINE__, wanted_,                  \
				  stats_in_fdinfo(fd));                          \
	} while (0)

#endif /* STATS_USER_H */
