// SPDX-License-Identifier: GPL-2.0-only
/*
 * A library that has its own functions with the names of those of libaio and liburing,
 * with other arguments and results.
 */
#include <errno.h>
#include <stdio.h>

long io_submit(long a, long b, long c, long d, long e, long f);
long io_uring_register(long a, long b, long c, long d, long e, long f);
long io_uring_register_eventfd(long a, long b, long c, long d, long e, long f);
long io_uring_register_eventfd_async(void);
void foreign_call(void);

static long digits(long a, long b, long c, long d, long e, long f)
{
	return a + 10 * (b + 10 * (c + 10 * (d + 10 * (e + 10 * f))));
}

long io_submit(long a, long b, long c, long d, long e, long f)
{
	return digits(a, b, c, d, e, f);
}

long io_uring_register(long a, long b, long c, long d, long e, long f)
{
	return digits(a, b, c, d, e, f);
}

long io_uring_register_eventfd(long a, long b, long c, long d, long e, long f)
{
	return digits(a, b, c, d, e, f);
}

long io_uring_register_eventfd_async(void)
{
	return -EINVAL;
}

void foreign_call(void)
{
	printf("io_submit %ld, ", io_submit(1, 2, 3, 4, 5, 6));
	printf("io_uring_register %ld, ", io_uring_register(1, 2, 3, 4, 5, 7));
	printf("eventfd %ld, ", io_uring_register_eventfd(1, 2, 3, 4, 5, 8));
	printf("async %ld\n", io_uring_register_eventfd_async());
}
