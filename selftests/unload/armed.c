// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes counters whose next wakeup is deferred to a timer, and exits. unload.sh removes
 * the module right after.
 */
#include "../bucket_watch.h"

int main(void)
{
	for (int i = 0; i < 50; i++) {
		struct watched w;

		if (!watched_open(&w, 1, 1 + i * 20, EPOLLIN))
			return 1;
		add(w.fd, 1);
		add(w.fd, 1);
		if (i == 0 && !wakeup_is_deferred(w.fd))
			return 1;
	}
	return 0;
}
