// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes counters with bridges, whose work items are busy or wait for room, and exits.
 * unload.sh removes the module right after.
 */
#include "../bridge_user.h"

int main(void)
{
	for (int i = 0; i < 50; i++) {
		int fd = open_counter(CREATED, 0, EFD_NONBLOCK);
		int in = eventfd(0, EFD_CLOEXEC | (i % 2 ? EFD_SEMAPHORE : 0));
		int out = eventfd(0, EFD_CLOEXEC);

		bool waits = i % 3 == 0;

		if ((waits && set_maximum(fd, 10)) || source(fd, in) ||
		    add(in, 100000) != 8 || (!waits && sink(fd, out)))
			return 1;
		add(fd, 1);
		if (i % 5 == 0)
			close(in);
		if (i % 7 == 0)
			close(out);
		if (i % 11 == 0)
			close(fd);
	}
	return 0;
}
