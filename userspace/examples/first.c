// SPDX-License-Identifier: MIT
/* The shortest program: a counter that is full at a count of 3, also without the module. */
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
	struct flowfd_counter counter;
	uint64_t count;
	int error;

	error = flowfd_counter_open(&counter, &settings, sizeof(settings),
				    FLOWFD_FALLBACK);
	if (error) {
		fprintf(stderr, "first: %s\n", flowfd_strerror(error));
		return EXIT_FAILURE;
	}

	do {
		error = flowfd_add(&counter, 1);
		printf("add: %s\n", flowfd_strerror(error));
	} while (!error);

	error = flowfd_take(&counter, &count);
	if (error) {
		fprintf(stderr, "first: take: %s\n", flowfd_strerror(error));
		return EXIT_FAILURE;
	}
	printf("take: %" PRIu64 "\n", count);
	flowfd_counter_close(&counter);
	return EXIT_SUCCESS;
}
