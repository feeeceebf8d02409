/* SPDX-License-Identifier: MIT */
/* Functions of libraries that a program may have, or have functions named like. */
#ifndef FLOWFD_PRELOAD_LIBRARY_H
#define FLOWFD_PRELOAD_LIBRARY_H

#include <stdbool.h>

/* Any function of up to six arguments that are integers or pointers. */
typedef long (*library_call)(long first, long second, long third, long fourth,
			     long fifth, long sixth);

/**
 * struct library_function - one that the shim stands in front of
 * @name: its name
 * @library: how the base name of each file of the library begins
 * @sonames: of its versions
 * @early: what the program was started with; NULL: nothing
 * @early_genuine: is that of the library?
 */
struct library_function {
	const char *name;
	const char *library;
	const char *sonames[2];
	library_call early;
	bool early_genuine;
};

/**
 * struct found - the function that a call is for
 * @call: NULL: there is none
 * @genuine: it is of the library, not one with the same name
 */
struct found {
	library_call call;
	bool genuine;
};

/** library_find_early - to be called by a constructor */
void library_find_early(struct library_function *function);

/**
 * library_find - the function that code at @address would call
 *
 * Also if the library that has it was loaded for that code alone, by dlopen(3).
 * If it was not there when the program was started, not in a signal handler.
 */
struct found library_find(const struct library_function *function,
			  const void *address);

#endif /* FLOWFD_PRELOAD_LIBRARY_H */
