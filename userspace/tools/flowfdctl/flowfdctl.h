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

/**
 * struct watch - a file that a ring watches
 * @fd: descriptor with which it was added
 * @events: EPOLL* bits, without EPOLLET; 0: a one-shot watch that is not armed
 * @data: returned with its events
 * @pinned: the ring keeps the file open
 */
struct watch {
	int fd;
	uint32_t events;
	uint64_t data;
	bool pinned;
};

/* What fdinfo has beside the rest, unless the module is older; values.c has the names. */
enum value {
	/* Policies and bridges of a counter. */
	READ_MARK,
	WRITE_MARK,
	MAX_DELAY,
	OVERFLOW,
	SOURCE,
	SINK,
	WAITING,
	/* Statistics of a counter. */
	PRODUCED,
	WRITES,
	READS,
	WAKEUPS,
	HELD_BACK,
	AGAIN,
	WAITS,
	WAIT_NS,
	LOST,
	HIGHEST,
	/* Statistics of a ring. */
	PUBLISHED,
	COALESCED,
	RING_WAITS,
	SLEEPS,
	MOST_PENDING,
	VALUES,
};

/* A bit for each enum value that fdinfo had. */
typedef uint32_t value_set;

/* What a value is. TOTAL grows, PEAK is the highest of a number until now. */
enum value_role { POLICY, BRIDGE, TOTAL, PEAK };

/**
 * struct value_info - what is known of an enum value
 * @kind: of the objects that have it
 * @role: what it is
 * @name: in fdinfo, behind "flowfd-" or "flowfd-ring-"
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

/**
 * struct object - a counter or a ring, as fdinfo shows it
 * @kind: which of the two
 * @id: the same in every descriptor of one object, and unique within its kind
 * @count: of a counter, like the following members up to @mapped
 * @maximum: UINT64_MAX: none
 * @semaphore: reads take 1
 * @capacity: tokens that the bucket holds
 * @rate: tokens per second; 0: no bucket
 * @deferred: a wakeup is deferred until the next token
 * @mapped: its count is in memory that programs map
 * @max_items: of a ring, like the following members
 * @head: entries taken, modulo 2^32, as its consumer stored it
 * @tail: entries published, modulo 2^32
 * @busy: the ring was locked, so its watches are unknown
 * @watches: how many files it watches
 * @posts: how many items without a file it has
 * @listed: length of @watch
 * @watch: the first of its watches; the caller owns the array
 * @known: which of @value there are
 * @value: by enum value
 */
struct object {
	enum kind kind;
	uint64_t id;
	uint64_t count;
	uint64_t maximum;
	bool semaphore;
	uint32_t capacity;
	uint32_t rate;
	bool deferred;
	bool mapped;
	uint32_t max_items;
	uint32_t head;
	uint32_t tail;
	bool busy;
	uint32_t watches;
	uint32_t posts;
	uint32_t listed;
	struct watch *watch;
	value_set known;
	uint64_t value[VALUES];
};

/* values.c */
extern const struct value_info value_infos[VALUES];
bool value_is_statistic(enum value value);
bool value_is_known(const struct object *object, enum value value);
const char *overflow_name(uint64_t overflow);
bool overflow_from_name(const char *name, size_t length, uint64_t *overflow);

/* fdinfo.c */
enum fdinfo { FDINFO_OTHER, FDINFO_OBJECT, FDINFO_UNKNOWN };
enum fdinfo fdinfo_parse(const char *text, struct object *object, struct watch *watch,
			 size_t room);
bool fdinfo_is_cut(const char *text, size_t size);
bool fdinfo_eventfd(const char *text, uint64_t *id);
uint32_t object_pending(const struct object *object);

/* Longest name in /proc/PID/comm, including those of kernel threads, in bytes. */
#define COMMAND_SIZE 80

/**
 * struct descriptor - a descriptor of a process
 * @pid: the process
 * @fd: the descriptor
 * @uid: user of the process; (uid_t)-1: root, but another user started it
 * @command: name of the process
 * @time: when @object was read, as now_ns()
 * @object: what it refers to
 */
struct descriptor {
	pid_t pid;
	int fd;
	uid_t uid;
	char command[COMMAND_SIZE];
	uint64_t time;
	struct object object;
};

/**
 * struct eventfd - a descriptor of an eventfd that the kernel made
 * @pid: the process
 * @fd: the descriptor
 * @command: name of the process
 * @id: the same in every descriptor of one eventfd, and in a counter with a bridge
 */
struct eventfd {
	pid_t pid;
	int fd;
	char command[COMMAND_SIZE];
	uint64_t id;
};

/* Room in a scan; this bounds the memory of the program. */
#define DESCRIPTORS_MAX 32768
#define WATCHES_MAX	65536
#define EVENTFDS_MAX	32768

/*
 * Places other than a process where the kernel may not answer. A child at its start closes
 * the files of its caller.
 */
enum stuck_at { AT_PROC = 0, AT_MODULE = -1, AT_SLOTS = -2, AT_START = -3 };

/* The message about the start of a child process, but for its name. */
#define START_TEXT \
	"did not start: it had no processor, or a file of the caller could not be closed"

/* Which child processes of root's calls there are. */
#define SLOTS_FILE "/run/flowfdctl"

