/* SPDX-License-Identifier: MIT */
/* The settings and names that the shim needs of its process. */
#ifndef FLOWFD_PRELOAD_CONTEXT_H
#define FLOWFD_PRELOAD_CONTEXT_H

#include <limits.h>

#include "preload/settings.h"

/**
 * struct context - read once for each process image, constant afterwards
 * @settings: from the environment
 * @executable: base name of the executable
 * @log: file to append reports to; empty: standard error
 * @path: the buffer that @executable points into
 */
struct context {
	struct settings settings;
	const char *executable;
	char log[PATH_MAX];
	char path[PATH_MAX];
};

/** context_get - NULL if the settings are missing or wrong */
const struct context *context_get(void);

#endif /* FLOWFD_PRELOAD_CONTEXT_H */
