// SPDX-License-Identifier: GPL-2.0-only
/*
 * flowfd-bench - what flowfd gains and costs on this machine, compared with the stock
 * eventfd and epoll in the same run. Options, rounds, and output of the result.
 */
#include <argp.h>
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <flowfd.h>

#include "bench.h"

const char *argp_program_version = "flowfd-bench " FLOWFD_VERSION;

/*
 * Cost comes first: glibc's read() and write() become slower for good once a process
 * has had a second thread.
 */
static const struct bench *const benches[] = {
	&bench_cost,	&bench_ring,	 &bench_control, &bench_mark,
	&bench_memory,	&bench_post,	 &bench_signal,	 &bench_contend,
	&bench_pingpong, &bench_fanin,	 &bench_loop,	 &bench_burst,
	&bench_latency,	&bench_coalesce, &bench_bucket,	 &bench_batch,
	&bench_overflow, &bench_wakeup,	 &bench_producers, &bench_creators,
};

#define BENCHES (sizeof(benches) / sizeof(*benches))

enum { SHORT = 256, JSON, HTML, LIST, ONLY, CHECK, INSTRUCTIONS };

static const struct argp_option options[] = {
	{ "short", SHORT, NULL, 0, "Finish in a few minutes", 0 },
	{ "rounds", 'r', "N", 0, "Measure everything N times (5)", 0 },
	{ "iterations", 'i', "N", 0,
	  "Length of the loops that measure single calls (200000)", 0 },
	{ "only", ONLY, "SUBJECT", 0,
	  "Measure only eventfd or only flowfd; eventfd needs no module", 0 },
	{ "instructions", INSTRUCTIONS, NULL, 0,
	  "The clock counts instructions (QEMU -icount shift=0): call the unit "
	  "so, and let the machine settle for 3 s first", 0 },
	{ "json", JSON, "FILE", 0,
	  "Write the result as JSON; to standard output instead of the tables "
	  "if FILE is -", 0 },
	{ "html", HTML, "FILE", 0,
	  "Write the result as a page with plots (flowfd-bench-report)", 0 },
	{ "check", CHECK, NULL, 0, "Exit with 1 if a goal is missed", 0 },
	{ "list", LIST, NULL, 0, "List the benchmarks and exit", 0 },
	{ 0 },
};

struct arguments {
	struct settings settings;
	const char *json;
	const char *html;
	bool is_short;
	bool check;
	bool chosen[BENCHES];
};

static unsigned long number(struct argp_state *state, const char *text,
			    unsigned long max)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || *end || *text < '0' || *text > '9' || !value ||
	    value > max)
		argp_error(state, "%s: not a number from 1 to %lu", text, max);
	return value;
}

static void choose(struct argp_state *state, struct arguments *arguments,
		   const char *name)
{
	unsigned int i;

	for (i = 0; i < BENCHES; i++)
		if (!strcmp(benches[i]->name, name))
			break;
	if (i == BENCHES)
		argp_error(state, "%s: no such benchmark (see --list)", name);
	else
		arguments->chosen[i] = true;
}

static void list(void)
{
	unsigned int i;

	for (i = 0; i < BENCHES; i++)
		printf("%-9s %s\n", benches[i]->name, benches[i]->title);
	exit(EXIT_SUCCESS);
}

