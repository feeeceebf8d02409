/* SPDX-License-Identifier: GPL-2.0-only */
/* Inspecting processes, in the child process of scan.c. */
#ifndef LOOK_H
#define LOOK_H

#include <dirent.h>
#include <fcntl.h>

#include "flowfdctl.h"

/* How much of a scan one user takes; bounded, so that others have room. */
struct account {
	size_t descriptors;
	size_t watches;
	size_t eventfds;
};

/**
 * struct process - a process, and how far its inspection has come
 * @pid: its process ID
 * @uid: its effective user
 * @asked: its real user was checked; only for processes of root
 * @hidden: a part of it may not be read
 * @threads: its own table is done, those of its threads are next
 * @descriptor: position in the directory of descriptors of @thread, or of the process
 * @position: position of @thread in the directory of threads
 * @thread: ID of the last thread that was looked at; 0: none
 * @table: ID of the last thread or process whose table was inspected
 */
struct process {
	pid_t pid;
	uid_t uid;
	bool asked;
	bool hidden;
	bool threads;
	long descriptor;
	long position;
	pid_t thread;
	pid_t table;
};

/**
 * struct user - a user's processes
 * @uid: the user
 * @account: how much was stored
 * @first: array of the processes that are not finished
 * @count: its length
 * @next: index of the process to inspect next
 * @spent: time that was spent on them, in nanoseconds
 * @kept: how many processes were skipped because the kernel did not answer
 */
struct user {
	uid_t uid;
	struct account account;
	struct process *first;
	size_t count;
	size_t next;
	uint64_t spent;
	unsigned int kept;
};

/* If /proc has more processes, the rest is ignored. */
#define PROCESSES_MAX 262144

/* A child without progress in this time is blocked, unless it did not get the CPU. */
#define STALL_NS 1000000000ULL
/* How often progress is checked. */
#define CHECK_NS 100000000ULL
/* Time to wait for a slot. */
#define SLOT_NS 5000000000ULL

/* Above all process IDs, as in PID_MAX_LIMIT of the kernel. */
#define PIDS_MAX 4194304

/* At most so many child processes are left behind. */
#define LEFT_MAX 8

/**
 * struct view - state of a scan, with which another child process can continue
 * @scan: results
 * @also: SCAN_* bits
 * @asked: the module and its device were looked up, or must be skipped
 * @device: device number of flowfd; 0: there is none
 * @end: when to stop, as now_ns()
 * @waited: time for which child processes waited for slots, in nanoseconds
 * @proc: descriptor of /proc
 * @error: errno of reading /proc or taking a slot, for the parent to print
 * @steps: changes as long as the child makes progress
 * @stat: descriptor of the child for its own /proc/PID/stat
 * @current: ID of the process that is being inspected, or an enum stuck_at
 * @turn: the user whose turn it is; NULL: the processes are not known yet
 * @users: length of @user
 * @ring: IDs of the rings whose watches were read
 * @found: a bit for each process ID that was found
 * @process: the processes that were found last, by user
 * @user: users by user ID; the last has root's processes that other users started
 */
struct view {
	struct scan *scan;
	unsigned int also;
	bool asked;
	dev_t device;
	uint64_t end;
	uint64_t waited;
	int proc;
	int error;
	volatile unsigned long steps;
	int stat;
	pid_t current;
	struct user *turn;
	size_t users;
	uint64_t ring[2 * DESCRIPTORS_MAX];
	uint8_t found[PIDS_MAX / 8];
	struct process process[PROCESSES_MAX];
	struct user user[PROCESSES_MAX + 1];
};

/**
 * struct place - a table of descriptors
 * @view: the scan
 * @process: the process that has it
 * @account: of its user
 * @directory: descriptor of the process's directory in /proc, or of a thread's
 * @id: ID of that process or thread
 * @command: name of the process, "" until it is needed
 * @time: when the last descriptor was read, as now_ns()
 */
struct place {
	struct view *view;
	struct process *process;
	struct account *account;
	int directory;
	pid_t id;
	char command[COMMAND_SIZE];
	uint64_t time;
};

/* processes.c */
void processes_look(struct view *view);
void processes_at(struct view *view, pid_t at);
bool processes_skip(struct view *view);

/* scan.c */
void child_begin(pid_t parent);
bool child_can_run(int handle, int stat);

/* How many child processes of all calls may inspect processes, and make bridges. */
#define SCAN_SLOTS   12
#define BRIDGE_SLOTS 4

enum slot_use { FOR_SCAN, FOR_BRIDGE };

/* slots.c */
int slot_take(enum slot_use use, uint64_t until, volatile unsigned long *steps,
	      struct crowd *crowd);
void slot_at(pid_t at, uint64_t until);
void slot_end(void);
bool slots_have(pid_t at);

/* stops.c */
void stops_note(void);
uint64_t stops_lasted(uint64_t wanted, uint64_t now);

/* left.c */
void left_add(pid_t child, pid_t at);
void left_end(void);
unsigned int left_count(void);
pid_t left_at(void);
bool left_has(pid_t at);

/* process.c */
void process_missed(struct view *view, struct process *process);
void process_failed(struct view *view, struct process *process);
bool process_is_setuid(struct view *view, const struct process *process);
bool process_look(struct view *view, struct process *process, struct account *account,
		  uint64_t until);
const char *next_number(DIR *directory);

/* descriptor.c */
bool link_is_made_by_flowfd(const char *link);
bool link_is_eventfd(const char *link);
bool is_device(dev_t device, int directory, const char *name);
void descriptor_look(struct place *place, int links, const char *number);

/* read.c */
bool text_read_on(int fd, char *text, size_t size);
bool file_read(int directory, const char *name, char *text, size_t size);

#endif /* LOOK_H */
