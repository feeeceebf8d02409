// SPDX-License-Identifier: GPL-2.0-only
/* What C++ adds: moves, ownership of descriptors, errors, durations; and the ring. */
#include <cerrno>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <string>
#include <thread>
#include <type_traits>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <flowfd.hpp>

using namespace std::chrono_literals;

static_assert(!std::is_copy_constructible_v<flowfd::counter>);
static_assert(!std::is_copy_assignable_v<flowfd::counter>);
static_assert(std::is_nothrow_move_constructible_v<flowfd::counter>);
static_assert(std::is_nothrow_move_assignable_v<flowfd::counter>);
static_assert(!std::is_copy_constructible_v<flowfd::ring>);
static_assert(std::is_nothrow_move_constructible_v<flowfd::ring>);
static_assert(std::is_nothrow_move_assignable_v<flowfd::ring>);

static int checks;
static int failures;

static void ok(bool passed, const char *what)
{
	std::cout << (passed ? "" : "not ") << "ok " << ++checks << " - " << what
		  << std::endl;
	failures += !passed;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void test_moves()
{
	flowfd::counter_settings settings;
	flowfd::counter first;
	int fd = first.native_handle();

	first.add(3);
	{
		flowfd::counter second(std::move(first));
		std::error_code error;

		ok(second.native_handle() == fd && first.native_handle() == -1,
		   "a move takes the descriptor");
		ok(second.take() == 3, "and the count");
		first.add(1, error);
		ok(error == std::errc::bad_file_descriptor, "what was moved from: add");
		ok(first.take(error) == 0 && error == std::errc::bad_file_descriptor, "take");
		ok(!first.try_take(error) && error == std::errc::bad_file_descriptor,
		   "try_take");
		ok(!first.add_for(1, 1ms, error) && error == std::errc::bad_file_descriptor,
		   "add_for");
		first = flowfd::counter(settings);
		first.add(5);
		ok(first.take() == 5, "it can be assigned to");
		fd = second.native_handle();
		second = std::move(first);
		ok(!is_open(fd), "what it had before is closed");
		swap(first, second);
		ok(second.native_handle() == -1 && first.native_handle() >= 0, "swap");
		fd = first.native_handle();
		flowfd::counter *same = &first;
		first = std::move(*same);
		ok(first.native_handle() == fd && is_open(fd), "a move to itself");
		second = std::move(first);
	}
	ok(!is_open(fd), "the end closes it");
}

static void test_errors()
{
	flowfd::counter_settings settings;
	std::error_code error;

	settings.initial = 2;
	settings.maximum = 2;
	try {
		flowfd::counter counter(settings);

		ok(false, "wrong settings throw");
	} catch (const std::system_error &thrown) {
		ok(thrown.code() == std::errc::invalid_argument, "wrong settings throw");
		ok(std::string(thrown.what()).find("flowfd::counter") == 0, "and say where");
	}
	flowfd::counter counter(settings, error);
	ok(error == std::errc::invalid_argument && counter.native_handle() == -1,
	   "or are returned");
	ok(error.category() == flowfd::category() &&
	   std::string(error.category().name()) == "flowfd", "in a category of their own");
	ok(std::error_code(ENODEV, flowfd::category()).message().find("modprobe") !=
	   std::string::npos, "whose texts say what to do");
	ok(error.message().find("below the maximum") != std::string::npos &&
	   error.message().find("EPOLLET") == std::string::npos, "not those of rings");
	ok(flowfd::counter().take_for(1ms, error) == std::nullopt && !error,
	   "a timeout is no error");
	const int wrong = STDIN_FILENO;
	flowfd::counter::from_descriptors(&wrong, 1, error);
	ok(error == std::errc::inappropriate_io_control_operation, "not a counter");
	ok(is_open(STDIN_FILENO), "it stays the caller's");
}

/* The next write(2) to a counter is interrupted. */
static bool interrupts;

extern "C" ssize_t write(int fd, const void *data, size_t size)
{
	if (interrupts && size == sizeof(std::uint64_t)) {
		interrupts = false;
		errno = EINTR;
		return -1;
	}
	return syscall(SYS_write, fd, data, size);
}

static void test_interrupted()
{
	flowfd::counter_settings settings;

	settings.semaphore = true;
	settings.nonblocking = true;
	flowfd::counter counter(settings);
	if (counter.features() & FLOWFD_HAS_MAXIMUM)
		return; /* What is interrupted is an eventfd. */
	interrupts = true;
	bool added = counter.try_add(1);
	bool happened = !interrupts;
	interrupts = true;
	added = counter.add_for(1, 0ms) && added;
	happened = !interrupts && happened;
	interrupts = false;
	ok(added && happened, "what does not wait is repeated after a signal");
	ok(counter.take() == 1 && counter.take() == 1 && !counter.try_take(), "once");
}

static void test_durations()
{
	flowfd::counter counter;
	auto begin = std::chrono::steady_clock::now();

	ok(!counter.take_for(0.02s) && std::chrono::steady_clock::now() - begin >= 20ms,
	   "seconds can be a fraction");
	ok(!counter.take_for(-1s), "a negative duration does not wait");
	ok(!counter.take_for(std::chrono::duration<double>(
		   std::numeric_limits<double>::quiet_NaN())), "nor does one that is no number");
	std::thread adder([&counter] {
		std::this_thread::sleep_for(20ms);
		counter.add(1);
	});
	ok(counter.take_for(std::chrono::hours::max()) == 1, "the longest is for ever");
	adder.join();
}

static void test_received()
{
	flowfd::counter counter;
	std::error_code error;
	flowfd::descriptors sent = counter.descriptors();

	ok(sent.count >= 1 && sent.fds[0] == counter.native_handle(), "descriptors");
	for (unsigned int i = 0; i < sent.count; i++)
		sent.fds[i] = dup(sent.fds[i]);
	flowfd::counter received = flowfd::counter::from_descriptors(sent.fds, sent.count);
	received.add(4);
	ok(counter.take() == 4, "two objects of one counter");
	std::thread adder([&received] {
		std::this_thread::sleep_for(20ms);
		received.add(5);
	});
	ok(counter.take() == 5, "one wakes the other");
	adder.join();
	received = flowfd::counter();
	ok(!is_open(sent.fds[0]) && !is_open(sent.fds[sent.count - 1]),
	   "each has descriptors of its own");
	flowfd::counter moved(std::move(counter));
	counter.descriptors(error);
	ok(error == std::errc::bad_file_descriptor, "what was moved from has none");
	counter.flow(error);
	ok(error == std::errc::bad_file_descriptor, "nor settings");
	flowfd_flow flow = moved.flow();
	flow.maximum = 3;
	flow.set = FLOWFD_SET_MAXIMUM;
	moved.set_flow(flow);
	ok(moved.try_add(2) && !moved.try_add(1), "set_flow");
	flow.maximum = 2;
	moved.set_flow(flow, error);
	ok(error == std::errc::invalid_argument, "a maximum that is not above the count");
}

static void test_key()
{
	flowfd::counter counter;
	std::error_code error;
	flowfd_key key = counter.share(error);

	if (std::string(std::getenv("FLOWFD_BACKEND")) == "fallback") {
		ok(error == std::errc::inappropriate_io_control_operation &&
		   error.message().find("flowfd module") != std::string::npos,
		   "without the module there are no keys");
		if (access("/dev/flowfd", F_OK) == 0)
			return;
		flowfd::counter::open_shared(key, error);
		ok(error == std::errc::no_such_device &&
		   error.message().find("modprobe") != std::string::npos, "nor doors for them");
		return;
	}
	flowfd::counter opened = flowfd::counter::open_shared(key);
	opened.add(3);
	ok(counter.take() == 3, "a counter that was opened by its key");
	key.secret[15]++;
	ok(flowfd::counter::open_shared(key, error).native_handle() == -1 &&
	   error == std::errc::no_such_file_or_directory, "a wrong key");
	key = counter.share();
	opened = flowfd::counter();
	counter = flowfd::counter();
	flowfd::counter::open_shared(key, error);
	ok(error == std::errc::no_such_file_or_directory, "a key after the close");
	flowfd::ring ring(1);
	ok(flowfd_share(ring.get()->fd, &key) == 0, "the key of a ring");
	int before = dup(0);
	close(before);
	flowfd::counter::open_shared(key, error);
	int after = dup(0);
	close(after);
	ok(error == std::errc::inappropriate_io_control_operation && before == after,
	   "opens no counter, and leaves nothing open");
	flowfd::counter moved(std::move(opened));
	opened.share(error);
	ok(error == std::errc::bad_file_descriptor, "what was moved from has none");
}

static void test_ring()
{
	flowfd::ring made(4);
	flowfd::ring ring(std::move(made));
	std::error_code error;
	int ends[2];

	ok(made.native_handle() == -1 && !made.next() && !made.wait_for(0s, error) &&
	   error == std::errc::bad_file_descriptor, "a ring that was moved from");
	if (pipe2(ends, O_NONBLOCK | O_CLOEXEC))
		std::abort();
	ring.add(ends[0], EPOLLIN | EPOLLET, 7);
	std::uint32_t item = ring.add_post(9);
	ok(!ring.next() && !ring.wait_for(1ms), "no event");
	if (write(ends[1], "x", 1) != 1)
		std::abort();
	ok(ring.wait(), "wait");
	std::optional<flowfd_event> event = ring.next();
	ok(event && event->data == 7 && event->events & EPOLLIN, "the event of a file");
	std::thread poster([&ring, item] { ring.post(item, 2); });
	ok(ring.wait_for(30s), "wait for a thread");
	poster.join();
	event = ring.next();
	ok(event && event->data == 9 && event->events == 2, "its post");
	ring.modify(ends[0], EPOLLIN | EPOLLET, 8);
	ok(ring.wait() && (event = ring.next()) && event->data == 8, "modify");
	ring.remove(ends[0]);
	ring.remove(ends[0], error);
	ok(error == std::errc::no_such_file_or_directory, "remove");
	ring.add(ends[0], EPOLLIN, 1, error);
	ok(error == std::errc::invalid_argument &&
	   error.message().find("EPOLLET") != std::string::npos, "add without EPOLLET");
	flowfd::ring(0, error);
	ok(error == std::errc::invalid_argument, "a ring of nothing");
	close(ends[0]);
	close(ends[1]);
}

int main()
{
	test_moves();
	test_errors();
	test_interrupted();
	test_durations();
	test_received();
	test_key();
	test_ring();
	std::cout << "1.." << checks << "\n";
	return failures > 0;
}