/* Fills in defaults; without a name all benchmarks run. */
static void complete(struct argp_state *state, struct arguments *arguments)
{
	struct settings *settings = &arguments->settings;
	bool is_short = arguments->is_short;
	bool any = false;
	unsigned int i;

	if (!settings->rounds)
		settings->rounds = is_short ? 3 : 5;
	if (!settings->iterations)
		settings->iterations = is_short ? 20000 : 200000;
	settings->burst_ms = is_short ? 500 : 5000;
	settings->bucket_ms = is_short ? 500 : 2000;
	for (i = 0; i < BENCHES; i++)
		any |= arguments->chosen[i];
	for (i = 0; i < BENCHES; i++)
		arguments->chosen[i] |= !any;
	if (arguments->check && settings->only)
		argp_error(state, "--check compares, --only does not");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *arguments = state->input;
	struct settings *settings = &arguments->settings;

	switch (key) {
	case SHORT:
		arguments->is_short = true;
		break;
	case 'r':
		settings->rounds =
			(unsigned int)number(state, arg, ROUNDS_MAX);
		break;
	case 'i':
		settings->iterations = number(state, arg, 1000000000);
		break;
	case ONLY:
		if (strcmp(arg, "eventfd") && strcmp(arg, "flowfd"))
			argp_error(state, "%s: neither eventfd nor flowfd",
				   arg);
		settings->only = arg;
		break;
	case INSTRUCTIONS:
		settings->instructions = true;
		break;
	case JSON:
		arguments->json = arg;
		break;
	case HTML:
		arguments->html = arg;
		break;
	case CHECK:
		arguments->check = true;
		break;
	case LIST:
		list();
		break;
	case ARGP_KEY_ARG:
		choose(state, arguments, arg);
		break;
	case ARGP_KEY_END:
		complete(state, arguments);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.args_doc = "[BENCHMARK...]",
	.doc = "Measure what flowfd gains and costs against eventfd(2) and "
	       "epoll(7) on this machine.",
};

static bool on_terminal(void)
{
	const char *term = getenv("TERM");

	return isatty(STDERR_FILENO) && term && strcmp(term, "dumb");
}

/* On a terminal one line that is overwritten, once the run takes long. */
static void progress(const struct bench *bench, unsigned int done,
		     unsigned int all)
{
	static uint64_t start;

	if (!start)
		start = clock_now();
	if (!on_terminal()) {
		if (!done)
			fprintf(stderr, "flowfd-bench: %s\n", bench->name);
		return;
	}
	if (done == all)
		fprintf(stderr, "\r\033[K");
	else if (clock_now() - start > 2000000000)
		fprintf(stderr, "\r\033[Kflowfd-bench: %s %u %%", bench->name,
			100 * done / all);
}

static bool wanted(const struct settings *settings, const struct bench *bench,
		   unsigned int number)
{
	const struct subject *subject = bench->subject(number);

	return !settings->only || !subject ||
	       !strcmp(settings->only, subject->flowfd ? "flowfd" : "eventfd");
}

/* Every other round goes backwards, so that a slow drift favours no case. */
static void run(const struct bench *bench, const struct settings *settings,
		struct table *table)
{
	unsigned int all = settings->rounds * bench->cases;
	unsigned int round, i, number;

	table->name = bench->name;
	table->title = bench->title;
	table->labels = bench->labels;
	table->columns = bench->columns;
	if (bench->two_threads && pair_cpus() < 2)
		table->note = "a single CPU, which reader and writer share; "
			      "they sleep where they would work";
	for (round = 0; round < settings->rounds; round++) {
		for (i = 0; i < bench->cases; i++) {
			progress(bench, round * bench->cases + i, all);
			number = round % 2 ? bench->cases - 1 - i : i;
			if (wanted(settings, bench, number))
				bench->measure(settings, table, number);
		}
	}
	progress(bench, all, all);
	bench->conclude(settings, table);
}

static bool goals_met(const struct table *table)
{
	unsigned int i;

	for (i = 0; i < table->verdicts; i++)
		if (!verdict_met(&table->verdict[i]))
			return false;
	return true;
}

/* Opens outputs first: a typing error should not end a long run. */
static FILE *open_json(const char *path)
{
	FILE *file;

	if (!path)
		return NULL;
	if (!strcmp(path, "-"))
		return stdout;
	file = fopen(path, "we");
	if (!file)
		err(EXIT_FAILURE, "%s", path);
	return file;
}

static void write_json(const json_t *result, FILE *file, const char *path)
{
	if (json_dumpf(result, file, JSON_INDENT(1)) ||
	    fputc('\n', file) == EOF || fflush(file))
		err(EXIT_FAILURE, "%s", path);
}

/* The report script is in the directory of this program, installed or built. */
static const char *find_report(void)
{
	static const char suffix[] = "-report";
	static char path[4096 + sizeof(suffix)];
	ssize_t length;

	length = readlink("/proc/self/exe", path, 4096);
	if (length < 0)
		err(EXIT_FAILURE, "/proc/self/exe");
	memcpy(path + length, suffix, sizeof(suffix));
	if (access(path, X_OK))
		err(EXIT_FAILURE, "%s", path);
	return path;
}

/* Passes the result as standard input. */
static void write_html(const json_t *result, const char *report,
		       const char *path)
{
	FILE *file = tmpfile();
	int status;
	pid_t pid;

	if (!file || json_dumpf(result, file, 0) || fflush(file))
		err(EXIT_FAILURE, "temporary file");
	rewind(file);
	pid = fork();
	if (pid < 0)
		err(EXIT_FAILURE, "fork");
	if (!pid) {
		if (dup2(fileno(file), STDIN_FILENO) < 0)
			err(EXIT_FAILURE, "dup2");
		execl(report, report, "-o", path, "-", NULL);
		err(EXIT_FAILURE, "%s", report);
	}
	if (waitpid(pid, &status, 0) != pid)
		err(EXIT_FAILURE, "waitpid");
	if (WIFSIGNALED(status))
		errx(EXIT_FAILURE, "%s: %s", report,
		     strsignal(WTERMSIG(status)));
	if (status)
		errx(EXIT_FAILURE, "%s: cannot make the page", path);
	fclose(file);
}

static void need_module(void)
{
	struct flowfd_query query;
	int error = flowfd_query(&query, sizeof(query));

	if (error)
		errx(EXIT_FAILURE, "%s: %s", FLOWFD_DEVICE,
		     flowfd_strerror(error));
}

/* Returns whether all goals were met. */
static bool run_all(const struct arguments *arguments, json_t *result,
		    FILE *text)
{
	bool met = true;
	unsigned int i;

	for (i = 0; i < BENCHES; i++) {
		struct table table = { 0 };

		if (!arguments->chosen[i])
			continue;
		run(benches[i], &arguments->settings, &table);
		met &= goals_met(&table);
		result_add(result, &table);
		if (text)
			table_print(&table, text);
		table_free(&table);
	}
	return met;
}

int main(int argc, char **argv)
{
	struct arguments arguments = { 0 };
	const struct settings *settings = &arguments.settings;
	const char *report = NULL;
	json_t *result;
	FILE *json;
	bool met;

	if (argp_parse(&argp, argc, argv, 0, NULL, &arguments))
		return EXIT_FAILURE;
	if (!settings->only || strcmp(settings->only, "eventfd"))
		need_module();
	json = open_json(arguments.json);
	if (arguments.html)
		report = find_report();
	result = result_new(settings, argv);
	if (settings->instructions)
		sleep(3);
	met = run_all(&arguments, result, json == stdout ? NULL : stdout);
	if (json)
		write_json(result, json, arguments.json);
	if (report)
		write_html(result, report, arguments.html);
	json_decref(result);
	if (fflush(stdout) || ferror(stdout))
		err(EXIT_FAILURE, "standard output");
	return arguments.check && !met ? EXIT_FAILURE : EXIT_SUCCESS;
}
