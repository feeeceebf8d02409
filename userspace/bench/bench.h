/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * flowfd-bench - private types: the table that a benchmark fills, and what benchmarks
 * share. Functions exit with err(3) if they fail.
 */
#ifndef FLOWFD_BENCH_H
#define FLOWFD_BENCH_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define NO_MAXIMUM  UINT64_MAX
#define ROUNDS_MAX  100
#define ROWS_MAX    64
#define COLUMNS_MAX 6
#define LABELS_MAX  4

/**
 * struct settings - from the command line
 * @rounds: how often everything is measured
 * @ms: how long a case takes, in milliseconds
 * @fallback: measure libflowfd without the module
 * @instructions: the clock counts instructions
 */
struct settings {
	unsigned int rounds;
	unsigned int ms;
	bool fallback;
	bool instructions;
};

extern struct settings settings;

/**
 * struct subject - a descriptor to measure
 * @flowfd: a counter of /dev/flowfd; otherwise a stock eventfd, without what follows
 * @maximum: NO_MAXIMUM, or the maximum
 * @capacity: tokens that the bucket holds
 * @rate: tokens per second; 0: no bucket
 */
struct subject {
	bool flowfd;
	uint64_t maximum;
	uint32_t capacity;
	uint32_t rate;
};

/* common.c */
uint64_t clock_now(void);
double clock_thread_ms(void);
double clock_cost(void);
void clock_sleep_until(uint64_t when);
double clock_loop(void (*loop)(void *arg, unsigned long n), void *arg);
unsigned int pair_cpus(cpu_set_t *usable);
void pair_bind(const cpu_set_t *usable, bool second);
void thread_start(pthread_t *thread, void *(*run)(void *), void *arg);
void pair_run(void *(*reader)(void *), void *(*writer)(void *), void *arg);
void pair_work_until(uint64_t when);
int subject_open(const struct subject *subject, uint64_t initial, unsigned int flags);

/**
 * struct column - one figure of a table
 * @key: its name in JSON; NULL: there is none
 * @title: its name in the text table
 * @digits: digits after the decimal point in the text table
 * @of: 0, or 1 + the number of the column of which this is the ratio to the control
 */
struct column {
	const char *key;
	const char *title;
	int digits;
	unsigned int of;
};

/** struct series - one figure of each round, in the order of rounds */
struct series {
	unsigned int count;
	double value[ROUNDS_MAX];
};

/** struct row - one line of a table: labels and figures */
struct row {
	char label[LABELS_MAX][32];
	struct series series[COLUMNS_MAX];
};

/**
 * struct table - the result of a benchmark
 * @note: what figures are, and a remark on the conditions
 */
struct table {
	const struct bench *bench;
	char note[64];
	unsigned int rows;
	struct row row[ROWS_MAX];
};

struct channel;

/**
 * struct bench - a benchmark: cases that every round measures
 * @labels: titles of the label columns; NULL: there is none
 * @columns: its figures
 * @control: labels of the row with which a row is compared; NULL: as those of the row
 * @unit: what figures are; NULL: nanoseconds or instructions
 * @cases: number of cases
 * @two_threads: reader and writer need a CPU each
 * @channels: of the cases, in turn; NULL: none can be measured without the module
 * @count: number of @channels
 * @measure: runs a case once and adds its figures to the table
 */
struct bench {
	const char *name;
	const char *title;
	const char *labels[LABELS_MAX + 1];
	struct column columns[COLUMNS_MAX + 1];
	const char *control[LABELS_MAX];
	const char *unit;
	unsigned int cases;
	bool two_threads;
	const struct channel *const *channels;
	unsigned int count;
	void (*measure)(struct table *table, unsigned int number);
};

/* cost.c, ring.c, memory.c, signal.c, accept.c, flow.c */
extern const struct bench bench_cost, bench_ring, bench_control, bench_others,
	bench_memory, bench_pingpong, bench_processes, bench_accept, bench_fanin,
	bench_loop, bench_burst, bench_latency, bench_bucket;

/* Adds @value to a column of the row whose labels follow. */
#define table_add(table, column, value, ...)                                           \
	series_add(&table_row(table, (const char *[]){ __VA_ARGS__ })->series[column], \
		   value)

/* table.c */
struct row *table_find(struct table *table, const char *const *labels);
struct row *table_row(struct table *table, const char *const *labels);
void series_add(struct series *series, double value);
double series_median(const struct series *series);
double samples_quantile(double *values, size_t count, unsigned int permille);
void table_ratios(struct table *table);
void table_print(const struct table *table, FILE *file);

/* goals.c */
bool goals_print(struct table *table, FILE *file);

/* result.c */
bool result_emulated(void);
void result_begin(FILE *file, char **argv);
void result_add(FILE *file, const struct table *table);
void result_end(FILE *file);

#endif /* FLOWFD_BENCH_H */
