// SPDX-License-Identifier: MIT
/*
 * Finds the library function that a call was meant for. A function that was there
 * when the program started comes first for all of its code, and stays. Any other is
 * found without dlopen(3), dlsym(3) or dladdr(3): these wait for a dlopen(3) in
 * another thread, which may run a constructor that waits for this thread.
 * dl_iterate_phdr(3) takes a lock that is not held while constructors run.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "preload/caller.h"
#include "preload/library.h"
#include "preload/object.h"

static bool is_of_library(const struct library_function *function, const char *file)
{
	return !strncmp(file, function->library, strlen(function->library));
}

void library_find_early(struct library_function *function)
{
	void *early = dlsym(RTLD_NEXT, function->name);
	Dl_info info;

	if (early)
		function->early_genuine =
			dladdr(early, &info) &&
			is_of_library(function, base_name(info.dli_fname));
	else
		dlerror(); /* clears the error: the program must not see it */
	function->early = (library_call)early;
}

/*
 * An object that is loaded now; @name is NULL if that is not known. A later object can
 * have the address of one that is gone, but hardly the address of its name, too.
 */
struct loaded {
	const void *start;
	const void *name;
};

static struct loaded loaded_at(const void *address)
{
#ifdef DLFO_EH_SEGMENT_TYPE
	Dl_info info;

	/* A lock would stay locked in the child of a fork(2) by another thread. */
	if (caller_find_loaded(address, &info))
		return (struct loaded){ info.dli_fbase, info.dli_fname };
	return (struct loaded){ NULL, NULL };
#else
	/* musl never unloads an object. */
	return (struct loaded){ address, address };
#endif
}

static bool is_loaded(const struct loaded *object, const void *address)
{
	struct loaded now = loaded_at(address);

	return now.name && now.name == object->name && now.start == object->start;
}

/* From the worst to the best: what would the dynamic linker have found? */
enum rank { NOTHING, ANY, OF_LIBRARY, NEEDED, OWN };

/* @caller: the object that @address is in */
struct search {
	const struct library_function *function;
	const void *address;
	struct object caller;
	enum rank rank;
	struct found found;
};

static int find_caller(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *search = data;

	(void)size;
	if (!object_holds(info, search->address))
		return 0;
	object_read(&search->caller, info);
	return 1;
}

static int find_better(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *search = data;
	struct object object;
	enum rank rank = ANY;
	void *function;
	bool genuine;

	(void)size;
	/* The shim has functions of these names, too. */
	if (object_holds(info, (const void *)find_better))
		return 0;
	object_read(&object, info);
	function = object_function(&object, search->function->name);
	if (!function)
		return 0;
	genuine = is_of_library(search->function, object.name);
	if (object.dynamic == search->caller.dynamic)
		rank = OWN;
	else if (object_needs(&search->caller, &object))
		rank = NEEDED;
	else if (genuine)
		rank = OF_LIBRARY;
	if (rank > search->rank) {
		search->rank = rank;
		search->found = (struct found){ (library_call)function, genuine };
	}
	return 0;
}

/* After a tail call, @address is in the caller of the function that made it. */
static struct found find_late(const struct library_function *function,
			      const void *address)
{
	struct search search = { .function = function, .address = address };

	dl_iterate_phdr(find_caller, &search);
	dl_iterate_phdr(find_better, &search);
	return search.found;
}

/* What was found last, by return address. It is valid while both objects are loaded. */
struct memory {
	const struct library_function *function;
	const void *address;
	struct loaded caller;
	struct loaded owner;
	struct found found;
};

static struct memory memories[64];
static atomic_flag memories_used = ATOMIC_FLAG_INIT;

/*
 * Reads or writes the memory of @wanted. Never waits: if another thread is here, or the
 * code that a signal handler interrupted, then nothing is remembered.
 */
static bool use_memory(struct memory *wanted, bool write)
{
	struct memory *memory = &memories[(uintptr_t)wanted->address / 4 % 64];
	bool known = false;

	if (atomic_flag_test_and_set_explicit(&memories_used, memory_order_acquire))
		return false;
	if (write) {
		*memory = *wanted;
	} else if (memory->function == wanted->function &&
		   memory->address == wanted->address) {
		*wanted = *memory;
		known = true;
	}
	atomic_flag_clear_explicit(&memories_used, memory_order_release);
	return known && is_loaded(&wanted->caller, wanted->address) &&
	       is_loaded(&wanted->owner, (const void *)wanted->found.call);
}

struct found library_find(const struct library_function *function, const void *address)
{
	struct memory memory = { .function = function, .address = address };

	if (function->early)
		return (struct found){ function->early, function->early_genuine };
	if (use_memory(&memory, false))
		return memory.found;
	memory.found = find_late(function, address);
	if (memory.found.call) {
		memory.caller = loaded_at(address);
		memory.owner = loaded_at((const void *)memory.found.call);
		use_memory(&memory, true);
	}
	return memory.found;
}
