/* SPDX-License-Identifier: MIT */
/* Which object file of the process a return address belongs to. */
#ifndef FLOWFD_PRELOAD_CALLER_H
#define FLOWFD_PRELOAD_CALLER_H

/**
 * caller_find - base name of the file that holds @address
 * @address: in code
 * @executable: base name of the executable
 *
 * Returns "[unknown]" for code that is in no file. The string is valid while the file
 * is loaded.
 */
const char *caller_find(const void *address, const char *executable);

/** base_name - the part of @path behind its last slash */
const char *base_name(const char *path);

#endif /* FLOWFD_PRELOAD_CALLER_H */
