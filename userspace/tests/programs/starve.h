/* SPDX-License-Identifier: GPL-2.0-only */
/* A shared library that fails calls which the shim makes while it replaces. */
#ifndef FLOWFD_TESTS_STARVE_H
#define FLOWFD_TESTS_STARVE_H

#include <stdbool.h>

/** starve_after - openat() fails with EMFILE after so many more; -1: never */
extern int starve_after;

/**
 * starve_late - to write 1 to the eventfd as late as can be when it is taken back:
 *		 as the shim sleeps, or closes it
 *
 * Becomes false when that was done.
 */
extern bool starve_late;

/** starve_begin - what is replaced from here on is something new */
void starve_begin(void);

#endif /* FLOWFD_TESTS_STARVE_H */
