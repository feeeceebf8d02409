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
 * The kernel says where the executable's program headers are. dladdr1(3) would
 * say which file is the executable, too, but musl does not have it.
 */
static bool is_executable(const Dl_info *info)
{
	const ElfW(Ehdr) *header = info->dli_fbase;

	return getauxval(AT_PHDR) == (unsigned long)header + header->e_phoff;
}

const char *caller_find(const void *address, const char *executable)
{
	Dl_info info;

	if (!dladdr(address, &info))
		return "[unknown]";
	/* The dynamic linker knows it by argv[0] alone, which can be anything. */
	if (is_executable(&info))
		return executable;
	return base_name(info.dli_fname);
}
