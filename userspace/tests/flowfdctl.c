// SPDX-License-Identifier: GPL-2.0-only
/*
 * flowfdctl's parsing of the kernel's list and of fdinfo: text as the module writes it, and
 * as a kernel, a process or a newer module could change it; and how it prints names. Needs
 * no module.
 */
#include <stdlib.h>
#include <string.h>

#include <flowfd.h>

#include "tests/output.h"
#include "tests/tap.h"
#include "tools/flowfdctl/flowfdctl.h"

#define FILE_LINES "pos:\t0\nflags:\t02000002\nmnt_id:\t15\nino:\t1057\n"
#define EVENTFD_LINES                          \
	"eventfd-count:                3\n"    \
	"eventfd-id: 17\n"                     \
	"eventfd-semaphore: 0\n"
#define BUCKET_LINES                           \
	"flowfd-token-capacity: 2\n"           \
	"flowfd-token-rate: 1000\n"            \
	"flowfd-wakeup-deferred: 1\n"
#define COUNTER_LINES                          \
	EVENTFD_LINES                          \
	"eventfd-maximum:                a\n" BUCKET_LINES
#define FLOW_LINES                             \
	"flowfd-mapped: 1\n"                   \
	"flowfd-read-mark: 64\n"               \
	"flowfd-write-mark: 2\n"               \
	"flowfd-max-delay: 1500000\n"          \
	"flowfd-overflow: drop\n"              \
	"flowfd-lost: 18446744073709551615\n"  \
	"flowfd-source: 7\n"                   \
	"flowfd-sink: none\n"                  \
	"flowfd-source-waiting: 5\n"
#define STATS_LINES                            \
	"flowfd-produced: 18446744073709551614\n" \
	"flowfd-writes: 100\n"                 \
	"flowfd-reads: 90\n"                   \
	"flowfd-wakeups: 80\n"                 \
	"flowfd-held-back: 70\n"               \
	"flowfd-again: 60\n"                   \
	"flowfd-waits: 50\n"                   \
	"flowfd-wait-ns: 40\n"                 \
	"flowfd-highest: 30\n"
#define RING_STATS_LINES                       \
	"flowfd-ring-published: 11\n"          \
	"flowfd-ring-coalesced: 12\n"          \
	"flowfd-ring-waits: 13\n"              \
	"flowfd-ring-sleeps: 14\n"
#define RING_LINES                             \
	"flowfd-ring-id: 18446744073709551615\n" \
	"flowfd-ring-max-items: 4\n"           \
	"flowfd-ring-head: 4294967295\n"       \
	"flowfd-ring-tail: 2\n"
#define WATCHED "flowfd-ring-watches: 3\n"
#define WATCH_LINES                                                             \
	"tfd:        5 events:       19 data: ffffffffffffffff pinned: 0\n"     \
	"tfd:        7 events: 40000000 data:                0 pinned: 1\n"     \
	"tfd: 2147483647 events:        0 data:               2a pinned: 1\n"

enum found { OTHER, OBJECT, UNKNOWN };

static struct list found;

static void feed(struct parser *parser, const char *text)
{
	char *lines = strdup(text), *rest = lines, *line;

	if (!lines)
		abort();
	/* What is behind the last newline is no line. */
	while ((line = strsep(&rest, "\n")) && rest)
		parser_line(parser, line);
	free(lines);
}

/* Parses the text of one object. */
static enum found parse(const char *text, struct object *object)
{
	struct parser parser = { .list = &found };
	struct object *added;

	free(found.object);
	found = (struct list){ 0 };
	feed(&parser, text);
	added = parser_end(&parser);
	*object = (struct object){ 0 };
	if (!added)
		return found.unknown ? UNKNOWN : OTHER;
	*object = *added;
	return OBJECT;
}

