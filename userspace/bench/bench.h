/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * flowfd-bench - private types: subjects, figures and tables, and the interface between
 * main.c and the benchmarks. Functions exit with err(3) if they fail.
 */
#ifndef FLOWFD_BENCH_H
#define FLOWFD_BENCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#define NO_MAXIMUM	UINT64_MAX
#define ROUNDS_MAX	100
#define ROWS_MAX	64
#define COLUMNS_MAX	9
#define LABELS_MAX	4
#define VERDICTS_MAX	16

/* clock.c */
uint64_t clock_now(void);
double clock_thread_ms(void);
double clock_other_thread_ms(pthread_t thread);
void clock_sleep_until(uint64_t when);

/**
 * struct subject - a descriptor to measure
 * @flowfd: a counter of /dev/flowfd; otherwise a stock eventfd, without what follows
 * @mapped: a counter in memory; each edge-triggered poller takes after an edge
 * @maximum: NO_MAXIMUM, or the maximum
 * @capacity: tokens that the bucket holds
 * @rate: tokens per second; 0: no bucket
 * @read_mark: count at which readers are woken; 0: none
 * @max_delay: ns after which they are woken in any case; 0: never
 * @overflow: FLOWFD_OVERFLOW_*
 */
struct subject {
	bool flowfd;
	bool mapped;
	uint64_t maximum;
	uint32_t capacity;
	uint32_t rate;
	uint64_t read_mark;
	uint64_t max_delay;
	uint32_t overflow;
};

/* subject.c */
int subject_open(const struct subject *subject, uint64_t initial,
		 unsigned int flags);
const char *subject_name(const struct subject *subject);
const char *subject_maximum(const struct subject *subject, char text[24]);

/**
 * struct pair - a reader and a writer thread, each on its own CPU if there are two
 */
struct pair {
	pthread_t reader;
	pthread_t writer;
};

/* pair.c */
unsigned int pair_cpus(void);
void pair_start(struct pair *pair, void *(*reader)(void *),
		void *(*writer)(void *), void *arg);
void pair_work_until(uint64_t when);

/**
 * struct series - one figure of each round, in the order of rounds
 */
struct series {
	unsigned int count;
	double value[ROUNDS_MAX];
};

/* series.c */
void series_add(struct series *series, double value);
double series_median(const struct series *series);
double series_min(const struct series *series);
double series_max(const struct series *series);

/**
 * struct samples - single times of all rounds, in microseconds
 */
struct samples {
	double *us;
	size_t count;
};

/* samples.c */
double samples_median(double *values, size_t count);
void samples_add(struct samples *samples, double *us, size_t count);
json_t *samples_distribution(struct samples *samples);

/**
 * struct column - one figure of a table
 * @key: its name in JSON; NULL ends an array of columns
 * @title: its name in the text table
 * @digits: digits after the decimal point in the text table
 * @spread: whether the text table shows minimum and maximum, too
 */
struct column {
	const char *key;
	const char *title;
	int digits;
	bool spread;
};

/**
 * struct row - one line of a table: labels and figures
 * @distribution: the samples behind the figures, as JSON, or NULL
 */
struct row {
	char label[LABELS_MAX][24];
	struct series series[COLUMNS_MAX];
	json_t *distribution;
};

/**
 * struct verdict - an effect that a table shows, in one line
 * @text: the effect in words
 * @value: the effect as a number
 * @goal: @value is compared with it; no goal if @relation is NULL
 * @relation: "<=" or ">="
 */
struct verdict {
	char text[160];
	double value;
	double goal;
	const char *relation;
};

/**
 * struct table - the result of one benchmark
 * @labels: titles of the label columns, ended by NULL
 * @columns: ended by a NULL key
 * @note: a remark on the conditions, or NULL
 */
struct table {
	const char *name;
	const char *title;
	const char *const *labels;
	const struct column *columns;
	const char *note;
	unsigned int rows;
	struct row *row[ROWS_MAX];
	unsigned int verdicts;
	struct verdict verdict[VERDICTS_MAX];
};

/* table.c */
struct row *table_row(struct table *table, const char *const *labels);
struct row *table_find(const struct table *table, const char *const *labels);
void row_ratios(struct row *row, const struct row *control, unsigned int from,
		unsigned int to);
void table_ratios(struct table *table, const struct row *control, unsigned int from,
		  unsigned int to);
struct verdict *table_verdict(struct table *table, double value,
			      const char *relation, double goal,
			      const char *format, ...)
	__attribute__((format(printf, 5, 6)));
bool verdict_met(const struct verdict *verdict);
void table_print(const struct table *table, FILE *file);
void table_free(struct table *table);

/**
 * struct settings - from the command line
 * @rounds: how often everything is measured
 * @burst_ms: length of each case of the burst benchmark, in milliseconds
 * @bucket_ms: length of each case of the bucket and batch benchmarks, in milliseconds
 * @iterations: of each loop of the cost benchmark
 * @only: NULL, or "eventfd" or "flowfd"
 * @instructions: the clock counts instructions
 */
struct settings {
	unsigned int rounds;
	unsigned int burst_ms;
	unsigned int bucket_ms;
	unsigned long iterations;
	const char *only;
	bool instructions;
};

/**
 * struct bench - a benchmark: cases that every round measures
 * @labels: titles of the table's label columns
 * @columns: figures of its table
 * @cases: number of cases
 * @two_threads: reader and writer need a CPU each
 * @subject: returns the subject of a case; NULL if it is neither eventfd nor flowfd
 * @measure: runs a case once and adds its figures to the table
 * @conclude: adds the verdicts, after the last round
 */
struct bench {
	const char *name;
	const char *title;
	const char *const *labels;
	const struct column *columns;
	unsigned int cases;
	bool two_threads;
	const struct subject *(*subject)(unsigned int number);
	void (*measure)(const struct settings *settings, struct table *table,
			unsigned int number);
	void (*conclude)(const struct settings *settings, struct table *table);
};

extern const struct bench bench_cost;
extern const struct bench bench_ring;
extern const struct bench bench_control;
extern const struct bench bench_mark;
extern const struct bench bench_memory;
extern const struct bench bench_post;
extern const struct bench bench_signal;
extern const struct bench bench_wakeup;
extern const struct bench bench_producers;
extern const struct bench bench_creators;
extern const struct bench bench_burst;
extern const struct bench bench_latency;
extern const struct bench bench_coalesce;
extern const struct bench bench_bucket;
extern const struct bench bench_batch;
extern const struct bench bench_overflow;
extern const struct bench bench_contend;
extern const struct bench bench_pingpong;
extern const struct bench bench_fanin;
extern const struct bench bench_loop;

/* result.c */
json_t *result_new(const struct settings *settings, char **argv);
void result_add(json_t *result, const struct table *table);

#endif /* FLOWFD_BENCH_H */
