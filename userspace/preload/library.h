/* SPDX-License-Identifier: MIT */
/* Library functions that a program may have, or may have others of the same name. */
#ifndef FLOWFD_PRELOAD_LIBRARY_H
#define FLOWFD_PRELOAD_LIBRARY_H

#include <stdbool.h>

/* Any function of up to six arguments that are integers or pointers. */
typedef long (*library_call)(long first, long second, long third, long fourth, long fifth,
			     long sixth);

/**
 * struct library_function - a function that the shim wraps
 * @name: its name
 * @library: prefix of the base name of each file of the library
 * @early: the function that was there when the program started; NULL: none
 * @early_genuine: whether @early is of the library
 */
struct library_function {
	const char *name;
	const char *library;
	library_call early;
	bool early_genuine;
};

/**
 * struct found - the function that a call was meant for
 * @call: NULL: there is none
 * @genuine: it is of the library, not another one of the same name
 */
struct found {
	library_call call;
	bool genuine;
};

/** library_find_early - fill in @early; must be called by a constructor */
void library_find_early(struct library_function *function);

/**
 * library_find - find the function that code at @address would call
 * @function: library_find_early() was called for it
 * @address: in the code of the caller
 *
 * Finds it also in a library that dlopen(3) loaded for that code alone: first in the
 * object that has the code, then in those that this one needs. Must not run in a signal
 * handler, unless the function was there when the program started.
 */
struct found library_find(const struct library_function *function, const void *address);

#endif /* FLOWFD_PRELOAD_LIBRARY_H */
