// SPDX-License-Identifier: MIT
/* The choice between the module and what the library does without it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"

/* The program's option comes first, then the environment. */
int flowfd__backend(int may_fall_back)
{
	const char *name;

	if (!may_fall_back)
		return FLOWFD__MODULE;
	name = secure_getenv("FLOWFD_BACKEND");
	if (!name || !*name)
		return FLOWFD__ANY;
	if (!strcmp(name, "module"))
		return FLOWFD__MODULE;
	if (!strcmp(name, "fallback"))
		return FLOWFD__FALLBACK;
	return -EINVAL;
}

/*
 * Where the program would run without the module, loading it must not end that: it may be
 * of another version than the library until the next boot, charge memory that the user may
 * not lock, or need a call that a filter of seccomp(2) refuses.
 */
static int module_is_out_of_reach(int error)
{
	switch (error) {
	case -ENODEV:
	case -EACCES:
	case -EPERM:
	case -ENOMEM:
	case -ENOSYS:
	case -EPROTONOSUPPORT:
		return 1;
	default:
		return 0;
	}
}

int flowfd__falls_back(int backend, int error)
{
	if (backend == FLOWFD__ANY)
		return module_is_out_of_reach(error);
	return backend == FLOWFD__FALLBACK;
}
