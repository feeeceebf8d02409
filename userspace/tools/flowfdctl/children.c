// SPDX-License-Identifier: GPL-2.0-only
/*
 * How many child processes of all calls of flowfdctl there are, by this user: any of them
 * can be blocked in the kernel for ever, and no signal ends it, so calls that a timer makes
 * could fill the machine. A System V semaphore counts them. It needs no file, whose
 * directory users could block, and the kernel subtracts a process that has ended.
 */
#include <errno.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <unistd.h>

#include "look.h"

/* Others may race for the key. */
#define TRIES 100

/* semun of semctl(2), which programs must declare. */
union argument {
	int value;
	struct semid_ds *status;
};

static bool is_own(const struct semid_ds *status)
{
	return status->sem_perm.cuid == geteuid() && status->sem_perm.uid == geteuid() &&
	       (status->sem_perm.mode & 0777) == 0600 && status->sem_nsems == 1;
}

/* Returns the semaphore; -1 with errno. Any user can make one with the key of another. */
static int find_semaphore(void)
{
	struct semid_ds status;
	union argument argument = { .status = &status };
	int tries, id;

	for (tries = 0; tries < TRIES; tries++) {
		id = semget(CHILDREN_KEY + (key_t)geteuid(), 1, IPC_CREAT | 0600);
		if (id < 0)
			return -1;
		if (semctl(id, 0, IPC_STAT, argument))
			continue;
		if (is_own(&status))
			return id;
		if (semctl(id, 0, IPC_RMID) && errno != EIDRM && errno != EINVAL)
			return -1;
	}
	errno = EBUSY;
	return -1;
}

/**
 * children_enter - count this process, a child process, until its end
 *
 * Call this before anything that can block. Returns false if it cannot be counted.
 */
bool children_enter(void)
{
	struct sembuf add = { .sem_op = 1, .sem_flg = SEM_UNDO };
	int id = find_semaphore();

	/* As children_count() says. */
	return id >= 0 ? !semop(id, &add, 1) : geteuid() || errno == ENOSYS;
}

/**
 * children_count - count the child processes of all calls
 *
 * Returns -1 with errno if they cannot be counted. Users other than root can be kept from
 * counting by others, who cannot be removed; 0 is returned for them, and where the kernel
 * has no semaphores.
 */
int children_count(void)
{
	int id = find_semaphore();

	if (id >= 0)
		return semctl(id, 0, GETVAL);
	return geteuid() || errno == ENOSYS ? 0 : -1;
}
