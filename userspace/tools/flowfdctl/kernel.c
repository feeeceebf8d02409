// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module, its list of all counters and rings in debugfs, and why that cannot be read.
 * Nothing that other users do makes a read of it wait.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <flowfd.h>

#include "flowfdctl.h"

#define DEBUGFS "/sys/kernel/debug"

static bool is_loaded(void)
{
	return access("/sys/module/flowfd", F_OK) == 0;
}

/* Describes an error of libflowfd. */
const char *module_error(int error)
{
	if (error == -ENODEV && is_loaded())
		return "the flowfd module is loaded, but its device is not"
		       " here: a container must be given " FLOWFD_DEVICE;
	return flowfd_strerror(error);
}

/* Whether the first page of a file has a word. */
static bool file_has(const char *name, const char *word)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	char text[4096];
	ssize_t length;

	if (fd < 0)
		return false;
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[length > 0 ? length : 0] = '\0';
	return strstr(text, word);
}

static const char *debugfs_error(void)
{
	struct statfs fs;

	if (file_has("/proc/cmdline", "debugfs=off") ||
	    file_has("/proc/cmdline", "debugfs=no-mount"))
		return "debugfs is switched off on the kernel's command line (debugfs=):"
		       " 'flowfdctl list --pid PID' shows one process";
	if (!file_has("/proc/filesystems", "\tdebugfs\n"))
		return "this kernel has no debugfs (CONFIG_DEBUG_FS):"
		       " 'flowfdctl list --pid PID' shows one process";
	if (statfs(DEBUGFS, &fs) || fs.f_type != DEBUGFS_MAGIC)
		return "debugfs is not mounted: run 'mount -t debugfs none " DEBUGFS
		       "' as root";
	return "the loaded flowfd module has no list in " DEBUGFS ": it is too old for"
	       " flowfdctl " FLOWFD_VERSION;
}

/* kernel_list_error - say why KERNEL_LIST cannot be opened, and what helps */
const char *kernel_list_error(int error)
{
	if (error == EACCES)
		return "only root may see all counters and rings:"
		       " 'flowfdctl list --pid PID' shows one process";
	if (error == EPERM)
		return "this kernel is locked down, and allows no read of " KERNEL_LIST
		       ": 'flowfdctl list --pid PID' shows one process";
	if (error != ENOENT)
		return strerror(error);
	if (!is_loaded())
		return flowfd_strerror(-ENODEV);
	return debugfs_error();
}

/* kernel_list - read all counters and rings; ends the program if that is not possible */
void kernel_list(struct list *list)
{
	struct parser parser = { .list = list };
	int fd = open(KERNEL_LIST, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		errx(EXIT_FAILURE, "%s", kernel_list_error(errno));
	if (!parser_read(&parser, fd))
		err(EXIT_FAILURE, KERNEL_LIST);
}