static void test_counter(void)
{
	struct object object;

	tap_is(parse(FILE_LINES COUNTER_LINES, &object), OBJECT,
	       "a counter");
	tap_is(object.kind, COUNTER, "is one");
	tap_is(object.number[COUNTER_ID], 17, "id");
	tap_is(object.number[COUNT], 3, "count");
	tap_is(object.number[MAXIMUM], 10, "maximum");
	tap_is(object.number[BURST], 2, "capacity");
	tap_is(object.number[RATE], 1000, "rate");
	tap_is(object.number[DEFERRED], true, "a wakeup is deferred");
	tap_is(object.number[SEMAPHORE], false, "no semaphore");

	tap_is(parse("flowfd-new: words of a newer module\n"
		     "eventfd-count: fffffffffffffffe\n"
		     "eventfd-id: 2147483647\n"
		     "eventfd-semaphore: 1\n"
		     "eventfd-maximum: ffffffffffffffff\n"
		     "flowfd-token-capacity: 4294967295\n"
		     "flowfd-token-rate: 0\n"
		     "flowfd-wakeup-deferred: 0\n",
		     &object),
	       OBJECT, "highest numbers, and a line that is not known");
	tap_ok(object.number[COUNT] == UINT64_MAX - 1 && !object_has(&object, MAXIMUM),
	       "are kept whole, and the highest maximum is none");
	tap_is(object.number[COUNTER_ID], INT32_MAX, "id");
	tap_is(object.number[BURST], UINT32_MAX, "capacity");
	tap_is(object.number[SEMAPHORE], true, "a semaphore");
}

static void test_ring(void)
{
	struct object object;

	tap_is(parse(FILE_LINES RING_LINES WATCHED WATCH_LINES, &object),
	       OBJECT, "a ring");
	tap_is(object.kind, RING, "is one");
	tap_ok(object.number[RING_ID] == UINT64_MAX, "id");
	tap_is(object.number[MAX_ITEMS], 4, "max_items");
	tap_is(object.number[HEAD], UINT32_MAX, "head");
	tap_is(object.number[TAIL], 2, "tail");
	tap_is(object.number[PENDING], 3, "entries pending, tail has wrapped");
	tap_is(object.number[WATCHES], 3, "watches");
	tap_is(object.number[BUSY], false, "not busy");
	tap_is(parse("flowfd-ring-id: 1\nflowfd-ring-max-items: 4\nflowfd-ring-head: 100\n"
		     "flowfd-ring-tail: 2\n" WATCHED, &object), OBJECT,
	       "a consumer that stores a wrong head");
	tap_is(object.number[PENDING], 4, "no more pending than fit");

	tap_is(parse(RING_LINES "flowfd-ring-watches: 0\n", &object),
	       OBJECT, "a ring that watches nothing");
	tap_is(object.number[WATCHES], 0, "no watches");
	tap_is(parse(RING_LINES "flowfd-ring-watches: 0\nflowfd-ring-posts: 7\n"
		     "post:        1 data:                2\n", &object),
	       OBJECT, "a ring with posts");
	tap_is(object.number[POSTS], 7, "posts");
	tap_is(parse(RING_LINES "flowfd-ring-busy: 1\n", &object),
	       OBJECT, "a ring that is being changed");
	tap_is(object.number[BUSY], true, "is busy");
}

/* Whether an object has these numbers, from @first to @last. */
static bool has_values(const struct object *object, enum field first, enum field last,
		       const uint64_t *wanted)
{
	for (enum field field = first; field <= last; field++)
		if (!object_has(object, field) ||
		    object->number[field] != wanted[field - first])
			return false;
	return true;
}

