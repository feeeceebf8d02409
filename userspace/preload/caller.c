// SPDX-License-Identifier: MIT
/*
 * Names the executable or shared library that asks for an eventfd, so that a
 * user can exclude it by that name.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/syscall.h>

#include "preload/caller.h"
#include "preload/next.h"

static void set_name(struct caller *caller, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	size_t length = strnlen(base, sizeof(caller->name) - 1);

	memcpy(caller->name, base, length);
	caller->name[length] = '\0';
}

/* ld.so knows the executable only by argv[0], which can be anything. */
static void set_executable(struct caller *caller)
{
	char path[PATH_MAX];
	const long arguments[6] = {AT_FDCWD, (long)"/proc/self/exe", (long)path,
				   sizeof(path) - 1};
	long length = next_syscall(SYS_readlinkat, arguments);

	if (length < 0)
		return;
	path[length] = '\0';
	set_name(caller, path);
}

void caller_find(struct caller *caller, const void *address)
{
	struct link_map *map;
	Dl_info info;

	set_name(caller, "[unknown]");
	if (!dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP))
		return;
	if (*map->l_name)
		set_name(caller, map->l_name);
	else
		set_executable(caller);
}
