// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loads the module again and again while one of the last allocations and copies fails,
 * each in turn. In the end the module is loaded. unload.sh calls this with the file of
 * the module. Exit status 4: this kernel cannot inject faults.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>

#include "../fault_injection.h"

/* The first steps, hundreds of them, are of the loader itself. */
#define OWN_STEPS 400
#define MANY_STEPS 1000000
#define LOADS 8

static int load(int fd)
{
	return syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;
}

static int unload(void)
{
	return syscall(SYS_delete_module, "flowfd", O_NONBLOCK) ? -errno : 0;
}

/* The number of steps of a load of which none fails. */
static int count_steps(int file, int nth)
{
	char text[16] = "";
	int result;

	fail_step(nth, MANY_STEPS);
	result = load(file);
	if (pread(nth, text, sizeof(text) - 1, 0) < 0)
		result = -errno;
	fail_step(nth, 0);
	return result ?: unload() ?: MANY_STEPS - atoi(text);
}

/* The least of several: a load may find page tables and slabs that another has left. */
static int fewest_steps(int file, int nth)
{
	int fewest = MANY_STEPS, n;

	for (n = 0; n < LOADS; n++) {
		int steps = count_steps(file, nth);

		if (steps < fewest)
			fewest = steps;
	}
	return fewest;
}

int main(int argc, char **argv)
{
	int file, nth, step, errors = 0;

	if (argc != 2)
		return 2;
	if (!faults_can_be_asked_for())
		return 4;
	file = open(argv[1], O_RDONLY | O_CLOEXEC);
	nth = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (file < 0 || nth < 0)
		return 1;
	step = fewest_steps(file, nth);
	if (step < OWN_STEPS) {
		printf("# loading: %d steps in all\n", step);
		return 1;
	}
	for (step -= OWN_STEPS; step < MANY_STEPS; step++) {
		int result;
		bool failed;

		fail_step(nth, step);
		result = load(file);
		failed = step_failed(nth);
		if (!failed) {
			printf("# loading: %d steps, %d errors\n", step - 1,
			       errors);
			return result != 0 || errors == 0;
		}
		/* Some allocations are optional: the load succeeds without them. */
		if (result == 0) {
			result = unload();
			if (result == 0)
				continue;
		} else {
			errors++;
			if (result == -ENOMEM || result == -EFAULT)
				continue;
		}
		printf("# loading: step %d: %s\n", step, strerror(-result));
		return 1;
	}
	return 1;
}
