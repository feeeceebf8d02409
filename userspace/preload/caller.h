/* SPDX-License-Identifier: MIT */
/* Which object file of the process a return address belongs to. */
#ifndef FLOWFD_PRELOAD_CALLER_H
#define FLOWFD_PRELOAD_CALLER_H

/**
 * caller_find - base name of the file that holds @address
 * @executable: base name of the executable
 *
 * "[unknown]" for code of no file. Valid as long as the caller's code is.
 */
const char *caller_find(const void *address, const char *executable);

/** base_name - what follows the last slash of @path */
const char *base_name(const char *path);

#endif /* FLOWFD_PRELOAD_CALLER_H */
