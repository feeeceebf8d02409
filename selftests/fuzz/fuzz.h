/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The interfaces between the files of the fuzzer of /dev/flowfd. A program is a list of
 * calls, each a name and a few numbers, for up to three threads. main.c makes programs
 * and runs them. Those that reach code of the module which none reached before are kept
 * in a corpus and mutated.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <linux/types.h>

#define THREADS 3
#define CALLS_MAX 32
#define ARGS 4

struct call {
	unsigned int kind;
	unsigned int thread;
	unsigned int fail;	/* the step that fails; 0: none */
	__u32 arg[ARGS];
};

struct program {
	int length;
	struct call call[CALLS_MAX];
};

/* kinds.c */
unsigned int kind_random(void);
const char *kind_name(unsigned int kind);
int kind_find(const char *name);
void kind_open(void);
void kind_init(void);
void kind_call(const struct call *call);

/* program.c */
void random_seed(__u64 seed);
__u32 random_below(__u32 n);
void program_make(struct program *p);
void program_change(struct program *p, const struct program *other);
void program_print(const struct program *p, FILE *f);
bool program_read(struct program *p, FILE *f);

/* run.c: NULL, or the reason why the program failed */
const char *run_program(const struct program *p);
const char *run_settled(void);

/* cover.c */
bool cover_open(void);
void cover_begin(unsigned int thread);
void cover_end(unsigned int thread);
void cover_forget(void);
int cover_take(void);
int cover_total(void);

/* log.c: NULL, or a report of the kernel since the last look */
bool log_open(const char *splats);
const char *log_complaint(void);

#endif /* FUZZ_H */
