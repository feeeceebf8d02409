// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random numbers that a seed reproduces, with any C library: xorshift64* (Vigna, 2014).
 */
#include "fuzz.h"

static __u64 state = 1;

void random_seed(__u64 seed)
{
	/*
	 * Seeds that differ by one must not begin alike, and the state must not be 0.
	 */
	state = (seed + 1) * 0x9e3779b97f4a7c15ULL;
	if (!state)
		state = 1;
}

__u32 random_number(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (state * 0x2545f4914f6cdd1dULL) >> 32;
}

__u32 random_below(__u32 n)
{
	return random_number() % n;
}