static void test_values(void)
{
	static const uint64_t all[] = { 64, 2, 1500000, 3, 7, 0, 5, UINT64_MAX - 1, 100,
					90, 80, 70, 60, 50, 40, UINT64_MAX, 30 };
	static const uint64_t ring_all[] = { 11, 12, 13, 14 };
	struct object object;

	tap_is(parse(COUNTER_LINES FLOW_LINES STATS_LINES, &object), OBJECT,
	       "policies and statistics of a counter");
	tap_is(object.number[MAPPED], true, "it is mapped");
	tap_ok(!(object.known & BIT(SINK)), "it has no sink");
	object.known |= BIT(SINK);
	tap_ok(has_values(&object, READ_MARK, HIGHEST, all), "all are there");
	tap_ok(!strcmp(overflow_names[object.number[OVERFLOW]], "drop"), "overflow policy");
	tap_is(parse(COUNTER_LINES, &object), OBJECT, "an older module");
	tap_ok(!object_has(&object, MAPPED) && !has_values(&object, READ_MARK, HIGHEST, all),
	       "has none of them");
	tap_is(parse(COUNTER_LINES "flowfd-overflow: spill\n", &object),
	       OBJECT, "a policy of a newer module");
	tap_ok(!object_has(&object, OVERFLOW), "is not known");

	tap_is(parse(RING_LINES RING_STATS_LINES WATCHED WATCH_LINES, &object),
	       OBJECT, "statistics of a ring");
	tap_ok(has_values(&object, PUBLISHED, SLEEPS, ring_all), "all are there");
}

#define CREATOR "flowfd-uid: 1000\nflowfd-pid: 42\nflowfd-comm: "

/* The list of the kernel: objects end with an empty line. */
static void test_list(void)
{
	struct object object;

	tap_is(parse(CREATOR "worker\n" COUNTER_LINES, &object), OBJECT, "in a list");
	tap_is(object.number[UID], 1000, "the user who made it");
	tap_is(object.number[PID], 42, "the process");
	tap_ok(!object_has(&object, FD), "no descriptor");
	tap_ok(!strcmp(object.command, "worker"), "its name");
	tap_is(parse(CREATOR "\n" COUNTER_LINES, &object), OBJECT, "without a name");
	tap_is(parse(CREATOR "a\\012\\012flow\\134\033[2J\n" COUNTER_LINES, &object), OBJECT,
	       "a name with newlines");
	tap_ok(!strcmp(object.command, "a\n\nflow\\\033[2J"), "is whole");
	tap_is(parse(CREATOR " flowfd-pid: 1\n" COUNTER_LINES, &object), OBJECT,
	       "a name that looks like a line");
	tap_is(object.number[PID], 42, "is none");
	tap_is(parse(CREATOR "123456789012345\n" RING_LINES WATCHED WATCH_LINES, &object),
	       OBJECT, "a ring with the longest name");
	tap_is(parse(CREATOR "1234567890123456\n" COUNTER_LINES, &object), UNKNOWN,
	       "a name that is too long");
	tap_is(parse(CREATOR "a\nflowfd-comm: b\n" COUNTER_LINES, &object), UNKNOWN,
	       "two names");
	tap_is(parse(CREATOR "worker\n", &object), UNKNOWN, "nothing but a creator");
	tap_is(parse("flowfd-uid: -1\n" COUNTER_LINES, &object), UNKNOWN, "no user");
}

/* One after the other: what is not understood takes nothing with it. */
static void test_objects(void)
{
	struct list three = { 0 };
	struct parser parser = { .list = &three };

	feed(&parser, CREATOR "a\n" COUNTER_LINES FLOW_LINES STATS_LINES);
	parser_end(&parser);
	feed(&parser, CREATOR "b\n" COUNTER_LINES "flowfd-mapped: yes\n");
	parser_end(&parser);
	feed(&parser, CREATOR "c\n" RING_LINES WATCHED WATCH_LINES);
	parser_end(&parser);
	tap_is((int)three.count, 2, "two objects");
	tap_is((int)three.unknown, 1, "and one that is not understood");
	tap_is(three.object[0].kind, COUNTER, "a counter");
	tap_is(three.object[1].kind, RING, "a ring");
	tap_ok(!object_has(&three.object[1], COUNT) && !object_has(&three.object[1], WRITES),
	       "that has nothing of the counter");
	free(three.object);
}

/* fdinfo of other files, which must not be taken for flowfd's. */
static void test_others(void)
{
	static const char *const texts[] = {
		"",
		"\n",
		FILE_LINES,
		FILE_LINES EVENTFD_LINES,
		FILE_LINES EVENTFD_LINES "eventfd-maximum: a\n",
		FILE_LINES "eventfd-count: no number\n",
		FILE_LINES "tfd:        5 events:       19 data: "
			   "               5  pos:0 ino:3b9 sdev:8\n",
		FILE_LINES WATCH_LINES,
		FILE_LINES "flowfd\n",
		FILE_LINES "clockid: 0\nticks: 0\n",
		FILE_LINES "x flowfd-ring-id: 1\n",
	};
	struct object object;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (!tap_is(parse(texts[i], &object), OTHER,
			    "another file"))
			printf("# %s", texts[i]);
}

