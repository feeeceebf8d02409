// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes an eventfd in both ways and reads it, for other compilers and other C
 * libraries. Prints "call 5, raw 6, ioctl 1" on success.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int take(int fd)
{
	uint64_t value;

	return read(fd, &value, sizeof(value)) == sizeof(value) ? (int)value :
								     -1;
}

int main(void)
{
	/* On the heap, which AddressSanitizer checks. */
	int *ends = malloc(2 * sizeof(*ends));
	int waiting = -1;
	int made = take(eventfd(5, EFD_CLOEXEC));
	int raw = take(syscall(SYS_eventfd2, 6, EFD_CLOEXEC));

	if (pipe(ends) == 0 && write(ends[1], "x", 1) == 1)
		ioctl(ends[0], FIONREAD, &waiting);
	free(ends);
	printf("call %d, raw %d, ioctl %d\n", made, raw, waiting);
	return made != 5 || raw != 6 || waiting != 1;
}
