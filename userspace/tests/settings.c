// SPDX-License-Identifier: GPL-2.0-only
/* The settings that flowfd-run passes to its shim: valid and invalid texts. */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <linux/flowfd.h>

#include "preload/settings.h"
#include "tests/tap.h"

static void test_values(void)
{
	struct settings settings;

	tap_ok(settings_parse(&settings, ""), "no settings");
	tap_ok(settings.maximum == UINT64_MAX && !settings.rate &&
		       !settings.burst && !settings.verbose,
	       "no settings change nothing");
	tap_ok(settings_parse(&settings,
			      "maximum=10/rate=1000/burst=2/verbose=8:1:4294967297"),
	       "all settings");
	tap_is(settings.maximum, 10, "maximum");
	tap_is(settings.rate, 1000, "rate");
	tap_is(settings.burst, 2, "burst");
	tap_ok(settings.verbose, "verbose");
	tap_ok(!strcmp(settings.stderr_name, "8:1:4294967297"), "its file");
	tap_ok(settings_parse(&settings, "maximum=18446744073709551615"),
	       "highest maximum");
	tap_ok(settings_parse(&settings, "rate=1000000000/burst=4294967295"),
	       "highest rate and burst");
	tap_is(settings.burst, UINT32_MAX, "highest burst is kept whole");
}

static uint64_t delay_of(const char *text)
{
	struct settings settings;

	return settings_parse(&settings, text) ? settings.max_delay : 0;
}

static void test_policies(void)
{
	struct settings settings;

	tap_ok(settings_parse(&settings, "maximum=10") &&
		       !settings_have_policies(&settings) && !settings.read_mark &&
		       !settings.write_mark && !settings.max_delay &&
		       settings.overflow == FLOWFD_OVERFLOW_WAIT,
	       "no policies");
	tap_ok(settings_parse(&settings, "maximum=100/read-mark=64/max-delay=2ms/"
					 "write-mark=99/overflow=drop"),
	       "all policies");
	tap_is(settings.read_mark, 64, "read mark");
	tap_is(settings.max_delay, 2000000, "maximum delay");
	tap_is(settings.write_mark, 99, "write mark");
	tap_is(settings.overflow, FLOWFD_OVERFLOW_DROP, "overflow");
	tap_ok(settings_have_policies(&settings), "they are policies");
	tap_ok(settings_parse(&settings, "maximum=2/overflow=saturate") &&
		       settings.overflow == FLOWFD_OVERFLOW_SATURATE &&
		       settings_have_policies(&settings),
	       "saturate");
	tap_ok(settings_parse(&settings, "maximum=2/overflow=fail") &&
		       settings.overflow == FLOWFD_OVERFLOW_FAIL,
	       "fail");
	tap_ok(settings_parse(&settings, "overflow=wait") &&
		       !settings_have_policies(&settings),
	       "wait, as an eventfd");
	tap_ok(settings_parse(&settings,
			      "read-mark=18446744073709551614/max-delay=1ns"),
	       "highest mark");
	tap_is(delay_of("read-mark=2/max-delay=1ns"), 1, "nanoseconds");
	tap_is(delay_of("read-mark=2/max-delay=500us"), 500000, "microseconds");
	tap_is(delay_of("read-mark=2/max-delay=10s"), 10000000000, "seconds");
	tap_is(delay_of("read-mark=2/max-delay=3600s"), FLOWFD_MAX_DELAY_MAX,
	       "longest delay");
}

static void test_wrong(void)
{
	static const char *const texts[] = {
		"maximum=",
		"maximum=0",
		"maximum=1",
		"maximum=-1",
		"maximum=+5",
		"maximum= 5",
		"maximum=5x",
		"maximum=0x10",
		"maximum=18446744073709551616",
		"maximum=184467440737095516150",
		"rate=0/burst=1",
		"rate=1000000001/burst=1",
		"rate=5/burst=0",
		"rate=5/burst=4294967296",
		"rate=5",
		"burst=5",
		"read-mark=0/max-delay=1ms",
		"read-mark=1/max-delay=1ms",
		"read-mark=5",
		"read-mark=5x/max-delay=1ms",
		"read-mark=18446744073709551615/max-delay=1ms",
		"maximum=5/read-mark=5/max-delay=1ms",
		"read-mark=5/max-delay=",
		"read-mark=5/max-delay=0ms",
		"read-mark=5/max-delay=1",
		"read-mark=5/max-delay=ms",
		"read-mark=5/max-delay=1 ms",
		"read-mark=5/max-delay=1m",
		"read-mark=5/max-delay=1msec",
		"read-mark=5/max-delay=1.5ms",
		"read-mark=5/max-delay=-1ms",
		"read-mark=5/max-delay=3601s",
		"read-mark=5/max-delay=3600000000001ns",
		/* 2^64 ns and 1 s more */
		"read-mark=5/max-delay=18446744074s",
		"max-delay=1ms",
		"write-mark=5",
		"maximum=9/write-mark=0",
		"maximum=9/write-mark=1",
		"maximum=9/write-mark=9",
		"overflow=",
		"overflow=drop",
		"maximum=9/overflow=dropped",
		"maximum=9/overflow=1",
		"mapped=add",
		"keep-eventfd=",
		"keep-eventfd=0",
		"keep-eventfd=0-3",
		"keep-eventfd=3-2",
		"keep-eventfd=3-",
		"keep-eventfd=-3",
		"keep-eventfd=1-2-3",
		"keep-eventfd=1-4294967296",
		"keep-eventfd=4294967296",
		"speed=5",
		"maximum",
		"/maximum=10",
		"maximum=10/",
		"maximum=10//rate=1",
	};
	struct settings settings;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		tap_ok(!settings_parse(&settings, texts[i]), texts[i]);
}

