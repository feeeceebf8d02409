// SPDX-License-Identifier: GPL-2.0-only
/*
 * flowfdctl: shows administrators the uses of flowfd, and balances servers. Dispatches to a
 * command.
 */
#include <argp.h>
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <flowfd.h>

#include "flowfdctl.h"
#include "tools/output.h"

const char *argp_program_version = "flowfdctl " FLOWFD_VERSION;

#define COMMANDS "info, list, balance"

static const struct command {
	const char *name;
	int (*main)(int argc, char **argv);
} commands[] = {
	{ "--prometheus", prometheus_main },
	{ "info", info_main },
	{ "list", list_main },
	{ "balance", balance_main },
};

enum { PROMETHEUS = 256 };

static const struct argp_option options[] = {
	{ "prometheus", PROMETHEUS, NULL, 0,
	  "Print metrics for the textfile collector of node_exporter", 0 },
	{ 0 },
};

/* The command and its arguments; the first one is the name for messages. */
struct call {
	const struct command *command;
	int argc;
	char **argv;
};

/* All further arguments are the command's. */
static void call_with_rest(const char *name, struct argp_state *state)
{
	struct call *call = state->input;
	size_t i;

	for (i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(commands[i].name, name))
			call->command = &commands[i];
	if (!call->command)
		argp_error(state, "%s: no such command (" COMMANDS ")", name);
	call->argc = state->argc - state->next + 1;
	call->argv = &state->argv[state->next - 1];
	state->next = state->argc;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case PROMETHEUS:
		call_with_rest("--prometheus", state);
		return 0;
	case ARGP_KEY_ARG:
		if (!strcmp(arg, "help"))
			argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
		call_with_rest(arg, state);
		return 0;
	case ARGP_KEY_END:
		if (!((struct call *)state->input)->command)
			argp_error(state, "no command (" COMMANDS ")");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.args_doc = "COMMAND [OPTION...]\n--prometheus",
	.doc = "Show the counters and rings of this machine, and what the flowfd"
	       " module can do; balance the workers of a server.\n"
	       "\n"
	       "  info     is the module loaded, and what can it do?\n"
	       "  list     every counter and ring, and the process that created it\n"
	       "  balance  wake the workers of a running server in turn\n"
	       "\v"
	       "'flowfdctl COMMAND --help' has the options of a command."
	       " Without root, 'flowfdctl list --pid PID' shows one process.\n"
	       "\n"
	       "Examples:\n"
	       "  flowfdctl list --pid 4711 --stats\n"
	       "  flowfdctl list --json | jq '.counters[] | select(.deferred)'\n"
	       "  watch --differences flowfdctl list --stats\n"
	       "  flowfdctl balance --pid $(cat /run/nginx.pid)\n"
	       "\n"
	       "Exit status: 0; 1 if the module is not loaded or an error"
	       " occurred; 2 if the output is incomplete, and standard error says"
	       " why; 64 if the command line is wrong.",
};

int main(int argc, char **argv)
{
	struct call call = { 0 };

	/* Messages have this prefix, whatever argv[0] is. */
	argv[0] = program_invocation_short_name;
	output_check_at_exit(EXIT_FAILURE);
	if (argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &call))
		return EXIT_FAILURE;
	if (asprintf(call.argv, "flowfdctl %s", call.command->name) < 0)
		err(EXIT_FAILURE, "arguments");
	return call.command->main(call.argc, call.argv);
}