/**
 * struct crowd - the child processes of all calls, if they are too many for another one
 * @all: how many there are; 0: not too many
 * @blocked: how many of these wait for an answer of the kernel
 * @one: process ID of one of them; 0: not known
 * @uncounted: an error number, if root's are not counted; NOT_ROOTS: the file is not its own
 */
struct crowd {
	unsigned int all;
	unsigned int blocked;
	pid_t one;
	int uncounted;
};

#define NOT_ROOTS -1

/**
 * struct scan - every counter and every ring, at one time
 * @count: length of @descriptor
 * @watches: length of @watch
 * @eventfds: length of @eventfd
 * @processes: how many processes were found
 * @finished: how many of them were inspected completely, or skipped
 * @too_many: there are more processes
 * @ended: of those found last, processes that ended before they were inspected
 * @hidden: processes that this user may not inspect
 * @unread: descriptors and processes that could not be read
 * @unread_errno: errno of the last of them
 * @unknown: descriptors of flowfd with fdinfo in an unknown form
 * @no_room: descriptors that did not fit in @descriptor or @eventfd
 * @watches_left: watches that are not in @watch, if watches were asked for
 * @crowd: why nothing, or nothing more, was inspected
 * @stuck: how often the kernel did not answer
 * @stuck_at: the process that it did not answer about last, or an enum stuck_at
 * @no_module: flowfd is not loaded
 * @descriptor: sorted by process and descriptor
 * @watch: watches of the rings, if they were asked for
 * @eventfd: all eventfds, if they were asked for; sorted by @id
 */
struct scan {
	size_t count;
	size_t watches;
	size_t eventfds;
	unsigned int processes;
	unsigned int finished;
	bool too_many;
	unsigned int ended;
	unsigned int hidden;
	unsigned int unread;
	int unread_errno;
	unsigned int unknown;
	unsigned int no_room;
	uint64_t watches_left;
	struct crowd crowd;
	unsigned int stuck;
	pid_t stuck_at;
	bool no_module;
	struct descriptor descriptor[DESCRIPTORS_MAX];
	struct watch watch[WATCHES_MAX];
	struct eventfd eventfd[EVENTFDS_MAX];
};

/* What else a scan has: watches of rings, eventfds. */
#define SCAN_WATCHES  (1U << 0)
#define SCAN_EVENTFDS (1U << 1)

/* descriptor.c */
bool has_room(size_t all, size_t own, size_t max);

/* scan.c */
struct scan *scan_all(unsigned int also);
void scan_free(struct scan *scan);

/**
 * struct line - a counter or ring, whichever processes have it open
 * @descriptor: the first of its descriptors
 * @descriptors: how many it has
 */
struct line {
	const struct descriptor *descriptor;
	unsigned int descriptors;
};

/* lines.c */
struct line *lines_of(const struct scan *scan, size_t *count);
int line_compare(const struct line *a, const struct line *b);

/* processes.c */
uint64_t now_ns(void);

/* remarks.c */
#define EXIT_INCOMPLETE 2
bool scan_is_complete(const struct scan *scan);
void crowd_print(const struct crowd *crowd, FILE *file, const char *prefix);
void crowd_warn(const struct crowd *crowd);
size_t scan_remark(const struct scan *scan, FILE *file, const char *prefix);

/* module.c */
#define MODULE_VERSION_SIZE 64
bool module_version(char version[MODULE_VERSION_SIZE]);
const char *module_error(int error);
void need_module(const struct scan *scan);

/* text.c */
#define EVENTS_SIZE 128
/* For a command: a byte of it can become four. */
#define ESCAPED_SIZE (4 * COMMAND_SIZE)
void text_escape(char *out, size_t size, const char *text);
void text_json(FILE *file, const char *text);
void text_label(FILE *file, const char *text);
void text_events(char out[EVENTS_SIZE], uint32_t events);
#define DURATION_SIZE 32
void text_duration(char out[DURATION_SIZE], double ns);

/* Most columns of a table. */
#define COLUMNS_MAX 32

/**
 * struct table - text in columns
 * @headings: of the columns, NULL at the end; the last column is not aligned
 * @cells: row after row
 * @count: how many cells there are
 * @capacity: how many cells fit into @cells
 */
struct table {
	const char *const *headings;
	char **cells;
	size_t count;
	size_t capacity;
};

/* table.c */
void table_add(struct table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
size_t table_rows(const struct table *table);
void table_print(const struct table *table, size_t rows, int width);
void table_free(struct table *table);

/* json.c */
void json_object(const struct descriptor *descriptor, bool watches);
void json_scan(const struct scan *scan);
const char *json_boolean(bool value);

/* metrics.c */
size_t metrics_limit(struct line *lines, size_t count);
void metrics_print(const struct scan *scan, const struct line *lines, size_t count);

/* main.c */
struct argp_state;
int parse_other(int key, char *arg, struct argp_state *state);

/**
 * struct target - a descriptor as users name it, PID:FD
 * @pid: process or thread
 * @fd: its descriptor
 */
struct target {
	pid_t pid;
	int fd;
};

/* connect.c */
int connect_targets(const struct target *counter, const struct target *eventfd,
		    unsigned int flags);

/* One file for each command. */
int bridge_main(int argc, char **argv);
int info_main(int argc, char **argv);
int list_main(int argc, char **argv);
int top_main(int argc, char **argv);
int prometheus_main(int argc, char **argv);

#endif /* FLOWFDCTL_H */
