// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz [-t SECONDS] [-s SEED] [-k LAST] SPLATS: makes programs and runs them
 * fuzz -r FILE [-n ROUNDS] SPLATS: runs a printed program again and again
 *
 * SPLATS has the regular expressions of reports in the log of the kernel. The last
 * programs are stored in LAST.0 to LAST.3, in case the machine dies.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define KEPT 4		/* an earlier program may have caused the failure */
#define CORPUS 1024

struct options {
	unsigned int seconds;
	unsigned int rounds;
	__u64 seed;
	const char *last;
	const char *replay;
};

static struct program kept[KEPT];
static unsigned long programs, calls;
static bool guided;

/*
 * The programs that reached new code, in memory only: the result of a run is the
 * program that it prints when something fails.
 */
static struct program corpus[CORPUS];
static int corpus_size;

/* A full corpus replaces one of its programs. */
static void corpus_add(const struct program *p)
{
	int at = corpus_size < CORPUS ? corpus_size++ : (int)random_below(CORPUS);

	corpus[at] = *p;
}

static const struct program *corpus_any(void)
{
	/* Later programs tend to reach further: half of the time take a late one. */
	if (corpus_size > 16 && random_below(2))
		return &corpus[corpus_size - 1 - random_below(corpus_size / 8)];
	return corpus_size ? &corpus[random_below(corpus_size)] : NULL;
}

static void keep(const struct program *p, const char *path)
{
	static int files[KEPT];
	unsigned long at = programs % KEPT;
	char text[8192] = "", name[4096];
	FILE *f = fmemopen(text, sizeof(text), "w");

	kept[at] = *p;
	if (!path || !f)
		return;
	fprintf(f, "# %lu\n", programs);
	program_print(p, f);
	fclose(f);
	if (!files[at]) {
		snprintf(name, sizeof(name), "%s.%lu", path, at);
		files[at] = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	}
	/*
	 * One write, as this is done for each program. Newlines overwrite the rest of a
	 * longer one.
	 */
	for (size_t n = strlen(text); n < 2500; n++)
		text[n] = '\n';
	(void)!pwrite(files[at], text, strlen(text), 0);
}

static int failed(const char *why)
{
	printf("FAILED: %s\n", why);
	for (unsigned long i = programs < KEPT ? 0 : programs - KEPT;
	     i < programs; i++) {
		printf("# program %lu\n", i);
		program_print(&kept[i % KEPT], stdout);
	}
	printf("0 passed, 1 failed\n");
	return 1;
}

static void next_program(struct program *p)
{
	const struct program *base = corpus_any();

	if (base && random_below(5)) {
		*p = *base;
		program_change(p, corpus_any());
	} else {
		program_make(p);
	}
}

static void report(time_t start)
{
	printf("%4ld s: %lu programs, %lu calls", (long)(time(NULL) - start),
	       programs, calls);
	if (guided)
		printf(", %d kept, %d edges of the module", corpus_size,
		       cover_total());
	printf("\n");
	fflush(stdout);
}

static const char *run_next(const char *last)
{
	struct program p;
	const char *why;

	next_program(&p);
	keep(&p, last);
	programs++;
	calls += p.length;
	why = run_program(&p);
	if (!why && programs % 64 == 0)
		why = run_settled();
	if (cover_take())
		corpus_add(&p);
	return why;
}

static int fuzz(const struct options *o)
{
	time_t start = time(NULL), next = start;
	const char *why = NULL;

	random_seed(o->seed);
	printf("seed %llu, %s\n", o->seed,
	       guided ? "guided by KCOV" : "unguided: no KCOV");
	while (!why && time(NULL) < start + o->seconds) {
		if (time(NULL) >= next) {
			report(start);
			next += 10;
		}
		why = run_next(o->last);
	}
	report(start);
	if (!why)
		why = run_settled();
	if (why)
		return failed(why);
	printf("1 passed, 0 failed\n");
	return 0;
}

static int replay(const struct options *o)
{
	FILE *f = fopen(o->replay, "r");
	const char *why = NULL;
	struct program p;

	if (!f || !program_read(&p, f)) {
		fprintf(stderr, "%s: no program\n", o->replay);
		return 2;
	}
	fclose(f);
	for (; programs < o->rounds && !why; programs++) {
		kept[programs % KEPT] = p;
		why = run_program(&p);
	}
	if (!why)
		why = run_settled();
	if (why)
		return failed(why);
	printf("%u rounds\n1 passed, 0 failed\n", o->rounds);
	return 0;
}

/* False: usage error. */
static bool parse(struct options *o, int argc, char **argv)
{
	int option;

	*o = (struct options){ .seconds = 60, .rounds = 100,
			       .seed = time(NULL) };
	while ((option = getopt(argc, argv, "t:s:k:r:n:")) != -1) {
		switch (option) {
		case 't':
			o->seconds = strtoul(optarg, NULL, 10);
			break;
		case 's':
			o->seed = strtoull(optarg, NULL, 10);
			break;
		case 'k':
			o->last = optarg;
			break;
		case 'r':
			o->replay = optarg;
			break;
		case 'n':
			o->rounds = strtoul(optarg, NULL, 10);
			break;
		default:
			return false;
		}
	}
	return optind + 1 == argc;
}

int main(int argc, char **argv)
{
	struct options o;

	if (!parse(&o, argc, argv)) {
		fprintf(stderr, "usage: fuzz [-t SECONDS] [-s SEED] [-k LAST] SPLATS\n"
				"       fuzz -r FILE [-n ROUNDS] SPLATS\n");
		return 2;
	}
	if (!log_open(argv[optind])) {
		fprintf(stderr, "fuzz: no kernel log, or no expressions in %s\n",
			argv[optind]);
		return 2;
	}
	kind_open();
	guided = cover_open();
	return o.replay ? replay(&o) : fuzz(&o);
}
