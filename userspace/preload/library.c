// SPDX-License-Identifier: MIT
/*
 * Finds the library function that a call was meant for. A function that was there
 * when the program started comes first for all of its code, and stays. It is looked
 * up only once: the dynamic linker takes a lock, which a dlopen(3) in another thread
 * may hold.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "preload/caller.h"
#include "preload/library.h"

static bool is_genuine(const struct library_function *function, void *address)
{
	Dl_info info;

	return dladdr(address, &info) &&
	       !strncmp(base_name(info.dli_fname), function->library,
			strlen(function->library));
}

void library_find_early(struct library_function *function)
{
	void *early = dlsym(RTLD_NEXT, function->name);

	if (early)
		function->early_genuine = is_genuine(function, early);
	else
		dlerror(); /* clears the error: the program must not see it */
	function->early = (library_call)early;
}

static void *find_loaded(const char *file, const char *name)
{
	void *library = dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
	void *function;

	if (!library)
		return NULL;
	function = dlsym(library, name);
	dlclose(library);
	return function;
}

/* After a tail call, @address is in the caller of the function that made it. */
static void *find_late(const struct library_function *function, const void *address)
{
	void *late = dlsym(RTLD_NEXT, function->name);
	Dl_info info;

	if (!late && dladdr(address, &info))
		late = find_loaded(info.dli_fname, function->name);
	for (int i = 0; i < 2 && !late; i++)
		late = find_loaded(function->sonames[i], function->name);
	return late;
}

struct found library_find(const struct library_function *function, const void *address)
{
	struct found found = { function->early, function->early_genuine };
	int saved = errno;
	void *late;

	if (found.call)
		return found;
	late = find_late(function, address);
	found.call = (library_call)late;
	found.genuine = late && is_genuine(function, late);
	errno = saved;
	return found;
}
