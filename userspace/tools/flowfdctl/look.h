/* SPDX-License-Identifier: GPL-2.0-only */
/* What is needed to look at processes; scan.c has the result. */
#ifndef LOOK_H
#define LOOK_H

#include <dirent.h>
#include <fcntl.h>

#include "flowfdctl.h"

/* What one user may put into a scan is bounded, so that others find room. */
struct account {
	size_t descriptors;
	size_t watches;
};

/**
 * struct process - a process, and how far the look at it has come
 * @pid: its number
 * @uid: its effective user
 * @asked: of root's: it is known whether root is its real user, too
 * @hidden: something of it may not be read
 * @threads: all of its own table was looked at, now it is its threads' turn
 * @descriptor: where to go on in a directory of descriptors
 * @thread: where to go on in the directory of threads
 */
struct process {
	pid_t pid;
	uid_t uid;
	bool asked;
	bool hidden;
	bool threads;
	long descriptor;
	long thread;
};

/**
 * struct user - a user's processes
 * @account: what was stored
 * @first: the first of them
 * @count: how many are not finished, from there on
 * @next: of these the one to be looked at next
 * @spent: time that was given to them
 * @kept: how many of them the kernel did not answer about
 */
struct user {
	struct account account;
	struct process *first;
	size_t count;
	size_t next;
	uint64_t spent;
	unsigned int kept;
};

/* Where /proc has more, the rest is not looked at. */
#define PROCESSES_MAX 262144

/* So many processes that look may be left behind. */
#define LEFT_MAX 8

/**
 * struct view - a look at all processes, which another process can go on with
 * @scan: what was found
 * @watches: files that rings watch were asked for
 * @asked: so was the kernel for the module and its device
 * @device: number of flowfd's device; 0: there is none
 * @end: of the time for all of it
 * @proc: the directory
 * @error: why that could not be read; there is no standard error to say it
 * @steps: changes as long as something is done
 * @stat: of the process that looks, its descriptor of its own /proc/PID/stat
 * @current: number of the process that is being looked at, or of enum stuck_at
 * @turn: the user whose turn it is; NULL: the processes are not known yet
 * @users: length of @user
 * @ring: ids of the rings whose watches were listed
 * @process: by user
 * @user: of these processes; the last one has root's that others started
 */
struct view {
	struct scan *scan;
	bool watches;
	bool asked;
	dev_t device;
	uint64_t end;
	int proc;
	int error;
	volatile unsigned long steps;
	int stat;
	pid_t current;
	struct user *turn;
	size_t users;
	uint64_t ring[2 * DESCRIPTORS_MAX];
	struct process process[PROCESSES_MAX];
	struct user user[PROCESSES_MAX + 1];
};

/**
 * struct place - a table of descriptors
 * @view: what is to be looked for
 * @process: whose it is
 * @account: of its user
 * @directory: of the process, or of a thread of it
 * @id: its number
 * @command: its name, empty until it is needed
 */
struct place {
	struct view *view;
	struct process *process;
	struct account *account;
	int directory;
	pid_t id;
	char command[COMMAND_SIZE];
};

/* processes.c */
void processes_look(struct view *view);
bool processes_skip(struct view *view);
uint64_t now_ns(void);

/* left.c */
void left_add(pid_t child, pid_t at);
void left_end(void);
unsigned int left_count(void);
pid_t left_at(void);
bool left_has(pid_t at);

/* process.c */
void process_failed(struct view *view, struct process *process);
bool process_is_setuid(struct view *view, const struct process *process);
bool process_look(struct view *view, struct process *process,
		  struct account *account, uint64_t until);
const char *next_number(DIR *directory);

/* descriptor.c */
bool link_is_made_by_flowfd(const char *link);
void descriptor_look(struct place *place, int links, const char *number);

/* read.c */
bool text_read_on(int fd, char *text, size_t size);
bool file_read(int directory, const char *name, char *text, size_t size);

#endif /* LOOK_H */
