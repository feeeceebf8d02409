// SPDX-License-Identifier: GPL-2.0-only
/*
 * The header compiles as C++, and its functions link, by their C names, from
 * the shared library.
 */
#include <cerrno>
#include <cstring>
#include <iostream>
#include <string>

#include <flowfd.h>

int main()
{
	flowfd_create_counter counter = {};
	std::string unknown(flowfd_strerror(-EBADF));

	counter.initial = 1;
	counter.maximum = 1;
	int fd = flowfd_counter_create_from(&counter, sizeof(counter));
	bool refused = fd < 0;
	bool same = unknown == std::strerror(EBADF);

	std::cout << (refused ? "" : "not ") << "ok 1 - create from C++\n"
		  << (same ? "" : "not ") << "ok 2 - strerror from C++\n"
		  << "1..2\n";
	return !(refused && same);
}
