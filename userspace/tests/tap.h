/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes TAP for a test program: a line for each check, the plan at the end. The exit
 * status is 1 if a check failed.
 */
#ifndef FLOWFD_TESTS_TAP_H
#define FLOWFD_TESTS_TAP_H

#include <stdbool.h>
#include <stdio.h>

static int tap_checks;
static int tap_failures;

/* Reports a check; if it failed, also @got and @wanted. */
static inline bool tap_is(long long got, long long wanted, const char *what)
{
	bool passed = got == wanted;

	printf("%sok %d - %s\n", passed ? "" : "not ", ++tap_checks, what);
	if (!passed) {
		printf("# got %lld, wanted %lld\n", got, wanted);
		tap_failures++;
	}
	fflush(stdout);
	return passed;
}

static inline bool tap_ok(bool passed, const char *what)
{
	return tap_is(passed, true, what);
}

static inline void tap_skip(const char *what, const char *why)
{
	printf("ok %d - %s # SKIP %s\n", ++tap_checks, what, why);
	fflush(stdout);
}

/* The last call; main() must return its result. */
static inline int tap_done(void)
{
	printf("1..%d\n", tap_checks);
	return tap_failures > 0;
}

#endif /* FLOWFD_TESTS_TAP_H */
