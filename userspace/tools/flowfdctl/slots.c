// SPDX-License-Identifier: GPL-2.0-only
/*
 * The child processes of all calls that root makes: any of them can be blocked in the
 * kernel for ever, and no signal ends it, so calls that a timer makes could fill the
 * machine. Each needs a slot of a file, which it locks: the kernel unlocks it when the
 * process has ended, however it ends. The slot says where the process is, so that no other
 * one is blocked there. Calls of other users are not counted: RLIMIT_NPROC limits them.
 */
#include <errno.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "look.h"

/* How often a child that waits for a slot tries again. */
#define RETRY_NS 10000000

/**
 * struct slot - where a child process is
 * @at: the process that it is at, or an enum stuck_at
 * @blocked: from when on it is blocked there, as now_ns()
 */
struct slot {
	int64_t at;
	uint64_t blocked;
};

/* Bytes of a slot that its owner locks, the second one when the slot was filled in. */
enum { TAKEN, FILLED };

/* The slots of each use. */
static const struct range {
	unsigned int first;
	unsigned int count;
} ranges[] = {
	[FOR_SCAN] = { 0, SCAN_SLOTS },
	[FOR_BRIDGE] = { SCAN_SLOTS, BRIDGE_SLOTS },
};

/* Of this process, once it has a slot. */
static int file = -1;
static unsigned int own;
static bool is_filled;
static pid_t blocked[SCAN_SLOTS + BRIDGE_SLOTS];
static unsigned int blocked_count;

/* No other user can open it, and so lock it. */
static bool is_trusted(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && !st.st_uid &&
	       !(st.st_mode & (S_IRWXG | S_IRWXO));
}

/*
 * Returns -1 if it is not there and cannot be made. It is made only if it must be: while
 * the directory is locked, as any user can do, a new name blocks, and others do not.
 */
static int open_file(void)
{
	int fd = open(SLOTS_FILE, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		fd = open(SLOTS_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0 && !is_trusted(fd)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static off_t offset_of(unsigned int number)
{
	return (off_t)(number * sizeof(struct slot));
}

static struct flock byte_of(unsigned int number, unsigned int byte)
{
	return (struct flock){
		.l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = offset_of(number) + byte,
		.l_len = 1,
	};
}

/*
 * The lock belongs to the open file description. That is released after all descriptors
 * of an ending process were closed, and each of these can block it, too.
 */
static bool lock(unsigned int number, unsigned int byte)
{
	struct flock wanted = byte_of(number, byte);

	return !fcntl(file, F_OFD_SETLK, &wanted);
}

static bool is_locked(unsigned int number, unsigned int byte)
{
	struct flock found = byte_of(number, byte);

	return !fcntl(file, F_OFD_GETLK, &found) && found.l_type != F_UNLCK;
}

static bool take(const struct range *range)
{
	for (own = range->first; own < range->first + range->count; own++)
		if (lock(own, TAKEN))
			return true;
	return false;
}

/* Finds out where others are blocked. */
static void find_blocked(const struct range *range)
{
	uint64_t now = now_ns();
	struct slot slot;
	unsigned int i;

	blocked_count = 0;
	for (i = range->first; i < range->first + range->count; i++)
		if (is_locked(i, FILLED) &&
		    pread(file, &slot, sizeof(slot), offset_of(i)) == sizeof(slot) &&
		    slot.blocked <= now)
			blocked[blocked_count++] = (pid_t)slot.at;
}

/**
 * slot_take - take a slot for this process, a child process, until its end
 * @use: what for
 * @until: how long to wait for one, as now_ns(), unless the kernel answers none of those
 *         that have them
 * @steps: changes while this waits
 * @crowd: is set if all are taken
 *
 * Call this before anything else that can block, when lower descriptors are open that
 * cannot. Returns false if all slots are taken.
 */
bool slot_take(enum slot_use use, uint64_t until, volatile unsigned long *steps,
	       struct crowd *crowd)
{
	static const struct timespec retry = { .tv_nsec = RETRY_NS };
	const struct range *range = &ranges[use];

	if (!geteuid())
		file = open_file();
	if (file < 0)
		return true;
	while (!take(range)) {
		find_blocked(range);
		if (blocked_count == range->count || now_ns() >= until) {
			*crowd = (struct crowd){ range->count, blocked_count };
			return false;
		}
		++*steps;
		nanosleep(&retry, NULL);
	}
	find_blocked(range);
	return true;
}

/**
 * slot_at - say in the slot where this process is
 * @at: the process that it is at, or an enum stuck_at
 * @until: when it is blocked if it is still there, as now_ns()
 */
void slot_at(pid_t at, uint64_t until)
{
	struct slot slot = { .at = at, .blocked = until };

	if (file < 0)
		return;
	if (pwrite(file, &slot, sizeof(slot), offset_of(own)) == sizeof(slot) &&
	    !is_filled)
		is_filled = lock(own, FILLED);
}

/* slots_have - whether another process was blocked there when this one took its slot */
bool slots_have(pid_t at)
{
	unsigned int i;

	for (i = 0; i < blocked_count; i++)
		if (blocked[i] == at)
			return true;
	return false;
}
