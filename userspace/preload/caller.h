/* SPDX-License-Identifier: MIT */
/* Which object file of the process a return address belongs to. */
#ifndef FLOWFD_PRELOAD_CALLER_H
#define FLOWFD_PRELOAD_CALLER_H

#include <limits.h>

/** struct caller - base name of an object file */
struct caller {
	char name[NAME_MAX + 1];
};

/** caller_find - say where @address is; "[unknown]" for code of no file */
void caller_find(struct caller *caller, const void *address);

#endif /* FLOWFD_PRELOAD_CALLER_H */
