// SPDX-License-Identifier: GPL-2.0-only
/*
 * The child processes of all calls that root makes: any of them can be blocked in the
 * kernel for ever, and no signal ends it, so calls that a timer makes could fill the
 * machine. Each needs a slot of a file, which it locks: the kernel unlocks it in the end
 * of the process, however it ends. A file that the process has taken can block it after
 * that, so the slot also says who has it, and nobody takes it before that one has ended.
 * It says where the process is, too, so that no other one is blocked there. Calls of
 * other users are not counted: RLIMIT_NPROC limits them. No user can stop a process that
 * has a slot, which would keep it.
 */
/* A limit has 64 bits, as the time in it, also where a long has 32. */
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "look.h"

/* How often a child that waits for a slot tries again. */
#define RETRY_NS 10000000
/* No call goes on for so long with a child that is blocked. */
#define GIVE_UP_NS 5000000000ULL
/* Time for a child to end. */
#define END_NS 50000000

/* Where a child process of another PID namespace is: process IDs of it mean others here. */
#define ELSEWHERE INT_MIN

/**
 * struct slot - where a child process is
 * @at: the process that it is at, or an enum stuck_at
 * @owner: its own process ID
 * @blocked: from when on it is blocked there, as now_ns()
 * @taken: when it took the slot, as now_ns(): the process with that ID is the owner if
 *         it has this as RLIMIT_LOCKS, which the kernel has no use for
 */
struct slot {
	pid_t at;
	pid_t owner;
	uint64_t blocked;
	uint64_t taken;
};

_Static_assert(sizeof(rlim_t) == sizeof(uint64_t), "a limit has the time of a slot");

/* Bytes of a slot that its owner locks: FILLED when the slot was filled in. */
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
static uint64_t own_taken;
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
 * Returns -1, and in @error why, if there is no file for slots. It is made only if it must
 * be: while the directory is locked, as any user can do, a new name blocks, and others do
 * not.
 */
static int open_file(int *error)
{
	int fd = open(SLOTS_FILE, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		fd = open(SLOTS_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		*error = errno;
	} else if (!is_trusted(fd)) {
		*error = NOT_ROOTS;
		close(fd);
		fd = -1;
	}
	return fd;
}

/*
 * What the caller may write says nothing about the slots. Without the right to have more,
 * this process only cannot say where it is.
 */
static void set_limits(void)
{
	static const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
	struct rlimit taken;

	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &none);
	own_taken = now_ns();
	taken = (struct rlimit){ own_taken, own_taken };
	setrlimit(RLIMIT_LOCKS, &taken);
}

static off_t offset_of(unsigned int number)
{
	return (off_t)(number * sizeof(struct slot));
}

static struct flock byte_of(unsigned int number, unsigned int byte, short type)
{
	return (struct flock){
		.l_type = type,
		.l_whence = SEEK_SET,
		.l_start = offset_of(number) + byte,
		.l_len = 1,
	};
}

/* Of the open file description: the kernel unlocks it, too, if this process is killed. */
static int lock(unsigned int number, unsigned int byte, short type)
{
	struct flock wanted = byte_of(number, byte, type);

	return fcntl(file, F_OFD_SETLK, &wanted) ? -errno : 0;
}

static bool is_locked(unsigned int number, unsigned int byte)
{
	struct flock found = byte_of(number, byte, F_WRLCK);

	return !fcntl(file, F_OFD_GETLK, &found) && found.l_type != F_UNLCK;
}

static bool read_slot(unsigned int number, struct slot *slot)
{
	return pread(file, slot, sizeof(*slot), offset_of(number)) == sizeof(*slot);
}

static bool is_owner(const struct slot *slot)
{
	struct rlimit taken;

	return slot->owner && !prlimit(slot->owner, RLIMIT_LOCKS, NULL, &taken) &&
	       taken.rlim_cur == slot->taken;
}

/*
 * Returns a pidfd of the process that filled the slot in. Returns -1 if that has ended,
 * or is of another PID namespace, where its ID means another process. /proc is not asked,
 * as that can block.
 */
static int open_owner(const struct slot *slot)
{
	int handle = is_owner(slot) ? pidfd_open(slot->owner, 0) : -1;
	struct pollfd end = { .fd = handle, .events = POLLIN };

	if (handle < 0)
		return -1;
	/* Again: it is not of a process that got the ID of one that has ended. */
	if (is_owner(slot) && !poll(&end, 1, 0))
		return handle;
	close(handle);
	return -1;
}

/* Also of a process that has unlocked it, but cannot end. */
static bool has_owner(unsigned int number, pid_t *owner)
{
	struct slot slot;
	int handle = read_slot(number, &slot) ? open_owner(&slot) : -1;

	if (handle < 0)
		return false;
	close(handle);
	*owner = slot.owner;
	return true;
}

