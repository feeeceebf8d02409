/* SPDX-License-Identifier: GPL-2.0-only */
/* Types and functions that the files of flowfdctl share. */
#ifndef FLOWFDCTL_H
#define FLOWFDCTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum kind { ANY, COUNTER, RING };

/* clang-format off */
/* The numbers of counters and rings; fields.c has their names. */
enum field {
	COUNTER_ID, RING_ID, UID, PID, FD,
	/* Of a counter. */
	COUNT, MAXIMUM, RATE, BURST, DEFERRED, SEMAPHORE, MAPPED,
	READ_MARK, WRITE_MARK, MAX_DELAY, OVERFLOW, SOURCE, SINK, WAITING,
	PRODUCED, WRITES, READS, WAKEUPS, HELD_BACK, AGAIN, WAITS, WAIT_NS, LOST, HIGHEST,
	/* Of a ring. */
	MAX_ITEMS, HEAD, TAIL, PENDING, BUSY, WATCHES, POSTS,
	PUBLISHED, COALESCED, RING_WAITS, SLEEPS,
	FIELDS,
	/* Columns of tables that are no numbers. */
	TYPE = FIELDS, COMMAND,
	COLUMNS,
};
/* clang-format on */

#define BIT(field) (UINT64_C(1) << (field))

/* Where a field is in JSON. */
enum section { TOP, FLOW, STATS };

/* How a number is read and printed. HEX: in fdinfo alone. */
enum form { DECIMAL, HEX, FLAG, NANOSECONDS, POLICY };

/**
 * struct field_info - what is known of an enum field
 * @kind: of the objects that have it
 * @section: of JSON that has it
 * @form: of the number
 * @key: in fdinfo; NULL: it is not there
 * @name: in JSON
 * @heading: of its column
 * @metric: its metric, in seconds if it is NANOSECONDS; NULL: it is none
 * @help: what that is
 */
struct field_info {
	enum kind kind;
	enum section section;
	enum form form;
	const char *key;
	const char *name;
	const char *heading;
	const char *metric;
	const char *help;
};

/* TASK_COMM_LEN of the kernel: a name and its end. */
#define COMMAND_SIZE 16

/**
 * struct object - a counter or a ring
 * @kind: which of the two
 * @known: a bit for each enum field that it has
 * @number: by enum field; 0: not known. OVERFLOW is an index of overflow_names
 * @command: name of the process that created it, or has it open; any bytes
 */
struct object {
	enum kind kind;
	uint64_t known;
	uint64_t number[FIELDS];
	char command[COMMAND_SIZE];
};

/**
 * struct list - counters and rings
 * @object: in the kernel's order, counters first; or of one process, by descriptor
 * @count: its length
 * @of_process: it is of one process: of each, the descriptor is known, and no user
 * @unknown: objects in a form that is not known
 * @left_out: objects that the output has no room for
 */
struct list {
	struct object *object;
	size_t count;
	bool of_process;
	size_t unknown;
	size_t left_out;
};

/**
 * struct parser - what was found of the object that is being read
 * @list: to which objects are added
 * @object: its numbers
 * @next: the field after the last one that was found
 * @bad: something is in a form that is not known
 */
struct parser {
	struct list *list;
	struct object object;
	unsigned int next;
	bool bad;
};

/* fields.c */
#define OVERFLOWS 4
extern const struct field_info field_infos[FIELDS];
extern const char *const overflow_names[OVERFLOWS];
bool object_has(const struct object *object, enum field field);
void object_set(struct object *object, enum field field, uint64_t number);

/* parse.c */
void parser_line(struct parser *parser, const char *line);
struct object *parser_end(struct parser *parser);

/* objects.c */
bool parser_read(struct parser *parser, int fd);
void *grow(void *array, size_t count, size_t size);
bool list_is_complete(const struct list *list);
int list_end(const struct list *list);

/* kernel.c */
#define KERNEL_LIST "/sys/kernel/debug/flowfd/objects"
const char *module_error(int error);
const char *kernel_list_error(int error);
void kernel_list(struct list *list);

/* process.c */
void process_list(struct list *list, pid_t pid);

/* text.c */
/* For a command: a byte of it can become four. */
#define ESCAPED_SIZE (4 * COMMAND_SIZE)
void text_escape(char *out, size_t size, const char *text);
void text_json(FILE *file, const char *text);
void text_command(const char *command);
#define DURATION_SIZE 32
void text_duration(char out[DURATION_SIZE], double ns);
struct argp_state;
pid_t parse_pid(struct argp_state *state, const char *text);
int parse_other(int key, char *arg, struct argp_state *state);

/* table.c */
void table_print(const struct list *list, const unsigned char *columns);

/* json.c */
void json_print(const struct list *list);

/* metrics.c */
void metrics_limit(struct list *list);
void metrics_print(const struct list *list);

/* One file for each command. */
int info_main(int argc, char **argv);
int list_main(int argc, char **argv);
int prometheus_main(int argc, char **argv); /* metrics.c */
int balance_main(int argc, char **argv);

#endif /* FLOWFDCTL_H */
