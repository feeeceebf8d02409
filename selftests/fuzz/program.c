// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs: make, mutate, print and read them. A line is a call: "THREAD NAME ARG ARG
 * ARG ARG", and perhaps "fail=STEP".
 */
#include "fuzz.h"

#include <string.h>

/* Numbers that a seed reproduces, with any C library: xorshift64* (Vigna, 2014). */
static __u64 state = 1;

void random_seed(__u64 seed)
{
	/* Seeds that differ by one must not begin alike, and the state must not be 0. */
	state = (seed + 1) * 0x9e3779b97f4a7c15ULL;
	if (!state)
		state = 1;
}

static __u32 random_number(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (state * 0x2545f4914f6cdd1dULL) >> 32;
}

__u32 random_below(__u32 n)
{
	return random_number() % n;
}

/* Small numbers, as calls of a program must use the same descriptors. */
static __u32 any_argument(void)
{
	switch (random_below(8)) {
	case 0:
		return random_number();
	case 1:
	case 2:
		return random_below(256);
	default:
		return random_below(12);
	}
}

static struct call any_call(int threads)
{
	struct call call = {
		.kind = kind_random(),
		.thread = random_below(threads),
		.fail = random_below(12) ? 0 : 1 + random_below(12),
	};

	for (int i = 0; i < ARGS; i++)
		call.arg[i] = any_argument();
	return call;
}

static void append(struct program *p, const char *name, __u32 a, __u32 b)
{
	p->call[p->length++] = (struct call){
		.kind = kind_find(name), .arg = { a, b },
	};
}

/* Most programs begin with a mapped ring and files, which calls need to get far. */
static void begin(struct program *p)
{
	append(p, "open", 0, 1);
	append(p, "create_ring", 0, 3);
	append(p, "map", 0, 0);
	switch (random_below(4)) {
	case 0:
		append(p, "sockets", 1, 2);
		break;
	case 1:
		append(p, "pipe", 1, 2);
		break;
	case 2:
		append(p, "eventfd", 1, 1);
		break;
	default:
		append(p, "create_counter", 1, 0);
	}
}

void program_make(struct program *p)
{
	int threads = random_below(2) ? 1 : THREADS, calls;

	p->length = 0;
	if (random_below(8))
		begin(p);
	for (calls = 2 + random_below(16); calls; calls--)
		p->call[p->length++] = any_call(threads);
}

static void insert(struct program *p, int at, const struct call *call)
{
	if (p->length == CALLS_MAX)
		return;
	memmove(&p->call[at + 1], &p->call[at],
		(p->length - at) * sizeof(*call));
	p->call[at] = *call;
	p->length++;
}

static void cut(struct program *p, int at)
{
	if (p->length < 2)
		return;
	p->length--;
	memmove(&p->call[at], &p->call[at + 1],
		(p->length - at) * sizeof(p->call[0]));
}

static void change_once(struct program *p, const struct program *other)
{
	struct call *call = &p->call[random_below(p->length)];
	struct call copy;

	switch (random_below(10)) {
	case 0:
	case 1:
	case 2:
		copy = any_call(THREADS);
		insert(p, random_below(p->length + 1), &copy);
		break;
	case 3:
		cut(p, call - p->call);
		break;
	case 4:
	case 5:
		call->arg[random_below(ARGS)] = any_argument();
		break;
	case 6:
		call->thread = random_below(THREADS);
		break;
	case 7:
		call->fail = random_below(2) ? 0 : 1 + random_below(12);
		break;
	case 8:
		copy = *call;
		copy.thread = random_below(THREADS);
		insert(p, random_below(p->length + 1), &copy);
		break;
	default:
		if (other && other->length)
			insert(p, random_below(p->length + 1),
			       &other->call[random_below(other->length)]);
	}
}

/* @other: program to copy calls from */
void program_change(struct program *p, const struct program *other)
{
	int changes = 1 + random_below(4);

	while (changes--)
		change_once(p, other);
}

void program_print(const struct program *p, FILE *f)
{
	for (int i = 0; i < p->length; i++) {
		const struct call *call = &p->call[i];

		fprintf(f, "%u %s", call->thread, kind_name(call->kind));
		for (int n = 0; n < ARGS; n++)
			fprintf(f, " %u", call->arg[n]);
		if (call->fail)
			fprintf(f, " fail=%u", call->fail);
		fputc('\n', f);
	}
}

static bool read_call(struct call *call, const char *line)
{
	char name[32];
	int kind, fields;

	*call = (struct call){ 0 };
	fields = sscanf(line, "%u %31s %u %u %u %u fail=%u", &call->thread,
			name, &call->arg[0], &call->arg[1], &call->arg[2],
			&call->arg[3], &call->fail);
	kind = fields < 6 ? -1 : kind_find(name);
	call->kind = kind;
	return kind >= 0 && call->thread < THREADS;
}

/* Skips lines that begin with #. False: a syntax error. */
bool program_read(struct program *p, FILE *f)
{
	char line[256];

	p->length = 0;
	while (fgets(line, sizeof(line), f)) {
		if (*line == '#' || *line == '\n')
			continue;
		if (p->length == CALLS_MAX ||
		    !read_call(&p->call[p->length], line))
			return false;
		p->length++;
	}
	return p->length;
}
