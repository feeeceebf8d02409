// SPDX-License-Identifier: MIT
/*
 * Finds functions without dlsym(3): that waits for a dlopen(3) in another thread, which
 * may run a constructor that waits for this thread, and finds no library that was opened
 * for another alone. dl_iterate_phdr(3) takes a lock that is not held while constructors
 * run.
 */
#include <string.h>

#include "preload/library.h"
#include "preload/object.h"

struct search {
	const struct library_function *function;
	void *found;
};

static int find_in(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *search = data;
	const char *library = search->function->library;
	struct object object;

	(void)size;
	object_read(&object, info);
	if (!strncmp(object.name, library, strlen(library)))
		search->found = object_function(&object, search->function->name);
	return search->found != NULL;
}

static void *find(const struct library_function *function)
{
	struct search search = { .function = function };

	dl_iterate_phdr(find_in, &search);
	return search.found;
}

void library_find_early(struct library_function *function)
{
	function->early = find(function);
}

void *library_find(const struct library_function *function)
{
	return function->early ? function->early : find(function);
}
