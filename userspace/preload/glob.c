// SPDX-License-Identifier: MIT
/*
 * fnmatch(3) without memory, locks and locale: in a locale with characters of several
 * bytes, libc's converts both texts, which takes memory and kilobytes of stack.
 */
#include <stddef.h>

#include "preload/glob.h"

/* Reads a byte of a set; returns the text behind it, or NULL at the end. */
static const char *read_byte(const char *text, unsigned char *byte)
{
	if (*text == '\\')
		text++;
	*byte = *text;
	return *text ? text + 1 : NULL;
}

/*
 * @set: behind its '['. Returns the text behind its ']', or NULL if there is none: then
 * the '[' means itself.
 */
static const char *match_set(const char *set, unsigned char byte, bool *matches)
{
	bool inverted = *set == '!' || *set == '^';
	const char *first = set + inverted;
	unsigned char low;
	unsigned char high;
	bool found = false;

	/* A ']' at the beginning is a byte like any other. */
	for (set = first; *set != ']' || set == first;) {
		set = read_byte(set, &low);
		if (!set)
			return NULL;
		high = low;
		if (set[0] == '-' && set[1] != ']') {
			set = read_byte(set + 1, &high);
			if (!set)
				return NULL;
		}
		found |= byte >= low && byte <= high;
	}
	*matches = found != inverted;
	return set + 1;
}

/* Matches one byte; returns the pattern behind what matched it, or NULL. */
static const char *match_byte(const char *pattern, char byte)
{
	bool matches;
	const char *end;

	if (*pattern == '?')
		return pattern + 1;
	if (*pattern == '[') {
		end = match_set(pattern + 1, byte, &matches);
		if (end)
			return matches ? end : NULL;
	}
	if (*pattern == '\\')
		pattern++;
	return *pattern == byte ? pattern + 1 : NULL;
}

/*
 * Only the last '*' is ever given more bytes: whatever one before it could match, it can
 * match, too. So the time is bounded by the product of the lengths, as long as each '[' has
 * its ']'.
 */
bool glob_matches(const char *pattern, const char *name)
{
	const char *star = NULL;
	const char *resume = NULL;
	const char *next;

	while (*name) {
		if (*pattern == '*') {
			star = ++pattern;
			resume = name;
			continue;
		}
		next = match_byte(pattern, *name);
		if (next) {
			pattern = next;
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