static void fill(pid_t at, uint64_t until)
{
	struct slot slot = {
		.at = at, .owner = getpid(), .blocked = until, .taken = own_taken
	};

	if (pwrite(file, &slot, sizeof(slot), offset_of(own)) == sizeof(slot) &&
	    !is_filled)
		is_filled = !lock(own, FILLED, F_WRLCK);
}

/* Says at once who has the slot: a process that is frozen from then on can be killed. */
static int take(const struct range *range)
{
	pid_t owner;
	int error;

	for (own = range->first; own < range->first + range->count; own++) {
		error = lock(own, TAKEN, F_WRLCK);
		if (!error && !has_owner(own, &owner)) {
			fill(AT_SLOTS, now_ns() + STALL_NS);
			return 0;
		}
		if (!error)
			lock(own, TAKEN, F_UNLCK);
		else if (error != -EAGAIN && error != -EACCES)
			return error;
	}
	return -EBUSY;
}

/*
 * Whether the process that filled the slot in still has its lock. Only root can: what the slot
 * of a process that has ended says, any user could say of another one.
 */
static bool has_lock(unsigned int number, const struct slot *slot)
{
	struct slot now;

	return is_locked(number, FILLED) && read_slot(number, &now) &&
	       now.owner == slot->owner && now.taken == slot->taken;
}

/*
 * Finds out where others are blocked, and kills those that were given up: their own calls
 * could not do it, or were killed; or the child stays. It can be frozen with its cgroup,
 * or wait for what only SIGKILL ends.
 */
static void list_blocked(const struct range *range)
{
	uint64_t now = now_ns();
	struct slot slot;
	unsigned int i;
	int owner;

	blocked_count = 0;
	for (i = range->first; i < range->first + range->count; i++) {
		if (i == own || !read_slot(i, &slot) || slot.blocked > now)
			continue;
		owner = open_owner(&slot);
		if (owner < 0 && !is_locked(i, FILLED))
			continue;
		if (owner < 0)
			slot.at = ELSEWHERE;
		else if (now - slot.blocked >= GIVE_UP_NS && has_lock(i, &slot))
			pidfd_send_signal(owner, SIGKILL, NULL, 0);
		if (owner >= 0)
			close(owner);
		blocked[blocked_count++] = slot.at;
	}
}

static void find_blocked(const struct range *range)
{
	static const struct timespec end = { .tv_nsec = END_NS };

	list_blocked(range);
	if (!blocked_count)
		return;
	/* For those that were killed, and those at their end. */
	nanosleep(&end, NULL);
	list_blocked(range);
}

static struct crowd find_crowd(const struct range *range)
{
	struct crowd crowd = { .all = range->count, .blocked = blocked_count };
	unsigned int i;

	for (i = range->first; i < range->first + range->count; i++)
		if (has_owner(i, &crowd.one))
			break;
	return crowd;
}

/**
 * slot_take - take a slot for this process, a child process, until its end
 * @use: what for
 * @until: how long to wait for one, as now_ns(), unless the kernel answers none of those
 *         that have them
 * @steps: changes while this waits
 * @crowd: is set if all are taken, or if there are none
 *
 * Call this before anything else that can block. Returns 0 or a negative error number,
 * -EBUSY if all slots are taken. A process that is counted leaves its session, so that no
 * terminal stops it.
 */
int slot_take(enum slot_use use, uint64_t until, volatile unsigned long *steps,
	      struct crowd *crowd)
{
	static const struct timespec retry = { .tv_nsec = RETRY_NS };
	const struct range *range = &ranges[use];
	int error;

	/* A user may send signals to programs that have that user's ID, if only as real one. */
	if (!getuid() && !geteuid()) {
		setsid();
		set_limits();
		file = open_file(&crowd->uncounted);
	}
	if (file < 0)
		return 0;
	while ((error = take(range)) == -EBUSY) {
		find_blocked(range);
		if (blocked_count == range->count || now_ns() >= until) {
			*crowd = find_crowd(range);
			return error;
		}
		++*steps;
		nanosleep(&retry, NULL);
	}
	if (!error)
		find_blocked(range);
	return error;
}

/**
 * slot_at - say in the slot where this process is
 * @at: the process that it is at, or an enum stuck_at
 * @until: when it is blocked if it is still there, as now_ns()
 */
void slot_at(pid_t at, uint64_t until)
{
	if (file >= 0)
		fill(at, until);
}

/* slot_end - say in the slot that this process is blocked there if it does not end now */
void slot_end(void)
{
	struct slot slot;

	if (is_filled && read_slot(own, &slot))
		slot_at(slot.at, now_ns());
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
