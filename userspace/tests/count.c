// SPDX-License-Identifier: GPL-2.0-only
/*
 * The counter's arithmetic (module/count.h) against sums in 128 bits, which cannot wrap.
 */
#include <stdint.h>
#include <stdlib.h>

#include "count.h"
#include "tests/tap.h"

typedef unsigned __int128 wide;

static const uint64_t edges[] = {
	0, 1, 2, 3, 1000, INT64_MAX - 1, INT64_MAX, INT64_MAX + UINT64_C(1),
	UINT64_MAX - 2, UINT64_MAX - 1, UINT64_MAX,
};
#define EDGES (sizeof(edges) / sizeof(*edges))

static bool room = true;
static bool events = true;

/* Of a @count that is at most @maximum, which is not 0. */
static void compare(uint64_t count, uint64_t maximum, uint64_t value)
{
	__poll_t wanted = 0;

	room &= count_has_room(count, maximum, value) == ((wide)count + value < maximum);
	room &= count_can_fit(maximum, value) == count_has_room(0, maximum, value);
	if (count)
		wanted |= EPOLLIN;
	if ((wide)count + 1 < maximum)
		wanted |= EPOLLOUT;
	events &= count_events(count, maximum) == wanted;
}

static void compare_edges(void)
{
	for (size_t i = 0; i < EDGES; i++)
		for (size_t j = i ? i : 1; j < EDGES; j++)
			for (size_t k = 0; k < EDGES; k++)
				compare(edges[i], edges[j], edges[k]);
}

/* Each number of bits is equally likely. */
static uint64_t random64(void)
{
	uint64_t all = (uint64_t)mrand48() << 32 | (uint32_t)mrand48();

	return all >> (lrand48() % 64);
}

/* Values near the room that is left, where errors are likely. */
static void compare_random(void)
{
	for (int i = 0; i < 200000; i++) {
		uint64_t maximum = random64() | 1;
		uint64_t left = random64();

		left = left < maximum ? left : maximum;
		compare(maximum - left, maximum, left + random64() % 3);
		compare(maximum - left, maximum, left ? left - 1 : 0);
		compare(maximum - left, maximum, random64());
	}
}

int main(void)
{
	srand48(1);
	compare_edges();
	compare_random();
	tap_ok(room, "a value fits if the sum stays below the maximum");
	tap_ok(events, "poll answers as eventfd does");
	return tap_done();
}
