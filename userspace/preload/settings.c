// SPDX-License-Identifier: MIT
/*
 * Strict parser of flowfd-run's settings. The shim runs this inside other programs,
 * in any thread at any time, so it allocates nothing.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/flowfd.h>

#include "preload/glob.h"
#include "preload/settings.h"

/* Longest word: "keep-eventfd=" and a file name. */
#define WORD_SIZE 272

/* Reads the digits at @text; returns the text behind them, or NULL if there are none. */
static const char *read_number(const char *text, uint64_t *number)
{
	*number = 0;
	if (*text < '0' || *text > '9')
		return NULL;
	for (; *text >= '0' && *text <= '9'; text++) {
		if (__builtin_mul_overflow(*number, 10, number) ||
		    __builtin_add_overflow(*number, *text - '0', number))
			return NULL;
	}
	return text;
}

static bool number_between(const char *text, uint64_t least, uint64_t most,
			   uint64_t *number)
{
	const char *end = read_number(text, number);

	return end && !*end && *number >= least && *number <= most;
}

/* A rule of digits and '-' alone is a range, any other a glob. */
static bool is_range(const char *rule)
{
	return rule[strspn(rule, "0123456789-")] == '\0';
}

static bool read_range(const char *rule, uint64_t *first, uint64_t *last)
{
	const char *end = read_number(rule, first);

	if (!end || *first < 1 || *first > UINT32_MAX)
		return false;
	if (*end == '\0') {
		*last = *first;
		return true;
	}
	return number_between(end + 1, *first, UINT32_MAX, last);
}

static const char *add_maximum(struct settings *settings, const char *value)
{
	if (!number_between(value, 2, UINT64_MAX, &settings->maximum))
		return "not a number from 2 to 18446744073709551615";
	return NULL;
}

static const char *add_rate(struct settings *settings, const char *value)
{
	uint64_t number;

	if (!number_between(value, 1, FLOWFD_TOKEN_RATE_MAX, &number))
		return "not a number from 1 to 1000000000";
	settings->rate = number;
	return NULL;
}

static const char *add_burst(struct settings *settings, const char *value)
{
	uint64_t number;

	if (!number_between(value, 1, UINT32_MAX, &number))
		return "not a number from 1 to 4294967295";
	settings->burst = number;
	return NULL;
}

static const char *add_read_mark(struct settings *settings, const char *value)
{
	if (!number_between(value, 2, UINT64_MAX - 1, &settings->read_mark))
		return "not a number from 2 to 18446744073709551614";
	return NULL;
}

static const char *add_write_mark(struct settings *settings, const char *value)
{
	if (!number_between(value, 2, UINT64_MAX - 1, &settings->write_mark))
		return "not a number from 2 to 18446744073709551614";
	return NULL;
}

/* Without a unit, nobody knew which one was meant. */
static bool read_time(const char *text, uint64_t *ns)
{
	static const struct {
		char name[3];
		uint64_t ns;
	} units[] = {
		{ .name = "ns", .ns = 1 },
		{ .name = "us", .ns = 1000 },
		{ .name = "ms", .ns = 1000000 },
		{ .name = "s", .ns = 1000000000 },
	};
	const char *unit = read_number(text, ns);

	for (size_t i = 0; unit && i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(unit, units[i].name) == 0)
			return !__builtin_mul_overflow(*ns, units[i].ns, ns);
	}
	return false;
}

static const char *add_max_delay(struct settings *settings, const char *value)
{
	if (!read_time(value, &settings->max_delay) || !settings->max_delay ||
	    settings->max_delay > FLOWFD_MAX_DELAY_MAX)
		return "not a time from 1ns to 3600s, in ns, us, ms or s";
	return NULL;
}

static const char *add_overflow(struct settings *settings, const char *value)
{
	static const char policies[][sizeof("saturate")] = {
		[FLOWFD_OVERFLOW_WAIT] = "wait",
		[FLOWFD_OVERFLOW_FAIL] = "fail",
		[FLOWFD_OVERFLOW_SATURATE] = "saturate",
		[FLOWFD_OVERFLOW_DROP] = "drop",
	};

	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		if (strcmp(value, policies[i]) == 0) {
			settings->overflow = i;
			return NULL;
		}
	}
	return "not wait, fail, saturate or drop";
}

static const char *add_keep(struct settings *settings, const char *value)
{
	size_t size = strlen(value) + 1;
	uint64_t first;
	uint64_t last;

	if (size == 1)
		return "empty";
	if (strchr(value, '/'))
		return "a file's base name contains no slash";
	if (is_range(value) && !read_range(value, &first, &last))
		return "not N or N-M with 1 <= N <= M";
	if (size + strlen("keep-eventfd=") > WORD_SIZE)
		return "longer than a file name";
	if (size > sizeof(settings->keep) - settings->keep_length)
		return "too many";
	memcpy(settings->keep + settings->keep_length, value, size);
	settings->keep_length += size;
	return NULL;
}

