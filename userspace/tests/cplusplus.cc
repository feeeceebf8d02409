// SPDX-License-Identifier: GPL-2.0-only
/*
 * The headers compile as C++, and their functions link, by their C names, from
 * the shared library. With the module, a ring works.
 */
#include <cerrno>
#include <cstring>
#include <iostream>
#include <string>
#include <sys/epoll.h>
#include <unistd.h>

#include <flowfd.h>

static int checks;
static int failures;

static void ok(bool passed, const char *what)
{
	std::cout << (passed ? "" : "not ") << "ok " << ++checks << " - "
		  << what << "\n";
	failures += !passed;
}

static void test_counter()
{
	flowfd_create_counter counter = {};
	std::string unknown(flowfd_strerror(-EBADF));

	counter.initial = 1;
	counter.maximum = 1;
	ok(flowfd_counter_create_from(&counter, sizeof(counter)) < 0,
	   "create from C++");
	ok(unknown == std::strerror(EBADF), "strerror from C++");
}

static void test_opened()
{
	flowfd_create_counter counter = {};
	flowfd_counter opened;
	uint64_t value = 0;

	ok(flowfd_counter_open(&opened, &counter, sizeof(counter),
			       FLOWFD_FALLBACK | FLOWFD_ONE_CONSUMER) == 0,
	   "open from C++, with or without the module");
	ok(flowfd_counter_is_mapped(&opened) &&
	   flowfd_features(&opened) & FLOWFD_HAS_MEMORY, "it is in memory");
	ok(flowfd_add(&opened, 3) == 0 && flowfd_take(&opened, &value) == 0 && value == 3,
	   "add and take");
	ok(flowfd_try_take(&opened, &value) == -EAGAIN, "and no more");
	flowfd_counter_close(&opened);
	ok(opened.fd == -1, "close");
}

static void test_mapped()
{
	flowfd_create_counter counter = {};
	flowfd_counter mapped;
	uint64_t value = 0;
	int fd;

	ok(flowfd_counter_map(&mapped, -1, FLOWFD_PRODUCER) == -EBADF,
	   "map no descriptor from C++");
	counter.flags = FLOWFD_MAPPED;
	fd = flowfd_counter_create_from(&counter, sizeof(counter));
	if (fd == -ENODEV) {
		std::cout << "ok " << ++checks
			  << " - a mapped counter from C++ # SKIP no module\n";
		return;
	}
	ok(flowfd_counter_map(&mapped, fd, FLOWFD_PRODUCER | FLOWFD_CONSUMER) == 0,
	   "map a counter");
	ok(flowfd_add(&mapped, 3) == 0 && flowfd_take(&mapped, &value) == 0 && value == 3,
	   "add and take");
	ok(flowfd_try_take(&mapped, &value) == -EAGAIN, "and no more");
	flowfd_counter_unmap(&mapped);
	close(fd);
}

static void test_ring()
{
	flowfd_ring ring;
	flowfd_event event;
	int error = flowfd_ring_create(&ring, 1, 0);

	if (error == -ENODEV) {
		std::cout << "ok " << ++checks
			  << " - ring from C++ # SKIP no module\n";
		return;
	}
	int counter = flowfd_counter_create(1, 0);
	ok(error == 0, "create a ring from C++");
	ok(flowfd_ring_add(&ring, counter, EPOLLIN | EPOLLET, 42) == 0,
	   "watch a counter");
	ok(flowfd_ring_wait(&ring, FLOWFD_RING_FOREVER) == 1, "wait");
	ok(flowfd_ring_next(&ring, &event) && event.data == 42 &&
		   event.events == EPOLLIN,
	   "an event");
	ok(flowfd_ring_harvest(&ring, &event, 1) == 0, "and no more");
	flowfd_ring_destroy(&ring);
	close(counter);
}

int main()
{
	test_counter();
	test_opened();
	test_mapped();
	test_ring();
	std::cout << "1.." << checks << "\n";
	return failures > 0;
}