static void test_unknown(void)
{
	static const char *const texts[] = {
		/* Incomplete. */
		EVENTFD_LINES BUCKET_LINES,
		BUCKET_LINES,
		"flowfd-ring-id: 1\n",
		RING_LINES "flowfd-token-rate: 5\n",
		COUNTER_LINES RING_LINES,
		RING_LINES,
		RING_LINES WATCHED "flowfd-ring-busy: 1\n",
		COUNTER_LINES WATCHED,
		/* Twice. */
		COUNTER_LINES "flowfd-token-rate: 1000\n",
		RING_LINES RING_LINES WATCHED,
		RING_LINES WATCHED WATCHED,
		COUNTER_LINES FLOW_LINES "flowfd-lost: 1\n",
		COUNTER_LINES STATS_LINES "flowfd-wait-ns: 1\n",
		COUNTER_LINES FLOW_LINES "flowfd-overflow: wait\n",
		COUNTER_LINES FLOW_LINES "flowfd-mapped: 1\n",
		/* Of the other kind. */
		COUNTER_LINES RING_STATS_LINES,
		RING_LINES WATCHED "flowfd-waits: 50\n",
		RING_LINES WATCHED "flowfd-mapped: 1\n",
		/* Not a number, or one that does not fit. */
		EVENTFD_LINES "eventfd-maximum: \n" BUCKET_LINES,
		EVENTFD_LINES "eventfd-maximum: -1\n" BUCKET_LINES,
		EVENTFD_LINES "eventfd-maximum: 0xa\n" BUCKET_LINES,
		EVENTFD_LINES "eventfd-maximum: A\n" BUCKET_LINES,
		EVENTFD_LINES "eventfd-maximum: a \n" BUCKET_LINES,
		EVENTFD_LINES "eventfd-maximum: 10000000000000000\n" BUCKET_LINES,
		"eventfd-count: what\neventfd-id: 1\n"
		"eventfd-semaphore: 0\neventfd-maximum: a\n" BUCKET_LINES,
		RING_LINES "flowfd-ring-watches: x\n",
		RING_LINES "flowfd-ring-posts: 1\n",
		COUNTER_LINES "flowfd-mapped: \n",
		RING_LINES "flowfd-ring-busy: x\n",
		COUNTER_LINES "flowfd-writes: none\n",
		COUNTER_LINES "flowfd-writes: \n",
		COUNTER_LINES "flowfd-writes: -1\n",
		COUNTER_LINES "flowfd-writes: 1x\n",
		COUNTER_LINES "flowfd-writes: 18446744073709551616\n",
		COUNTER_LINES "flowfd-source: nonesuch\n",
		COUNTER_LINES "flowfd-overflow: \n",
	};
	struct object object;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (!tap_is(parse(texts[i], &object), UNKNOWN,
			    "not understood"))
			printf("# %s\n", texts[i]);
}

/* Any byte changed or missing, under sanitizers. */
static void test_damage(void)
{
	static const char *const good[] = {
		FILE_LINES RING_LINES RING_STATS_LINES WATCHED WATCH_LINES,
		FILE_LINES COUNTER_LINES FLOW_LINES STATS_LINES,
	};
	char text[1024];
	struct object object;
	bool known = true;

	srand48(1);
	for (int round = 0; round < 200000; round++) {
		size_t length = strlen(good[round % 2]);

		strcpy(text, good[round % 2]);
		for (int i = 0; i <= round % 3; i++)
			text[lrand48() % length] = " 09af:\ntx-\t\x80"[lrand48() % 12];
		if (round % 5)
			text[lrand48() % (length + 1)] = '\0';
		known &= parse(text, &object) <= UNKNOWN;
		if (object.kind == COUNTER && object.known & BIT(OVERFLOW))
			known &= strlen(overflow_names[object.number[OVERFLOW]]) > 3;
	}
	tap_ok(known, "200,000 damaged texts");
}

