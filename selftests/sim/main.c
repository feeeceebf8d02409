// SPDX-License-Identifier: GPL-2.0-only
/*
 * sim [-s SECONDS] [-f FIRST] [-n NUMBER] [-k KIND] [-v]: runs histories, each decided by
 * its seed, and prints the first that shows a fault.
 */
#include "kernel.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "oracle.h"
#include "rings.h"
#include "subject.h"
#include "tasks.h"

static const struct history_kind {
	const char *name;
	enum store store;
	bool dying, hostile, bridges, rings;
} histories[] = {
	{ .name = "kernel", .store = IN_KERNEL },
	{ .name = "memory", .store = IN_MEMORY },
	{ .name = "dying", .store = IN_MEMORY, .dying = true },
	{ .name = "hostile", .store = IN_MEMORY, .hostile = true },
	{ .name = "bridges", .store = IN_KERNEL, .bridges = true },
	{ .name = "mapped-bridges", .store = IN_MEMORY, .bridges = true },
	{ .name = "ring", .rings = true },
	{ .name = "library", .store = WITHOUT_MODULE },
	{ .name = "library-dying", .store = WITHOUT_MODULE, .dying = true },
};

static void live(const struct history_kind *h)
{
	if (h->rings) {
		rings_live();
		return;
	}
	subject_begin(h->store, h->bridges, h->dying);
	if (h->store != WITHOUT_MODULE && sim_random(3))
		subject_set_randomly();
	tasks_begin(h->dying, h->hostile);
	if (!sim_run(3000000) || !tasks_act_once())
		return;
	if (!h->hostile)
		oracle_judge();
	if (!sim_failed && !tasks_end())
		sim_fail("a task cannot be killed");
	if (!sim_failed)
		subject_end();
}

static bool run_history(const struct history_kind *h, u64 seed)
{
	sim_begin(seed);
	live(h);
	return !sim_failed;
}

static const struct history_kind *find_kind(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(histories); i++)
		if (!strcmp(histories[i].name, name))
			return &histories[i];
	fprintf(stderr, "sim: no histories of the kind '%s'\n", name);
	exit(2);
}

/* Mostly of the two kinds that have most to show. */
static const struct history_kind *kind_of(u64 seed)
{
	static const u8 order[] = { 0, 1, 4, 2, 7, 0, 1, 3, 6, 5, 7, 8 };

	return &histories[order[seed % ARRAY_SIZE(order)]];
}

int main(int argc, char **argv)
{
	u64 first = 1, number = 2000, done;
	const struct history_kind *only = NULL, *h;
	time_t end = 0, began = time(NULL);
	int option;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((option = getopt(argc, argv, "s:f:n:k:v")) != -1) {
		switch (option) {
		case 's':
			end = began + atoi(optarg);
			number = U64_MAX;
			break;
		case 'f':
			first = strtoull(optarg, NULL, 0);
			break;
		case 'n':
			number = strtoull(optarg, NULL, 0);
			break;
		case 'k':
			only = find_kind(optarg);
			break;
		case 'v':
			sim_verbose = true;
			break;
		default:
			return 2;
		}
	}
	subject_init();
	for (done = 0; done < number && (!end || time(NULL) < end); done++) {
		h = only ?: kind_of(first + done);
		if (run_history(h, first + done))
			continue;
		printf("# %s: sim -k %s -f %llu -n 1 -v\n", sim_failure(), h->name,
		       (unsigned long long)(first + done));
		sim_verbose = true;
		run_history(h, first + done);
		printf("not ok 1 - %s, seed %llu: %s\n1..1\n", h->name,
		       (unsigned long long)(first + done), sim_failure());
		return 1;
	}
	printf("# %llu histories, %llu steps, %ld s\nok 1 - no history has a fault\n1..1\n",
	       (unsigned long long)done, (unsigned long long)sim_steps,
	       (long)(time(NULL) - began));
	return 0;
}
