// SPDX-License-Identifier: MIT
/*
 * fnmatch(3) without memory, locks and locale: in a locale with characters of several
 * bytes, libc's converts both texts, which takes memory and kilobytes of stack.
 */
#include <stddef.h>

#include "preload/glob.h"

/*
 * Only the last '*' is ever given more bytes: whatever one before it could match, it can
 * match, too. So the time is bounded by the product of the lengths.
 */
bool glob_matches(const char *pattern, const char *name)
{
	const char *star = NULL;
	const char *resume = NULL;

	while (*name) {
		if (*pattern == '*') {
			star = ++pattern;
			resume = name;
		} else if (*pattern == '?' || *pattern == *name) {
			pattern++;
			name++;
		} else if (star) {
			pattern = star;
			name = ++resume;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}
