// SPDX-License-Identifier: GPL-2.0-only
/* Globs of flowfd-run: all short ones match the same names as those of fnmatch(3). */
#include <fnmatch.h>
#include <locale.h>
#include <string.h>

#include "preload/glob.h"
#include "tests/tap.h"

/* Counts up in the digits @digits; returns false behind the last text of @length. */
static bool next_text(char *text, size_t length, const char *digits)
{
	size_t i = 0;

	while (i < length && !*(strchr(digits, text[i]) + 1))
		text[i++] = digits[0];
	if (i == length)
		return false;
	text[i] = *(strchr(digits, text[i]) + 1);
	return true;
}

static void first_text(char *text, size_t length, const char *digits)
{
	memset(text, digits[0], length);
	text[length] = '\0';
}

static bool same_for_names(const char *pattern)
{
	static const char digits[] = "ab";
	char name[6];

	for (size_t length = 0; length < sizeof(name); length++) {
		first_text(name, length, digits);
		do {
			if (glob_matches(pattern, name) !=
			    (fnmatch(pattern, name, 0) == 0)) {
				printf("# %s: %s\n", pattern, name);
				return false;
			}
		} while (next_text(name, length, digits));
	}
	return true;
}

static void test_all(size_t length, const char *digits)
{
	char pattern[8];
	long wrong = 0;
	long all = 0;

	first_text(pattern, length, digits);
	do {
		wrong += !same_for_names(pattern);
		all++;
	} while (wrong < 10 && next_text(pattern, length, digits));
	printf("# %ld patterns\n", all);
	tap_is(wrong, 0, "all patterns of a length");
}

static void test_some(void)
{
	static const char *const matches[][2] = {
		{ "libvirt*", "libvirt.so.0" },
		{ "*.so*", ".so" },
		{ "*a*b*c", "abacabc" },
	};
	char name[256];
	char pattern[256];

	for (size_t i = 0; i < sizeof(matches) / sizeof(matches[0]); i++)
		tap_ok(glob_matches(matches[i][0], matches[i][1]), matches[i][0]);
	tap_ok(!glob_matches("libvirt*", "alibvirt"), "not in the middle");
	tap_ok(glob_matches("*\xa4", "\xc3\xa4"), "the end of a character");
	tap_ok(!glob_matches("?", "\xc3\xa4"), "a character of two bytes");

	/* With a step for each way to divide the name, this would take years. */
	memset(name, 'a', 255);
	name[255] = '\0';
	for (int i = 0; i < 255; i++)
		pattern[i] = i % 2 ? 'a' : '*';
	strcpy(pattern + 254, "b");
	tap_ok(!glob_matches(pattern, name), "127 stars");
}

int main(void)
{
	setlocale(LC_ALL, "C");
	for (size_t length = 0; length <= 6; length++)
		test_all(length, "ab*?");
	test_some();
	return tap_done();
}
