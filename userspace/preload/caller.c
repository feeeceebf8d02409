// SPDX-License-Identifier: MIT
/*
 * Names the executable or shared library that asks for an eventfd, so that a
 * user can exclude it by that name.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>

#include "preload/caller.h"

const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/*
 * The executable is the file with the program headers that the kernel reports.
 * dladdr1(3) would tell, too, but musl does not have it.
 */
static bool is_executable(const ElfW(Ehdr) *header)
{
	return getauxval(AT_PHDR) == (unsigned long)header + header->e_phoff;
}

#ifdef DLFO_EH_SEGMENT_TYPE
/* glibc has it since 2.35, musl does not. It takes no lock. */
extern __typeof__(_dl_find_object) _dl_find_object __attribute__((weak));
#endif

/*
 * dladdr(3) would deadlock: it waits for a dlopen(3) in another thread, which may
 * run a constructor that waits for this thread.
 */
static bool find(const void *address, Dl_info *info)
{
#ifdef DLFO_EH_SEGMENT_TYPE
	struct dl_find_object object;

	if (_dl_find_object) {
		if (_dl_find_object((void *)address, &object))
			return false;
		info->dli_fbase = object.dlfo_map_start;
		info->dli_fname = object.dlfo_link_map->l_name;
		return true;
	}
#endif
	return dladdr(address, info);
}

const char *caller_find(const void *address, const char *executable)
{
	Dl_info info;

	if (!find(address, &info))
		return "[unknown]";
	/*
	 * The dynamic linker knows the executable by no name, or by argv[0], which can
	 * be anything. If its segments have gaps, only one of them was found, without
	 * the headers.
	 */
	if (!*info.dli_fname || is_executable(info.dli_fbase))
		return executable;
	return base_name(info.dli_fname);
}
