/* SPDX-License-Identifier: MIT */
/* With the module or without it: what the program and its environment say. */
#ifndef FLOWFD_LIB_BACKEND_H
#define FLOWFD_LIB_BACKEND_H

enum flowfd__backend { FLOWFD__ANY, FLOWFD__MODULE, FLOWFD__FALLBACK };

/**
 * flowfd__backend - choose how something is created
 * @may_fall_back: the program has set FLOWFD_FALLBACK
 *
 * Returns an enum flowfd__backend, or -EINVAL for an unknown FLOWFD_BACKEND.
 */
int flowfd__backend(int may_fall_back);

/**
 * flowfd__falls_back - whether to do without the module
 * @backend: from flowfd__backend()
 * @error: of the attempt with the module; not used with FLOWFD__FALLBACK
 */
int flowfd__falls_back(int backend, int error);

#endif /* FLOWFD_LIB_BACKEND_H */
