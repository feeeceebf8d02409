// SPDX-License-Identifier: GPL-2.0-only
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/programs/starve.h"

int starve_after = -1;
bool starve_late;
/* The eventfd, once it was put in the counter's place; and whether it was taken back. */
static long real;
static bool back;

void starve_begin(void)
{
	real = -1;
	back = false;
}

static void write_late(void)
{
	uint64_t one = 1;

	starve_late = false;
	if (write(real, &one, sizeof(one)) < 0)
		_exit(EXDEV);
}

static bool is_sleep(long number)
{
#ifdef SYS_nanosleep
	if (number == SYS_nanosleep)
		return true;
#endif
	return number == SYS_clock_nanosleep;
}

/* Behind the shim, which calls it. */
long syscall(long number, ...)
{
	static long (*next)(long number, ...);
	long a[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (!next)
		next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");

	if (number == SYS_openat && starve_after >= 0 && starve_after-- == 0) {
		starve_after = 0;
		errno = EMFILE;
		return -1;
	}
	if (starve_late && back &&
	    (is_sleep(number) || (number == SYS_close && a[0] == real)))
		write_late();
	if (number == SYS_dup3) {
		back = real >= 0;
		real = back ? real : a[0];
	}
	return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