static bool escapes(const char *text, const char *wanted)
{
	char out[ESCAPED_SIZE];

	text_escape(out, sizeof(out), text);
	if (!strcmp(out, wanted))
		return true;
	printf("# got %s\n", out);
	return false;
}

static bool is_json(const char *text, const char *wanted)
{
	char out[256] = "";
	FILE *file = fmemopen(out, sizeof(out), "w");

	if (!file)
		abort();
	text_json(file, text);
	fclose(file);
	if (!strcmp(out, wanted))
		return true;
	printf("# got %s\n", out);
	return false;
}

static void test_names(void)
{
	char longest[COMMAND_SIZE], small[8];

	tap_ok(escapes("", ""), "no name");
	tap_ok(escapes("kworker/0:1-events", "kworker/0:1-events"), "a name");
	tap_ok(escapes("a b~", "a b~"), "blank and tilde");
	tap_ok(escapes("a\nb\t\r\033[2J\177", "a\\x0ab\\x09\\x0d\\x1b[2J\\x7f"),
	       "control characters");
	tap_ok(escapes("\\x0a", "\\\\x0a"), "a backslash");
	tap_ok(escapes("\302\233\377", "\\xc2\\x9b\\xff"), "not ASCII");
	memset(longest, 1, sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	char out[ESCAPED_SIZE];

	text_escape(out, sizeof(out), longest);
	tap_is(strlen(out), 4 * (COMMAND_SIZE - 1), "the longest name fits");
	text_escape(small, sizeof(small), longest);
	tap_ok(!strcmp(small, "\\x01"), "what does not fit is left out");

	tap_ok(is_json("", "\"\""), "JSON: no name");
	tap_ok(is_json("a/b \"c\" \\", "\"a/b \\\"c\\\" \\\\\""), "JSON: quotes");
}

static bool is_duration(double ns, const char *wanted)
{
	char out[DURATION_SIZE];

	text_duration(out, ns);
	if (!strcmp(out, wanted))
		return true;
	printf("# got %s\n", out);
	return false;
}

static void test_durations(void)
{
	tap_ok(is_duration(0, "0ns"), "no time");
	tap_ok(is_duration(999, "999ns"), "nanoseconds");
	tap_ok(is_duration(999.7, "1us"), "rounded to another unit");
	tap_ok(is_duration(1500, "1.5us"), "microseconds");
	tap_ok(is_duration(2e6, "2ms"), "milliseconds");
	tap_ok(is_duration(999499999, "999ms"), "three digits");
	tap_ok(is_duration(999500000, "1s"), "a second");
	tap_ok(is_duration(36e11, "3600s"), "an hour");
	tap_ok(is_duration((double)UINT64_MAX, "18446744074s"), "the longest time");
}

static void print_remarks(const void *arg)
{
	int saved = dup(STDERR_FILENO);

	dup2(STDOUT_FILENO, STDERR_FILENO);
	list_end(arg);
	dup2(saved, STDERR_FILENO);
	close(saved);
}

static void test_remarks(void)
{
	struct list list = { 0 };

	tap_ok(list_is_complete(&list), "nothing is missing");
	tap_ok(!strcmp(output_of(print_remarks, &list), ""), "and no remark");
	list.unknown = 1;
	list.left_out = 2;
	tap_ok(!list_is_complete(&list), "something is missing");
	tap_ok(!strcmp(output_of(print_remarks, &list),
		       "flowfdctl: 1 counters or rings are not shown: flowfdctl " FLOWFD_VERSION
		       " does not match the loaded module\n"
		       "flowfdctl: 2 counters or rings are not shown: there are too many\n"),
	       "two remarks");
}

int main(void)
{
	test_counter();
	test_ring();
	test_values();
	test_list();
	test_objects();
	test_others();
	test_unknown();
	test_damage();
	test_names();
	test_durations();
	test_remarks();
	return tap_done();
}
