// SPDX-License-Identifier: GPL-2.0-only
/* What a list does not have, in words. */
#include <inttypes.h>
#include <string.h>

#include <flowfd.h>

#include "flowfdctl.h"

static unsigned int unfinished(const struct scan *scan)
{
	return scan->processes - scan->finished;
}

/* scan_is_complete - does it have all that this user may see? */
bool scan_is_complete(const struct scan *scan)
{
	return !scan->unread && !scan->unknown && !scan->no_room &&
	       !scan->watches_left && !scan->stuck && !scan->too_many &&
	       !unfinished(scan);
}

/* A line of its own for a number of things, if there is one. */
static size_t remark(FILE *file, const char *prefix, uint64_t count,
		     const char *things, const char *thing, const char *why)
{
	if (!count)
		return 0;
	fprintf(file, "%s%" PRIu64 " %s: %s\n", prefix, count,
		count == 1 ? thing : things, why);
	return 1;
}

/* About what, and whether there was anything else. */
static size_t remark_stuck(FILE *file, const char *prefix,
			   const struct scan *scan)
{
	if (!scan->stuck)
		return 0;
	fprintf(file, "%sthe kernel did not answer about ", prefix);
	if (scan->stuck_at == AT_PROC)
		fprintf(file, "/proc");
	else if (scan->stuck_at == AT_MODULE)
		fprintf(file, FLOWFD_DEVICE " or its module");
	else
		fprintf(file, "process %d", scan->stuck_at);
	if (scan->stuck > 1)
		fprintf(file, " and %u more", scan->stuck - 1);
	fprintf(file, "%s\n", scan->processes ? "" : ": nothing was looked at");
	return 1;
}

/**
 * scan_remark - say what is not there, and why
 * @scan: what is there
 * @file: where to
 * @prefix: of each line
 *
 * Returns the number of lines.
 */
size_t scan_remark(const struct scan *scan, FILE *file, const char *prefix)
{
	size_t lines = 0;

	lines += remark(file, prefix, scan->hidden,
			"processes are not shown", "process is not shown",
			"this user may not look into them");
	lines += remark(file, prefix, scan->unknown,
			"descriptors are not shown", "descriptor is not shown",
			"flowfdctl " FLOWFD_VERSION
			" does not fit the loaded module");
	lines += remark(file, prefix, scan->unread,
			"descriptors or processes could not be read",
			"descriptor or process could not be read",
			strerror(scan->unread_errno));
	lines += remark(file, prefix, scan->no_room,
			"descriptors are not shown", "descriptor is not shown",
			"there are too many");
	lines += remark(file, prefix, scan->watches_left,
			"watches are not shown", "watch is not shown",
			"there are too many");
	lines += remark(file, prefix, unfinished(scan),
			"processes were not looked at, or not at all of them",
			"process was not looked at, or not at all of it",
			"the time was over");
	if (scan->too_many)
		lines += fprintf(file, "%sthere are more processes than can be"
				       " looked at\n", prefix) > 0;
	return lines + remark_stuck(file, prefix, scan);
}
