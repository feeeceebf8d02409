// SPDX-License-Identifier: GPL-2.0-only
/*
 * paced {calls|memory} RATE SECONDS: adds 1 to a counter so many times a second, and takes
 * it all again, by system calls or in memory. At the end it prints, for each millisecond,
 * the time of CLOCK_MONOTONIC in nanoseconds, and how often it had added by then.
 */
#include <err.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <flowfd.h>

#define NS_PER_S 1000000000ULL

struct sample {
	uint64_t ns;
	uint64_t added;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void check(int error)
{
	if (error)
		errx(EXIT_FAILURE, "%s", strerror(-error));
}

int main(int argc, char **argv)
{
	struct flowfd_create_counter settings = { .flags = FLOWFD_NONBLOCK };
	struct timespec tick = { .tv_nsec = 1000000 };
	uint64_t rate, start, end, now, taken, added = 0;
	size_t count = 0, room, i;
	struct flowfd_counter counter;
	struct sample *samples;
	unsigned int seconds;
	int fd;

	if (argc != 4)
		errx(EXIT_FAILURE, "usage: paced {calls|memory} RATE SECONDS");
	rate = strtoul(argv[2], NULL, 10);
	seconds = strtoul(argv[3], NULL, 10);
	room = seconds * 2000;
	samples = calloc(room, sizeof(*samples));
	if (!samples)
		err(EXIT_FAILURE, "samples");
	if (!strcmp(argv[1], "memory"))
		settings.flags |= FLOWFD_MAPPED;
	fd = flowfd_counter_create_from(&settings, sizeof(settings));
	check(fd < 0 ? fd : 0);
	check(flowfd_counter_map(&counter, fd, FLOWFD_PRODUCER | FLOWFD_CONSUMER));
	start = now_ns();
	end = start + seconds * NS_PER_S;
	while ((now = now_ns()) < end) {
		while (added < (now - start) / 1000 * rate / 1000000) {
			check(flowfd_add(&counter, 1));
			added++;
			/* Late: there is more to add by now. */
			if (added % 100 == 0)
				break;
		}
		if (count < room && (!count || now - samples[count - 1].ns > 1000000))
			samples[count++] = (struct sample){ now_ns(), added };
		flowfd_try_take(&counter, &taken);
		if (added >= (now_ns() - start) / 1000 * rate / 1000000)
			nanosleep(&tick, NULL);
	}
	for (i = 0; i < count; i++)
		printf("%llu %llu\n", (unsigned long long)samples[i].ns,
		       (unsigned long long)samples[i].added);
	return EXIT_SUCCESS;
}
