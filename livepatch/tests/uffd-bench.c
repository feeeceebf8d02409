// SPDX-License-Identifier: GPL-2.0-only
/*
 * uffd-bench READERS FAULTERS ROUNDS: blocked readers serve faults; prints faults,
 * sleeps of all readers for one fault, milliseconds and milliseconds of CPU.
 */
#include "clock.h"
#include "uffd.h"

#define PAGES 512UL

int main(int argc, char **argv)
{
	int n = argc == 4 ? atoi(argv[1]) : 0;
	int faulters = argc == 4 ? atoi(argv[2]) : 0;
	long rounds = argc == 4 ? atol(argv[3]) : 0;
	struct reader readers[n > 0 ? n : 1];
	double start, cpu;
	unsigned long faults;
	struct area area;
	long sleeps = 0;
	int i;

	if (n < 1 || faulters < 1 || rounds < 1) {
		fprintf(stderr, "usage: uffd-bench READERS FAULTERS ROUNDS\n");
		return 2;
	}
	if (area_open(&area, PAGES, 0)) {
		perror("uffd-bench: userfaultfd");
		return 1;
	}
	readers_start(readers, n, &area);
	for (i = 0; i < n; i++)
		sleeps -= uffd_sleeps(readers[i].tid);
	start = now_ms(CLOCK_MONOTONIC);
	cpu = now_ms(CLOCK_PROCESS_CPUTIME_ID);
	if (faults_make(&area, faulters, rounds)) {
		fprintf(stderr, "uffd-bench: a page has the wrong content\n");
		return 1;
	}
	cpu = now_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	start = now_ms(CLOCK_MONOTONIC) - start;
	for (i = 0; i < n; i++)
		sleeps += uffd_sleeps(readers[i].tid);
	readers_stop(readers, n);
	faults = PAGES / faulters * faulters * rounds;
	printf("%lu faults, %.2f sleeps per fault, %.0f ms, %.0f ms CPU\n",
	       faults, (double)sleeps / faults, start, cpu);
	return 0;
}
