/* SPDX-License-Identifier: MIT */
/* Functions of a library that may be loaded when the program starts, later, or never. */
#ifndef FLOWFD_PRELOAD_LIBRARY_H
#define FLOWFD_PRELOAD_LIBRARY_H

/**
 * struct library_function - a function that the shim wraps
 * @name: its name
 * @library: prefix of the base name of each file of the library
 * @early: the function that was there when the program started; NULL: none
 */
struct library_function {
	const char *name;
	const char *library;
	void *early;
};

/** library_find_early - fill in @early; must be called by a constructor */
void library_find_early(struct library_function *function);

/**
 * library_find - find the function now
 * @function: library_find_early() was called for it
 *
 * Returns NULL if the library is not loaded. Must not run in a signal handler, nor in a
 * child that a process with threads has forked, unless the function was there when the
 * program started.
 */
void *library_find(const struct library_function *function);

#endif /* FLOWFD_PRELOAD_LIBRARY_H */
