// SPDX-License-Identifier: GPL-2.0-only
/* Messages about what is missing in a scan. */
#include <err.h>
#include <inttypes.h>
#include <string.h>

#include <flowfd.h>

#include "flowfdctl.h"

static unsigned int unfinished(const struct scan *scan)
{
	return scan->processes - scan->finished;
}

/* scan_is_complete - whether it has everything that this user may see */
bool scan_is_complete(const struct scan *scan)
{
	return !scan->unread && !scan->unknown && !scan->no_room && !scan->watches_left &&
	       !scan->stuck && !scan->crowd.all && !scan->too_many && !scan->ended &&
	       !unfinished(scan);
}

/* Prints a line for a number of things, unless it is 0. */
static size_t remark(FILE *file, const char *prefix, uint64_t count, const char *things,
		     const char *thing, const char *why)
{
	if (!count)
		return 0;
	fprintf(file, "%s%" PRIu64 " %s: %s\n", prefix, count,
		count == 1 ? thing : things, why);
	return 1;
}

static void print_stuck(FILE *file, const struct scan *scan)
{
	if (scan->stuck_at == AT_START) {
		fprintf(file, "the process that reads /proc " START_TEXT);
		return;
	}
	fprintf(file, "the kernel did not answer about ");
	if (scan->stuck_at == AT_PROC)
		fprintf(file, "/proc");
	else if (scan->stuck_at == AT_MODULE)
		fprintf(file, FLOWFD_DEVICE " or its module");
	else if (scan->stuck_at == AT_SLOTS)
		fprintf(file, SLOTS_FILE);
	else
		fprintf(file, "process %d", scan->stuck_at);
	if (scan->stuck > 1)
		fprintf(file, " and %u more", scan->stuck - 1);
}

/* Names one process, and says whether any other was inspected. */
static size_t remark_stuck(FILE *file, const char *prefix, const struct scan *scan)
{
	if (!scan->stuck)
		return 0;
	fputs(prefix, file);
	print_stuck(file, scan);
	fprintf(file, "%s\n", scan->processes ? "" : ": nothing was inspected");
	return 1;
}

/* crowd_print - print a line about processes that are too many */
void crowd_print(const struct crowd *crowd, FILE *file, const char *prefix)
{
	fprintf(file, "%sthere are %u processes of flowfdctl already", prefix,
		crowd->all);
	if (crowd->one)
		fprintf(file, " (one is %d)", crowd->one);
	fprintf(file, ", and the kernel does not answer %u of them: no more are made\n",
		crowd->blocked);
}

/* crowd_warn - say once that nothing limits the child processes of root's calls */
void crowd_warn(const struct crowd *crowd)
{
	static bool done;

	if (!crowd->uncounted || done)
		return;
	warnx(SLOTS_FILE ": %s: nothing limits how many processes calls of root leave"
			 " behind",
	      crowd->uncounted == NOT_ROOTS ? "not a file of root's alone" :
					      strerror(crowd->uncounted));
	done = true;
}

/**
 * scan_remark - print what is missing in a scan, and why
 * @scan: scan
 * @file: to print to
 * @prefix: of each line
 *
 * Returns the number of lines.
 */
size_t scan_remark(const struct scan *scan, FILE *file, const char *prefix)
{
	size_t lines = 0;

	lines += remark(file, prefix, scan->hidden, "processes are not shown",
			"process is not shown", "this user may not inspect them");
	lines += remark(file, prefix, scan->unknown, "descriptors are not shown",
			"descriptor is not shown",
			"flowfdctl " FLOWFD_VERSION " does not match the loaded module");
	lines += remark(
		file, prefix, scan->unread, "descriptors or processes could not be read",
		"descriptor or process could not be read", strerror(scan->unread_errno));
	lines += remark(file, prefix, scan->no_room, "descriptors are not shown",
			"descriptor is not shown", "there are too many");
	lines += remark(file, prefix, scan->watches_left, "watches are not shown",
			"watch is not shown", "there are too many");
	lines += remark(file, prefix, unfinished(scan),
			"processes were not inspected, or not completely",
			"process was not inspected, or not completely", "out of time");
	lines += remark(file, prefix, scan->ended, "processes ended during the scan",
			"process ended during the scan",
			"there was no time for those started meanwhile");
	if (scan->too_many)
		lines += fprintf(file,
				 "%sthere are more processes than can be"
				 " inspected\n",
				 prefix) > 0;
	if (scan->crowd.all) {
		crowd_print(&scan->crowd, file, prefix);
		lines++;
	}
	return lines + remark_stuck(file, prefix, scan);
}
