// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes an eventfd and reads it, for other compilers and other C libraries. Prints
 * "read 5" on success.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

int main(void)
{
	/* On the heap, which AddressSanitizer checks. */
	uint64_t *value = calloc(1, sizeof(*value));
	int fd = eventfd(5, EFD_CLOEXEC);
	int ret = 1;

	if (value && read(fd, value, sizeof(*value)) == sizeof(*value)) {
		printf("read %d\n", (int)*value);
		ret = *value != 5;
	}
	free(value);
	return ret;
}
