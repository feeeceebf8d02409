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

int flowfd__falls_back(int backend, int error)
{
	if (backend == FLOWFD__ANY)
		return error == -ENODEV || error == -EACCES;
	return backend == FLOWFD__FALLBACK;
}
