// SPDX-License-Identifier: GPL-2.0-only
/*
 * flowfd-run: runs a program with its eventfds turned into flowfd counters, by
 * preloading a shim into it. The program replaces this process.
 */
#include <argp.h>
#include <err.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <flowfd.h>

#include "preload/settings.h"
#include "tools/output.h"

#define SHIM "libflowfd-preload.so"

/* Exit statuses that are not the program's, as those of env(1) and timeout(1). */
enum {
	EXIT_USAGE = 125,
	EXIT_CANNOT_RUN = 126,
	EXIT_NOT_FOUND = 127,
};

const char *argp_program_version = "flowfd-run " FLOWFD_VERSION;

/* The settings, and the same as text for the shim. */
struct run {
	struct settings settings;
	char *text;
	char **program;
};

static char *format(const char *pattern, ...)
{
	va_list list;
	char *text;
	int ret;

	va_start(list, pattern);
	ret = vasprintf(&text, pattern, list);
	va_end(list);
	if (ret < 0)
		errx(EXIT_USAGE, "out of memory");
	return text;
}

/* An option has the same name as a setting. */
static void add(struct run *run, struct argp_state *state, const char *name,
		const char *value)
{
	char *word = format("%s=%s", name, value);
	const char *why = settings_add(&run->settings, word);
	char *longer;

	if (why)
		argp_error(state, "--%s '%s': %s", name, value, why);
	longer = format("%s%s%s", run->text, *run->text ? "/" : "", word);
	free(run->text);
	free(word);
	run->text = longer;
}

/* Those with a value are settings, and come first. */
static const struct argp_option options[] = {
	{ "maximum", 'm', "N", 0, "Let a counter hold less than N; writers wait for room",
	  0 },
	{ "rate", 'r', "R", 0, "Wake readers R times a second at most; needs --burst",
	  0 },
	{ "burst", 'b', "B", 0, "Let B wakeups follow each other at once; needs --rate",
	  0 },
	{ "read-mark", 'R', "N", 0,
	  "Wake readers when the count is N or more, and not before --max-delay "
	  "otherwise",
	  0 },
	{ "max-delay", 'd', "TIME", 0,
	  "Wake readers below --read-mark, too, TIME after the first write: 500us, "
	  "2ms, 1s",
	  0 },
	{ "write-mark", 'W', "N", 0,
	  "Tell pollers of room only when a write of N fits; needs --maximum", 0 },
	{ "overflow", 'o', "POLICY", 0,
	  "What becomes of a write for which there is no room: wait (as an eventfd), "
	  "fail, saturate or drop; needs --maximum",
	  0 },
	{ "keep-eventfd", 'k', "WHICH", 0,
	  "Leave eventfds real: number N or N-M of each process, or the object file "
	  "that asks for them, with * and ?; may be repeated",
	  0 },
	{ "verbose", 'v', NULL, 0, "Report every eventfd on stderr", 0 },
	{ 0 },
};

static error_t parse(int key, char *value, struct argp_state *state)
{
	const struct argp_option *option;
	struct run *run = state->input;
	char file[SETTINGS_STDERR_SIZE];
	const char *why;

	for (option = options; option->arg; option++) {
		if (option->key == key) {
			add(run, state, option->name, value);
			return 0;
		}
	}
	switch (key) {
	case 'v':
		/* Reports are for this file: the program may replace its descriptor 2. */
		settings_name_stderr(file);
		add(run, state, "verbose", file);
		return 0;
	case ARGP_KEY_ARG:
		/* All further arguments are the program's. */
		run->program = &state->argv[state->next - 1];
		state->next = state->argc;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "no program to run");
		return 0;
	case ARGP_KEY_END:
		why = settings_check(&run->settings);
		if (why)
			argp_error(state, "%s", why);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.args_doc = "PROGRAM [ARGUMENT...]",
	.doc = "Run PROGRAM with its eventfds turned into flowfd counters: with"
	       " a maximum that makes fast writers wait, and limits on how"
	       " often readers are woken.\v"
	       "Exit status: 125 if flowfd-run fails, 126 if PROGRAM cannot be"
	       " run, 127 if it is not found, otherwise PROGRAM's.",
};

/* In a build tree the shim is in the directory of this program. */
static const char *find_shim(void)
{
	static const char installed[] = PRELOAD_DIR "/" SHIM;
	char *path, self[PATH_MAX];
	/* Also of a file that was replaced meanwhile. */
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (length > 0) {
		self[length] = '\0';
		*strrchr(self, '/') = '\0';
		path = format("%s/" SHIM, self);
		if (access(path, R_OK) == 0)
			return path;
		free(path);
	}
	if (access(installed, R_OK))
		err(EXIT_USAGE, "%s", installed);
	return installed;
}

/* Puts a word before those that a variable has. */
static void prepend(const char *name, const char *word)
{
	const char *others = getenv(name);

	if (others && *others)
		word = format("%s:%s", word, others);
	if (setenv(name, word, 1))
		err(EXIT_USAGE, "%s", name);
}

static void preload_shim(const struct run *run)
{
	const char *shim = find_shim();

	if (strpbrk(shim, " :"))
		errx(EXIT_USAGE,
		     "%s: cannot be preloaded from a path with a space or a colon", shim);
	if (setenv(SETTINGS_VARIABLE, run->text, 1))
		err(EXIT_USAGE, SETTINGS_VARIABLE);
	prepend("LD_PRELOAD", shim);
	/*
	 * AddressSanitizer refuses to start behind another library, which could have
	 * replaced functions that it intercepts. The shim passes all calls on to it.
	 */
	prepend("ASAN_OPTIONS", "verify_asan_link_order=0");
}

/* Returns NULL, or why no counter can be made with the settings. */
static const char *why_not(const struct settings *settings)
{
	struct flowfd_query query;
	int error = flowfd_query(&query, sizeof(query));

	if (error)
		return flowfd_strerror(error);
	if (settings_have_policies(settings) && !(query.features & FLOWFD_FEATURE_FLOW))
		return "the module is too old for --read-mark, --write-mark and "
		       "--overflow";
	return NULL;
}

int main(int argc, char **argv)
{
	struct run run = { .text = format("") };
	const char *why;

	output_check_at_exit(EXIT_USAGE);
	settings_init(&run.settings);
	argp_err_exit_status = EXIT_USAGE;
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &run);

	why = why_not(&run.settings);
	if (why) {
		warnx("%s runs without flow control: %s", run.program[0], why);
		/* Of a flowfd-run around this one, whose shim is in LD_PRELOAD. */
		unsetenv(SETTINGS_VARIABLE);
	} else {
		preload_shim(&run);
	}

	execvp(run.program[0], run.program);
	err(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN, "%s", run.program[0]);
}