static const char *add_verbose(struct settings *settings, const char *value)
{
	if (strlen(value) >= sizeof(settings->stderr_name))
		return "not the name of a file";
	strcpy(settings->stderr_name, value);
	settings->verbose = true;
	return NULL;
}

void settings_init(struct settings *settings)
{
	settings->maximum = UINT64_MAX;
	settings->rate = 0;
	settings->burst = 0;
	settings->read_mark = 0;
	settings->write_mark = 0;
	settings->max_delay = 0;
	settings->overflow = FLOWFD_OVERFLOW_WAIT;
	settings->verbose = false;
	settings->keep_length = 0;
}

const char *settings_add(struct settings *settings, const char *word)
{
	static const struct {
		char name[sizeof("keep-eventfd=")];
		const char *(*add)(struct settings *settings, const char *value);
	} kinds[] = {
		{ .name = "maximum=", .add = add_maximum },
		{ .name = "rate=", .add = add_rate },
		{ .name = "burst=", .add = add_burst },
		{ .name = "read-mark=", .add = add_read_mark },
		{ .name = "write-mark=", .add = add_write_mark },
		{ .name = "max-delay=", .add = add_max_delay },
		{ .name = "overflow=", .add = add_overflow },
		{ .name = "keep-eventfd=", .add = add_keep },
		{ .name = "verbose=", .add = add_verbose },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t length = strlen(kinds[i].name);

		if (strncmp(word, kinds[i].name, length) == 0)
			return kinds[i].add(settings, word + length);
	}
	return "unknown setting";
}

/*
 * A program that knows nothing of a mark could wait for ever for what is below it. All
 * other settings would do nothing.
 */
static const char *check_policies(const struct settings *settings)
{
	bool limited = settings->maximum != UINT64_MAX;

	if (settings->read_mark && !settings->max_delay)
		return "--read-mark: needs --max-delay";
	if (settings->max_delay && !settings->read_mark)
		return "--max-delay: needs --read-mark";
	if (settings->read_mark >= settings->maximum)
		return "--read-mark: not below the maximum";
	if (settings->write_mark && !limited)
		return "--write-mark: needs --maximum";
	if (settings->write_mark >= settings->maximum)
		return "--write-mark: not below the maximum";
	if (settings->overflow != FLOWFD_OVERFLOW_WAIT && !limited)
		return "--overflow: needs --maximum";
	return NULL;
}

const char *settings_check(const struct settings *settings)
{
	if (settings->rate && !settings->burst)
		return "--rate, --burst: a rate needs a burst";
	if (settings->burst && !settings->rate)
		return "--rate, --burst: a burst needs a rate";
	return check_policies(settings);
}

bool settings_have_policies(const struct settings *settings)
{
	return settings->read_mark || settings->write_mark ||
	       settings->overflow != FLOWFD_OVERFLOW_WAIT;
}

bool settings_parse(struct settings *settings, const char *text)
{
	char word[WORD_SIZE];

	settings_init(settings);
	while (*text) {
		size_t length = strcspn(text, "/");

		if (length >= sizeof(word))
			return false;
		memcpy(word, text, length);
		word[length] = '\0';
		if (settings_add(settings, word))
			return false;
		text += length;
		if (*text == '/' && *++text == '\0')
			return false;
	}
	return !settings_check(settings);
}

bool settings_keep(const struct settings *settings, uint32_t number, const char *object)
{
	const char *rule = settings->keep;
	const char *end = rule + settings->keep_length;
	uint64_t first;
	uint64_t last;

	for (; rule < end; rule += strlen(rule) + 1) {
		if (is_range(rule)) {
			if (read_range(rule, &first, &last) && number >= first &&
			    number <= last)
				return true;
		} else if (glob_matches(rule, object)) {
			return true;
		}
	}
	return false;
}

/* statx(2), as struct stat differs between architectures and between C libraries. */
void settings_name_stderr(char name[SETTINGS_STDERR_SIZE])
{
	struct statx status;

	*name = '\0';
	if (syscall(SYS_statx, STDERR_FILENO, "", AT_EMPTY_PATH, STATX_INO, &status))
		return;
	snprintf(name, SETTINGS_STDERR_SIZE, "%u:%u:%llu", status.stx_dev_major,
		 status.stx_dev_minor, (unsigned long long)status.stx_ino);
}

bool settings_stderr_is_ours(const struct settings *settings)
{
	char name[SETTINGS_STDERR_SIZE];

	settings_name_stderr(name);
	return *name && strcmp(name, settings->stderr_name) == 0;
}