static void test_limits(void)
{
	struct settings settings;
	char text[4096] = "keep-eventfd=";

	memset(text + 13, 'a', 255);
	tap_ok(settings_parse(&settings, text), "keep the longest file name");
	memset(text + 13, 'a', 1000);
	tap_ok(!settings_parse(&settings, text), "keep a name too long");

	strcpy(text, "verbose=");
	memset(text + 8, '1', SETTINGS_STDERR_SIZE);
	text[8 + SETTINGS_STDERR_SIZE] = '\0';
	tap_ok(!settings_parse(&settings, text), "the name of a file too long");
	text[8 + SETTINGS_STDERR_SIZE - 1] = '\0';
	tap_ok(settings_parse(&settings, text), "the longest name of a file");

	settings_init(&settings);
	strcpy(text, "keep-eventfd=");
	memset(text + 13, 'a', 255);
	memset(text + 13 + 255, 0, sizeof(text) - 13 - 255);
	for (int i = 0; i < 4; i++)
		tap_ok(!settings_add(&settings, text), "keep up to the limit");
	tap_ok(settings_add(&settings, "keep-eventfd=a"), "keep beyond the limit");
	tap_is(settings.keep_length, sizeof(settings.keep), "all of it used");
	tap_ok(settings_add(&settings, "keep-eventfd=a/b"), "keep with a slash");
}

static void test_keep(void)
{
	struct settings settings;

	tap_ok(settings_parse(&settings, "keep-eventfd=2/keep-eventfd=5-7/"
					 "keep-eventfd=libvirt*"),
	       "three rules");
	tap_ok(!settings_keep(&settings, 1, "qemu"), "1 of no rule");
	tap_ok(settings_keep(&settings, 2, "qemu"), "2 by number");
	tap_ok(!settings_keep(&settings, 4, "qemu"), "4 before the range");
	tap_ok(settings_keep(&settings, 5, "qemu"), "5 begins the range");
	tap_ok(settings_keep(&settings, 7, "qemu"), "7 ends the range");
	tap_ok(!settings_keep(&settings, 8, "qemu"), "8 after the range");
	tap_ok(settings_keep(&settings, 8, "libvirt.so.0"), "glob");
	tap_ok(!settings_keep(&settings, 8, "alibvirt.so.0"),
	       "glob matches whole names");

	tap_ok(settings_parse(&settings, "keep-eventfd=7z/keep-eventfd=b?"), "two globs");
	tap_ok(!settings_keep(&settings, 7, "x"), "a glob with digits");
	tap_ok(settings_keep(&settings, 1, "7z"), "a plain name");
	tap_ok(settings_keep(&settings, 1, "b1"), "any byte");

	tap_ok(settings_parse(&settings, "keep-eventfd=a[bc]\\*"), "other bytes");
	tap_ok(settings_keep(&settings, 1, "a[bc]\\d"), "stand for themselves");
	tap_ok(!settings_keep(&settings, 1, "ab*"), "and for nothing else");
}

static void test_stderr(void)
{
	struct settings settings;
	int saved;

	settings_init(&settings);
	settings_name_stderr(settings.stderr_name);
	tap_ok(settings_stderr_is_ours(&settings), "the same standard error");
	saved = dup(STDERR_FILENO);
	close(STDERR_FILENO);
	tap_ok(!settings_stderr_is_ours(&settings), "none");
	settings_name_stderr(settings.stderr_name);
	tap_ok(!settings_stderr_is_ours(&settings), "none, as flowfd-run had");
	dup2(saved, STDERR_FILENO);
	close(saved);
}

int main(void)
{
	test_values();
	test_policies();
	test_wrong();
	test_limits();
	test_keep();
	test_stderr();
	return tap_done();
}
