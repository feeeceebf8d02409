/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A control group (version 2) for a test, in a mount of its own, so that the test does
 * not depend on where the system has mounted them.
 */
#ifndef CGROUP_H
#define CGROUP_H

#include "selftest.h"

#include <sys/mount.h>
#include <sys/stat.h>

struct cgroup {
	char mount[32];
	char path[64];
};

static inline int cgroup_open_file(const struct cgroup *g, const char *name,
				   int flags)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", g->path, name);
	return open(path, flags | O_CLOEXEC);
}

/* -1: no such file, or no number in it. */
static inline long long cgroup_number(const struct cgroup *g, const char *name)
{
	int fd = cgroup_open_file(g, name, O_RDONLY);
	char text[32] = "";
	ssize_t n = read(fd, text, sizeof(text) - 1);

	close(fd);
	return n > 0 ? strtoll(text, NULL, 10) : -1;
}

/* Moves the calling process there. */
static inline bool cgroup_enter(const struct cgroup *g)
{
	int fd = cgroup_open_file(g, "cgroup.procs", O_WRONLY);
	bool done = write(fd, "0", 1) == 1;

	close(fd);
	return done;
}

static inline void cgroup_remove(struct cgroup *g)
{
	rmdir(g->path);
	umount2(g->mount, MNT_DETACH);
	rmdir(g->mount);
}

/* False: no control groups, or not this controller. */
static inline bool cgroup_make(struct cgroup *g, const char *controller)
{
	char path[128];
	int fd;

	*g = (struct cgroup){ .mount = "/tmp/cgroup-XXXXXX" };
	if (!mkdtemp(g->mount))
		return false;
	if (mount("none", g->mount, "cgroup2", 0, NULL)) {
		rmdir(g->mount);
		return false;
	}
	snprintf(g->path, sizeof(g->path), "%s/flowfd-%d", g->mount, getpid());
	snprintf(path, sizeof(path), "%s/cgroup.subtree_control", g->mount);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (controller && write(fd, controller, strlen(controller)) < 0) {
		close(fd);
		cgroup_remove(g);
		return false;
	}
	close(fd);
	return !mkdir(g->path, 0755);
}

#endif /* CGROUP_H */
