// SPDX-License-Identifier: MIT
/* The shortest program: a counter that is full at a count of 3. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <flowfd.h>

int main(void)
{
	const struct flowfd_create_counter settings = {
		.maximum = 4,
		.flags = FLOWFD_NONBLOCK,
	};
	uint64_t count;
	int error;
	int fd;

	fd = flowfd_counter_create_from(&settings, sizeof(settings));
	if (fd < 0) {
		fprintf(stderr, "first: %s\n", flowfd_strerror(fd));
		return EXIT_FAILURE;
	}

	do {
		error = flowfd_write(fd, 1);
		printf("write: %s\n", flowfd_strerror(error));
	} while (!error);

	error = flowfd_read(fd, &count);
	if (error) {
		fprintf(stderr, "first: read: %s\n", flowfd_strerror(error));
		return EXIT_FAILURE;
	}
	printf("read: %" PRIu64 "\n", count);
	return EXIT_SUCCESS;
}
