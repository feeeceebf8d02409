/* SPDX-License-Identifier: MIT */
/* Which object file of the process a return address belongs to. */
#ifndef FLOWFD_PRELOAD_CALLER_H
#define FLOWFD_PRELOAD_CALLER_H

#include <dlfcn.h>
#include <stdbool.h>

/**
 * caller_find - base name of the file that holds @address
 * @address: in code
 * @executable: base name of the executable
 *
 * Returns "[unknown]" for code that is in no file. The string is valid while the file
 * is loaded.
 */
const char *caller_find(const void *address, const char *executable);

#ifdef DLFO_EH_SEGMENT_TYPE
/**
 * caller_find_loaded - find the file that holds @address, without a lock
 * @address: in code
 * @info: receives dli_fbase and dli_fname, whose address no other loaded file has
 *
 * Returns false if no file holds it, or the C library cannot tell. Other C libraries
 * than glibc do not have this.
 */
bool caller_find_loaded(const void *address, Dl_info *info);
#endif

/** base_name - the part of @path behind its last slash */
const char *base_name(const char *path);

#endif /* FLOWFD_PRELOAD_CALLER_H */
