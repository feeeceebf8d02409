/* SPDX-License-Identifier: GPL-2.0-only */
/* Types and functions that the files of flowfdctl share. */
#ifndef FLOWFDCTL_H
#define FLOWFDCTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum kind { COUNTER, RING };

/* clang-format off */
/* What older modules lack in fdinfo is an enum value; values.c has the names. */
enum value {
	/* Policies and bridges of a counter; its statistics. */
	READ_MARK, WRITE_MARK, MAX_DELAY, OVERFLOW, SOURCE, SINK, WAITING,
	PRODUCED, WRITES, READS, WAKEUPS, HELD_BACK, AGAIN, WAITS, WAIT_NS, LOST, HIGHEST,
	COUNTER_VALUES,
	/* Statistics of a ring. */
	PUBLISHED = COUNTER_VALUES, COALESCED, RING_WAITS, SLEEPS,
	VALUES,
};

/* Columns of tables, besides the enum values; columns.c has the names. */
enum column {
	NUMBER = VALUES, UID, PID, FD,
	COUNT, MAXIMUM, RATE, BURST, DEFERRED, TYPE,
	WATCHES, POSTS, MAX_ITEMS, HEAD, TAIL, PENDING,
	COMMAND,
	COLUMNS,
};
/* clang-format on */

/* What a value is. TOTAL grows, PEAK is the highest of a number until now. */
enum value_role { POLICY, BRIDGE, TOTAL, PEAK };

/**
 * struct value_info - what is known of an enum value
 * @kind: of the objects that have it
 * @role: what it is
 * @name: in fdinfo
 * @heading: of its column
 * @field: its name in JSON, and in metrics but for units
 * @help: what it is, for metrics; NULL: it is none
 */
struct value_info {
	enum kind kind;
	enum value_role role;
	const char *name;
	const char *heading;
	const char *field;
	const char *help;
};

/* TASK_COMM_LEN of the kernel: a name and its end. */
#define COMMAND_SIZE 16

/**
 * struct object - a counter or a ring
 * @id: the same in every descriptor of one object, and unique within its kind
 * @kind: which of the two
 * @known: a bit for each enum value that it has
 * @uid: user of the process that created it, in the kernel's list
 * @pid: that process; in the list of a process, this one
 * @fd: descriptor in that process; -1: in the kernel's list
 * @command: name of the process; any bytes
 * @count: of a counter, like the following members up to @mapped
 * @maximum: UINT64_MAX: none
 * @capacity: tokens that the bucket holds
 * @rate: tokens per second; 0: no bucket
 * @semaphore: reads take 1
 * @deferred: a wakeup is deferred until the next token
 * @mapped: its count is in memory that programs map
 * @busy: of a ring, like the following members: it was locked, so its watches are unknown
 * @max_items: its size
 * @head: entries taken, modulo 2^32, as its consumer stored it
 * @tail: entries published, modulo 2^32
 * @watches: how many files it watches
 * @posts: how many items without a file it has
 * @values: see object_value()
 */
struct object {
	uint64_t id;
	enum kind kind;
	uint32_t known;
	uid_t uid;
	pid_t pid;
	int fd;
	char command[COMMAND_SIZE];
	uint64_t count;
	uint64_t maximum;
	uint32_t capacity;
	uint32_t rate;
	bool semaphore;
	bool deferred;
	bool mapped;
	bool busy;
	uint32_t max_items;
	uint32_t head;
	uint32_t tail;
	uint32_t watches;
	uint32_t posts;
	uint64_t values[COUNTER_VALUES];
};

/**
 * struct list - counters and rings
 * @object: in the kernel's order, counters first; or of one process, by descriptor
 * @count: its length
 * @unknown: objects in a form that is not known
 * @left_out: objects that the output has no room for
 */
struct list {
	struct object *object;
	size_t count;
	unsigned int unknown;
	size_t left_out;
};

/* values.c */
extern const struct value_info value_infos[VALUES];
bool value_is_statistic(enum value value);
uint64_t *object_value(struct object *object, enum value value);
bool object_has(const struct object *object, enum value value, uint64_t *number);
uint32_t object_pending(const struct object *ring);
const char *overflow_name(uint64_t overflow);
bool overflow_from_name(const char *name, uint64_t *overflow);

/* parse.c */
struct parser;
struct parser *parser_new(struct list *list);
void parser_line(struct parser *parser, const char *line);
struct object *parser_end(struct parser *parser);
void parser_free(struct parser *parser);

/* objects.c */
#define EXIT_INCOMPLETE 2
uint64_t now_ns(void);
void *grow(void *array, size_t count, size_t size);
void list_free(struct list *list);
bool list_is_complete(const struct list *list);
void list_remark(const struct list *list);

/* kernel.c */
#define MODULE_VERSION_SIZE 64
bool module_version(char version[MODULE_VERSION_SIZE]);
const char *module_error(int error);
const char *kernel_list_error(int error);
int kernel_list_open(void);
void kernel_list(struct list *list);

/* process.c */
void process_list(struct list *list, pid_t pid);

/* text.c */
/* For a command: a byte of it can become four. */
#define ESCAPED_SIZE (4 * COMMAND_SIZE)
void text_escape(char *out, size_t size, const char *text);
void text_json(FILE *file, const char *text);
#define DURATION_SIZE 32
void text_duration(char out[DURATION_SIZE], double ns);
struct argp_state;
pid_t parse_pid(struct argp_state *state, const char *text);
double parse_interval(struct argp_state *state, const char *text, double max);
int parse_other(int key, char *arg, struct argp_state *state);

/* Most columns of a table. */
#define COLUMNS_MAX 32

/**
 * struct table - text in columns
 * @headings: of the columns, NULL at the end; the last column is not aligned
 * @text: row after row of cells, each with its '\0'
 * @length: of @text
 * @capacity: of the memory at @text
 * @cells: how many cells there are
 */
struct table {
	const char *const *headings;
	char *text;
	size_t length;
	size_t capacity;
	size_t cells;
};

/* table.c */
void table_add(struct table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void table_print(const struct table *table);
void table_free(struct table *table);

/* columns.c */
const char *column_name(enum kind kind, unsigned int column);
bool column_number(const struct object *object, unsigned int column, uint64_t *number);
void column_add(struct table *table, const struct object *object, unsigned int column);

/* json.c */
void json_object(const struct object *object);
void json_list(const struct list *list);
const char *json_boolean(bool value);

/* metrics.c */
size_t metrics_limit(struct object *objects, size_t count);
void metrics_print(const struct list *list, size_t count);

/* One file for each command. */
int info_main(int argc, char **argv);
int list_main(int argc, char **argv);
int prometheus_main(int argc, char **argv); /* metrics.c */
int balance_main(int argc, char **argv);

#endif /* FLOWFDCTL_H */
