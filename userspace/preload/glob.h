/* SPDX-License-Identifier: MIT */
/* Matches names with patterns, in any thread at any time. */
#ifndef FLOWFD_PRELOAD_GLOB_H
#define FLOWFD_PRELOAD_GLOB_H

#include <stdbool.h>

/**
 * glob_matches - whether @pattern matches all of @name
 * @pattern: of bytes, with * and ?; all others mean themselves
 * @name: of a file
 */
bool glob_matches(const char *pattern, const char *name);

#endif /* FLOWFD_PRELOAD_GLOB_H */
