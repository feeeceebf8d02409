// SPDX-License-Identifier: GPL-2.0-only
/*
 * flowfd-run: runs a program with its eventfds turned into flowfd counters, by
 * preloading a shim into it. The program replaces this process.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

/*
 * The settings, and the same as text for the shim. @policies are not in @text: the module
 * may not have them.
 */
struct run {
	struct settings settings;
	char *text;
	char *policies;
	char *log;
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
	if (ret < 0) {
		fprintf(stderr, "flowfd-run: out of memory\n");
		exit(EXIT_USAGE);
	}
	return text;
}

/* Words of the shim's settings, one behind the other. */
static char *join(const char *text, const char *word)
{
	return format("%s%s%s", text, *text && *word ? "/" : "", word);
}

static void add_to(char **text, struct run *run, struct argp_state *state,
		   const char *name, const char *option, const char *value)
{
	char *word = format("%s=%s", name, value);
	const char *why = settings_add(&run->settings, word);
	char *longer;

	if (why)
		argp_error(state, "%s '%s': %s", option, value, why);
	longer = join(*text, word);
	free(*text);
	free(word);
	*text = longer;
}

static void add(struct run *run, struct argp_state *state, const char *name,
		const char *option, const char *value)
{
	add_to(&run->text, run, state, name, option, value);
}

/* @option begins with two hyphens; the rest is its name in the settings. */
static void add_policy(struct run *run, struct argp_state *state, const char *option,
		       const char *value)
{
	add_to(&run->policies, run, state, option + 2, option, value);
}

/* Names the file that reports are for: the program may replace its descriptor 2. */
static void add_verbose(struct run *run, struct argp_state *state)
{
	struct statx status = { 0 };
	char *file;

	statx(STDERR_FILENO, "", AT_EMPTY_PATH, STATX_INO, &status);
	file = format("%u:%u:%llu", status.stx_dev_major, status.stx_dev_minor,
		      (unsigned long long)status.stx_ino);
	add(run, state, "verbose", "--verbose", file);
	free(file);
}

/* Makes the path absolute, as the program may change its directory. */
static void set_log(struct run *run, struct argp_state *state, const char *path)
{
	int fd = open(path,
		      O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
		      0666);

	if (fd >= 0)
		run->log = realpath(path, NULL);
	if (fd < 0 || !run->log)
		argp_error(state, "--log '%s': %s", path, strerror(errno));
	close(fd);
}

static error_t parse(int key, char *value, struct argp_state *state)
{
	struct run *run = state->input;
	const char *why;

	switch (key) {
	case 'm':
		add(run, state, "maximum", "--maximum", value);
		return 0;
	case 'r':
		add(run, state, "rate", "--rate", value);
		return 0;
	case 'b':
		add(run, state, "burst", "--burst", value);
		return 0;
	case 'R':
		add_policy(run, state, "--read-mark", value);
		return 0;
	case 'd':
		add_policy(run, state, "--max-delay", value);
		return 0;
	case 'W':
		add_policy(run, state, "--write-mark", value);
		return 0;
	case 'o':
		add_policy(run, state, "--overflow", value);
		return 0;
	case 'k':
		add(run, state, "keep", "--keep-eventfd", value);
		return 0;
	case 'v':
		add_verbose(run, state);
		return 0;
	case 'l':
		set_log(run, state, value);
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
	  "Leave eventfds real: number N or N-M of each process, or a glob "
	  "for the object file that asks for them; may be repeated",
	  0 },
	{ "verbose", 'v', NULL, 0, "Report every eventfd on stderr", 0 },
	{ "log", 'l', "FILE", 0, "Report every eventfd at the end of FILE", 0 },
	{ 0 },
};

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
static char *find_shim(void)
{
	char self[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *path;

	if (length > 0) {
		self[length] = '\0';
		*strrchr(self, '/') = '\0';
		path = format("%s/" SHIM, self);
		if (access(path, R_OK) == 0)
			return path;
		free(path);
	}
	path = format("%s/" SHIM, PRELOAD_DIR);
	if (access(path, R_OK) == 0)
		return path;
	fprintf(stderr, "flowfd-run: %s: %s\n", path, strerror(errno));
	exit(EXIT_USAGE);
}

static void set_environment(const char *name, const char *value)
{
	if (setenv(name, value, 1) == 0)
		return;
	fprintf(stderr, "flowfd-run: %s: %s\n", name, strerror(errno));
	exit(EXIT_USAGE);
}

/*
 * AddressSanitizer refuses to start behind another library, which could have replaced
 * functions that it intercepts. The shim passes all calls on to it.
 */
static void admit_shim(void)
{
	const char *others = getenv("ASAN_OPTIONS");

	set_environment("ASAN_OPTIONS",
			others && *others ?
				format("verify_asan_link_order=0:%s", others) :
				"verify_asan_link_order=0");
}

static bool is_shim(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	return strcmp(name, SHIM) == 0;
}

/*
 * What is to be preloaded behind the shim. That of an outer flowfd-run is left out: each
 * of two would count an eventfd, and see the other one as the caller.
 */
static const char *others(void)
{
	const char *list = getenv("LD_PRELOAD");
	char *copy = format("%s", list ? list : "");
	char *paths = format(""), *path, *rest;

	for (path = strtok_r(copy, " :", &rest); path; path = strtok_r(NULL, " :", &rest))
		if (!is_shim(path))
			paths = format("%s:%s", paths, path);
	return paths;
}

static void preload_shim(const struct run *run)
{
	char *shim = find_shim();

	if (strpbrk(shim, " :")) {
		fprintf(stderr,
			"flowfd-run: %s: cannot be preloaded from a path with"
			" a space or a colon\n",
			shim);
		exit(EXIT_USAGE);
	}
	set_environment(SETTINGS_VARIABLE, join(run->text, run->policies));
	if (run->log)
		set_environment(LOG_VARIABLE, run->log);
	else
		unsetenv(LOG_VARIABLE);
	set_environment("LD_PRELOAD", format("%s%s", shim, others()));
	admit_shim();
}

/* The maximum and the bucket stay. --overflow wait needs nothing. */
static void check_policies(struct run *run, unsigned long long features)
{
	if (!settings_have_policies(&run->settings) || features & FLOWFD_FEATURE_FLOW)
		return;
	fprintf(stderr,
		"flowfd-run: %s runs without --read-mark, --write-mark and --overflow:"
		" the module has no policies\n",
		run->program[0]);
	*run->policies = '\0';
}

int main(int argc, char **argv)
{
	struct run run = { .text = format(""), .policies = format("") };
	struct flowfd_query query;
	int error;

	output_check_at_exit(EXIT_USAGE);
	settings_init(&run.settings);
	argp_err_exit_status = EXIT_USAGE;
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &run);

	error = flowfd_query(&query, sizeof(query));
	if (error) {
		fprintf(stderr, "flowfd-run: %s runs without flow control: %s\n",
			run.program[0], flowfd_strerror(error));
	} else {
		check_policies(&run, query.features);
		preload_shim(&run);
	}

	execvp(run.program[0], run.program);
	error = errno;
	fprintf(stderr, "flowfd-run: %s: %s\n", run.program[0], strerror(error));
	return error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}
