// SPDX-License-Identifier: GPL-2.0-only
/*
 * The loaded module as sysfs shows it, and why it cannot be used: the module can be
 * loaded without its device being there, as in a container.
 */
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <flowfd.h>

#include "flowfdctl.h"

#define MODULE "/sys/module/flowfd"

/* Returns whether the module is loaded; @version is "" if the module has none. */
bool module_version(char version[MODULE_VERSION_SIZE])
{
	FILE *file = fopen(MODULE "/version", "re");

	*version = '\0';
	if (!file)
		return access(MODULE, F_OK) == 0;
	if (!fgets(version, MODULE_VERSION_SIZE, file))
		*version = '\0';
	version[strcspn(version, "\n")] = '\0';
	fclose(file);
	return true;
}

/* Describes an error of libflowfd. */
const char *module_error(int error)
{
	char version[MODULE_VERSION_SIZE];

	if (error == -ENODEV && module_version(version))
		return "the flowfd module is loaded, but its device is not"
		       " here: a container must be given " FLOWFD_DEVICE;
	return flowfd_strerror(error);
}

/* Ends the program if there is nothing to show and the module cannot be used. */
void need_module(const struct scan *scan)
{
	if (!scan->count && scan->no_module)
		errx(EXIT_FAILURE, "%s", flowfd_strerror(-ENODEV));
}
