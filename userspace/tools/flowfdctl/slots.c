// SPDX-License-Identifier: GPL-2.0-only
/*
 * The child processes of all calls that root makes: any of them can be blocked in the
 * kernel for ever, and no signal ends it, so calls that a timer makes could fill the
 * machine. Each needs a slot of a file, which it locks: the kernel unlocks it when the
 * process has ended, however it ends. The slot says where the process is, so that no other
 * one is blocked there. Calls of other users are not counted: RLIMIT_NPROC limits them. No
 * user can stop a process that has a slot, which would keep it.
 */
#include <errno.h>
#include <limits.h>
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
 * @pid_ns: inode number of its PID namespace; 0: not known
 */
struct slot {
	pid_t at;
	pid_t owner;
	uint64_t blocked;
	uint64_t pid_ns;
};

/*
 * Bytes of a slot that its owner locks: FILLED when the slot was filled in, NAMED in the
 * way that tells others the owner's process ID, as it is in their PID namespace. NAMED is
 * unlocked when a descriptor of the file is closed: in the owner's end after the others.
 */
enum { TAKEN, FILLED, NAMED };

/* The slots of each use. */
static const struct range {
	unsigned int first;
	unsigned int count;
} ranges[] = {
	[FOR_SCAN] = { 0, SCAN_SLOTS },
	[FOR_BRIDGE] = { SCAN_SLOTS, BRIDGE_SLOTS },
};

/*
 * The lowest descriptors are closed first, and each can block. A child process has only a
 * few, but RLIMIT_NOFILE may be lower.
 */
#define HIGH_FD 255

/* Of this process, once it has a slot. */
static int file = -1;
static unsigned int own;
static bool is_filled;
static bool is_asked;
static uint64_t own_pid_ns;
static struct slot blocked[SCAN_SLOTS + BRIDGE_SLOTS];
static unsigned int blocked_count;

/* No other user can open it, and so lock it. */
static bool is_trusted(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && !st.st_uid &&
	       !(st.st_mode & (S_IRWXG | S_IRWXO));
}

/* Before there are locks, which a close would remove. */
static int move_up(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);

	if (high < 0)
		return fd;
	close(fd);
	return high;
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
	} else {
		fd = move_up(fd);
	}
	return fd;
}

/*
 * What the caller may write says nothing about the slots. Without the right to have more,
 * this process only cannot say where it is.
 */
static void lift_limit(void)
{
	static const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };

	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &none);
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
static int lock(unsigned int number, unsigned int byte)
{
	struct flock wanted = byte_of(number, byte);

	return fcntl(file, byte == NAMED ? F_SETLK : F_OFD_SETLK, &wanted) ? -errno : 0;
}

static bool is_locked(unsigned int number, unsigned int byte)
{
	struct flock found = byte_of(number, byte);

	return !fcntl(file, F_OFD_GETLK, &found) && found.l_type != F_UNLCK;
}

/* Returns 0 if it is not in this PID namespace, and -1 if that is not known. */
static pid_t owner_of(unsigned int number)
{
	struct flock found = byte_of(number, NAMED);

	if (fcntl(file, F_OFD_GETLK, &found) || found.l_type == F_UNLCK)
		return -1;
	return found.l_pid;
}

static void fill(pid_t at, uint64_t until)
{
	struct slot slot = {
		.at = at, .owner = getpid(), .blocked = until, .pid_ns = own_pid_ns
	};

	if (pwrite(file, &slot, sizeof(slot), offset_of(own)) == sizeof(slot) &&
	    !is_filled)
		is_filled = !lock(own, FILLED);
}

/* Says at once who has the slot: a process that is frozen from then on can be killed. */
static int take(const struct range *range)
{
	int error;

	for (own = range->first; own < range->first + range->count; own++) {
		error = lock(own, TAKEN);
		if (!error) {
			lock(own, NAMED);
			fill(AT_SLOTS, now_ns() + STALL_NS);
		}
		if (error != -EAGAIN && error != -EACCES)
			return error;
	}
	return -EBUSY;
}

/*
 * Its own call could not do it, or was killed; or the child stays. It can be frozen with
 * its cgroup, or wait for what only SIGKILL ends.
 */
static void kill_owner(unsigned int number, pid_t owner)
{
	int handle = pidfd_open(owner, 0);

	/* Not a process that has got the ID of one that has ended. */
	if (handle >= 0 && owner_of(number) == owner)
		pidfd_send_signal(handle, SIGKILL, NULL, 0);
	if (handle >= 0)
		close(handle);
}

/* Finds out where others are blocked, and kills those that were given up. */
static void list_blocked(const struct range *range)
{
	uint64_t now = now_ns();
	struct slot slot;
	unsigned int i;
	pid_t owner;

	blocked_count = 0;
	for (i = range->first; i < range->first + range->count; i++) {
		if (i == own || !is_locked(i, FILLED) ||
		    pread(file, &slot, sizeof(slot), offset_of(i)) != sizeof(slot) ||
		    slot.blocked > now)
			continue;
		owner = owner_of(i);
		if (owner != -1 && owner != slot.owner)
			slot.at = ELSEWHERE;
		else if (owner > 0 && now - slot.blocked >= GIVE_UP_NS)
			kill_owner(i, owner);
		blocked[blocked_count++] = slot;
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
	pid_t owner;

	for (i = range->first; i < range->first + range->count && !crowd.one; i++) {
		owner = owner_of(i);
		if (owner > 0)
			crowd.one = owner;
	}
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
 * Call this before anything else that can block, when lower descriptors are open that
 * cannot. Returns 0 or a negative error number, -EBUSY if all slots are taken. A process
 * that is counted leaves its session, so that no terminal stops it.
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
		lift_limit();
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

static void find_namespace(void)
{
	struct stat st;

	if (!stat("/proc/self/ns/pid", &st))
		own_pid_ns = st.st_ino;
}

/**
 * slot_at - say in the slot where this process is
 * @at: the process that it is at, or an enum stuck_at
 * @until: when it is blocked if it is still there, as now_ns()
 */
void slot_at(pid_t at, uint64_t until)
{
	if (file < 0)
		return;
	fill(at, until);
	/* That can block, too. */
	if (!is_asked && !slots_have(AT_PROC)) {
		is_asked = true;
		find_namespace();
		fill(at, until);
	}
}

/* slot_end - say in the slot that this process is blocked there if it does not end now */
void slot_end(void)
{
	struct slot slot;

	if (is_filled && pread(file, &slot, sizeof(slot), offset_of(own)) == sizeof(slot))
		slot_at(slot.at, now_ns());
}

/* Whether it is known to be of another PID namespace. */
static bool is_elsewhere(const struct slot *slot)
{
	return slot->pid_ns && own_pid_ns && slot->pid_ns != own_pid_ns;
}

/* slots_have - whether another process was blocked there when this one took its slot */
bool slots_have(pid_t at)
{
	unsigned int i;

	for (i = 0; i < blocked_count; i++)
		if (blocked[i].at == at && !is_elsewhere(&blocked[i]))
			return true;
	return false;
}
