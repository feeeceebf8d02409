// SPDX-License-Identifier: GPL-2.0-only
/*
 * The log of the kernel: whether it has a new report. Reports are what
 * selftests/lab/splats lists, as for every virtual machine.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int kmsg = -1;
static regex_t complaint;

/* The lines of the file without comments, joined by "|". */
static char *read_splats(const char *path)
{
	char line[256], *all = calloc(1, 4096);
	FILE *f = fopen(path, "r");

	while (f && all && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (*line == '#' || !*line)
			continue;
		if (strlen(all) + strlen(line) + 2 > 4096) {
			fclose(f);
			return NULL;
		}
		if (*all)
			strcat(all, "|");
		strcat(all, line);
	}
	if (f)
		fclose(f);
	return all;
}

bool log_open(const char *splats)
{
	char *expression = read_splats(splats);
	bool is_open;

	kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	is_open = kmsg >= 0 && lseek(kmsg, 0, SEEK_END) >= 0 &&
		  expression && *expression &&
		  !regcomp(&complaint, expression, REG_EXTENDED | REG_NOSUB);
	free(expression);
	return is_open;
}

/* A fault that was injected is logged with a trace: that is no report. */
static bool is_asked_for(const char *text)
{
	static bool inside;

	if (strstr(text, ": vmalloc error"))
		inside = true;
	if (!inside)
		return false;
	if (strstr(text, "</TASK>"))
		inside = false;
	return true;
}

const char *log_complaint(void)
{
	static char found[2048];
	char record[sizeof(found)], *text;
	ssize_t n;

	*found = '\0';
	while ((n = read(kmsg, record, sizeof(record) - 1)) > 0) {
		record[n] = '\0';
		text = strchr(record, ';');
		text = text ? text + 1 : record;
		text[strcspn(text, "\n")] = '\0';
		if (!is_asked_for(text) && !*found &&
		    !regexec(&complaint, text, 0, NULL, 0))
			strcpy(found, text);
	}
	return *found ? found : NULL;
}
