/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fault injection of the kernel: a thread can have one of its next allocations or user
 * copies fail, by writing to its file fail-nth.
 */
#ifndef FAULT_INJECTION_H
#define FAULT_INJECTION_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEBUGFS "/sys/kernel/debug/"

static inline bool store_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool stored = fd >= 0 && write(fd, text, strlen(text)) > 0;

	if (fd >= 0)
		close(fd);
	return stored;
}

/* Also for allocations that may sleep, and without a message in the log. */
static inline bool faults_can_be_asked_for(void)
{
	return store_text(DEBUGFS "failslab/ignore-gfp-wait", "N") &&
	       store_text(DEBUGFS "failslab/verbose", "0") &&
	       store_text(DEBUGFS "fail_page_alloc/ignore-gfp-wait", "N") &&
	       store_text(DEBUGFS "fail_page_alloc/ignore-gfp-highmem", "N") &&
	       store_text(DEBUGFS "fail_page_alloc/min-order", "0") &&
	       store_text(DEBUGFS "fail_page_alloc/verbose", "0") &&
	       store_text(DEBUGFS "fail_usercopy/verbose", "0");
}

/* @nth: descriptor of fail-nth of this thread; @step: 0: nothing fails */
static inline void fail_step(int nth, int step)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", step);
	/*
	 * The write counts as a step itself: if that is the one that fails, try again.
	 */
	while (pwrite(nth, text, strlen(text), 0) < 0)
		;
}

/* Whether the last call reached the step that was to fail. */
static inline bool step_failed(int nth)
{
	char text[16] = "";
	bool failed = pread(nth, text, sizeof(text) - 1, 0) > 0 &&
		      atoi(text) == 0;

	fail_step(nth, 0);
	return failed;
}

#endif /* FAULT_INJECTION_H */
