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
#include <unistd.h>

#include <flowfd.h>

#include "channel.h"
#include "tools/output.h"

const char *argp_program_version = "flowfd-bench " FLOWFD_VERSION;

struct settings settings = { .rounds = 5, .ms = 10 };

/*
 * Cost comes first: glibc's read() and write() become slower for good once a process
 * has had a second thread.
 */
static const struct bench *const benches[] = {
	&bench_cost,	  &bench_ring,	 &bench_control, &bench_others, &bench_memory,
	&bench_pingpong,  &bench_processes, &bench_accept, &bench_fanin, &bench_loop,
	&bench_burst,	  &bench_latency, &bench_bucket,
};

#define BENCHES (sizeof(benches) / sizeof(*benches))

enum { JSON = 256, CHECK, FALLBACK, INSTRUCTIONS };

static const struct argp_option options[] = {
	{ "rounds", 'r', "N", 0, "Measure everything N times (5)", 0 },
	{ "time", 't', "MS", 0, "Measure each loop for MS milliseconds (10)", 0 },
	{ "fallback", FALLBACK, NULL, 0,
	  "Measure what libflowfd does without the module, where it can", 0 },
	{ "instructions", INSTRUCTIONS, NULL, 0,
	  "The clock counts instructions (QEMU -icount shift=0): call the unit so, and "
	  "let the machine settle for 3 s first",
	  0 },
	{ "json", JSON, "FILE", 0,
	  "Write the result as JSON; to standard output instead of the tables if FILE is -",
	  0 },
	{ "check", CHECK, NULL, 0,
	  "Print the project's goals for what is measured; exit with 1 if one is missed", 0 },
	{ 0 },
};

struct arguments {
	const char *json;
	bool check;
	bool any;
	bool chosen[BENCHES];
};

static unsigned int number(struct argp_state *state, const char *text, unsigned int max)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || *end || *text < '0' || *text > '9' || !value || value > max)
		argp_error(state, "%s: not a number from 1 to %u", text, max);
	return (unsigned int)value;
}

static void choose(struct argp_state *state, struct arguments *arguments,
		   const char *name)
{
	for (size_t i = 0; i < BENCHES; i++)
		if (!strcmp(benches[i]->name, name)) {
			arguments->chosen[i] = true;
			arguments->any = true;
			return;
		}
	argp_error(state, "%s: no such benchmark (see flowfd-bench(1))", name);
}

/* Without a name all benchmarks run that can. */
static void complete(struct argp_state *state, struct arguments *arguments)
{
	for (size_t i = 0; i < BENCHES; i++) {
		bool can = !settings.fallback || benches[i]->channels;

		if (arguments->chosen[i] && !can)
			argp_error(state, "%s: needs the module", benches[i]->name);
		arguments->chosen[i] |= !arguments->any && can;
	}
	if (arguments->check && settings.fallback)
		argp_error(state, "--check: there are no goals without the module");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	switch (key) {
	case 'r':
		settings.rounds = number(state, arg, ROUNDS_MAX);
		break;
	case 't':
		settings.ms = number(state, arg, 10000);
		break;
	case FALLBACK:
		settings.fallback = true;
		break;
	case INSTRUCTIONS:
		settings.instructions = true;
		break;
	case JSON:
		arguments->json = arg;
		break;
	case CHECK:
		arguments->check = true;
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
	.doc = "Measure what flowfd gains and costs against eventfd(2) and epoll(7) on "
	       "this machine.",
};

static bool possible(const struct bench *bench, unsigned int number)
{
	return !settings.fallback ||
	       channel_without(bench->channels[number % bench->count]);
}

/* Every other round goes backwards, so that a slow drift favours no case. */
static void run(struct table *table)
{
	const struct bench *bench = table->bench;
	unsigned int round, i, number;
	cpu_set_t usable;

	snprintf(table->note, sizeof(table->note), "%s%s",
		 bench->unit		 ? bench->unit :
		 settings.instructions ? "instructions" :
					 "nanoseconds",
		 bench->two_threads && pair_cpus(&usable) < 2 ?
			 "; one CPU for both threads" :
			 "");
	fprintf(stderr, "flowfd-bench: %s\n", bench->name);
	for (round = 0; round < settings.rounds; round++) {
		for (i = 0; i < bench->cases; i++) {
			number = round % 2 ? bench->cases - 1 - i : i;
			if (possible(bench, number))
				bench->measure(table, number);
		}
	}
	table_ratios(table);
}

static void need_module(void)
{
	struct flowfd_query query;
	int error = flowfd_query(&query, sizeof(query));

	if (error)
		errx(EXIT_FAILURE, "%s: %s; --fallback measures what needs none",
		     FLOWFD_DEVICE, flowfd_strerror(error));
}

/* Returns whether all goals were met that were asked for. */
static bool run_all(const struct arguments *arguments, FILE *result, FILE *text)
{
	static struct table table;
	bool met = true;
	unsigned int i;

	for (i = 0; i < BENCHES; i++) {
		if (!arguments->chosen[i])
			continue;
		memset(&table, 0, sizeof(table));
		table.bench = benches[i];
		run(&table);
		if (result)
			result_add(result, &table);
		if (text)
			table_print(&table, text);
		if (arguments->check)
			met &= goals_print(&table, text ? text : stderr);
	}
	return met;
}

int main(int argc, char **argv)
{
	struct arguments arguments = { 0 };
	FILE *result = NULL;
	bool met;

	output_check_at_exit(EXIT_FAILURE);
	if (argp_parse(&argp, argc, argv, 0, NULL, &arguments))
		return EXIT_FAILURE;
	if (settings.fallback)
		setenv("FLOWFD_BACKEND", "fallback", true);
	else
		need_module();
	/* Before the run: a typing error should not end a long one. */
	if (arguments.json) {
		result = strcmp(arguments.json, "-") ? fopen(arguments.json, "we") :
						       stdout;
		if (!result)
			err(EXIT_FAILURE, "%s", arguments.json);
		result_begin(result, argv);
	}
	if (settings.instructions)
		sleep(3);
	met = run_all(&arguments, result, result == stdout ? NULL : stdout);
	if (result) {
		result_end(result);
		if (fflush(result) || ferror(result))
			err(EXIT_FAILURE, "%s", arguments.json);
	}
	return met ? EXIT_SUCCESS : EXIT_FAILURE;
}
