/* SPDX-License-Identifier: MIT */
/*
 * libflowfd for C++17: counters and rings that clean up after themselves.
 *
 *	flowfd::counter_settings settings;
 *	settings.maximum = 65;
 *	flowfd::counter counter(settings);	// with the module or without it
 *	counter.add(1);				// sleeps while there is no room
 *	std::uint64_t count = counter.take();	// sleeps while there is no count
 *
 * Each function is here twice. One throws std::system_error; the other takes a
 * std::error_code, and throws nothing. Both compare with std::errc, as in
 * error == std::errc::interrupted, and their text says what to do. What has not happened
 * after a while, or at once, is no error: it is an empty std::optional, or false.
 *
 * An object can be moved, and not copied. One that was moved from has no descriptor: its
 * functions fail with std::errc::bad_file_descriptor. flowfd.h, flowfd-counter.h and
 * flowfd-ring.h say what may be done at the same time, and all errors.
 */
#ifndef FLOWFD_HPP
#define FLOWFD_HPP

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <unistd.h>

#include <flowfd.h>

namespace flowfd
{

namespace detail
{

class errors final : public std::error_category {
public:
	explicit errors(const char *(*text)(int)) noexcept : text_(text) {}

	const char *name() const noexcept override { return "flowfd"; }

	std::string message(int value) const override { return text_(-value); }

	std::error_condition default_error_condition(int value) const noexcept override
	{
		return { value, std::generic_category() };
	}

private:
	const char *(*text_)(int);
};

} // namespace detail

/** the category of errors: their values are those of errno, their texts flowfd_strerror()'s */
inline const std::error_category &category() noexcept
{
	static const detail::errors only(flowfd_strerror);

	return only;
}

/** the same for rings, with flowfd_ring_strerror() */
inline const std::error_category &ring_category() noexcept
{
	static const detail::errors only(flowfd_ring_strerror);

	return only;
}

namespace detail
{

inline int set(std::error_code &error, int result,
	       const std::error_category &of = category()) noexcept
{
	error = result < 0 ? std::error_code(-result, of) : std::error_code();
	return result;
}

inline void check(const std::error_code &error, const char *what)
{
	if (error)
		throw std::system_error(error, what);
}

/* Nanoseconds; 0: at once. What is longer than they can say is for ever. */
template <class Rep, class Period>
std::uint64_t nanoseconds(const std::chrono::duration<Rep, Period> &time) noexcept
{
	using std::chrono::duration;
	using longest = std::chrono::nanoseconds;

	if (!(time > duration<Rep, Period>::zero()))
		return 0;
	if (duration<long double, std::nano>(time) >= longest::max())
		return UINT64_MAX;
	/* Not shorter than it was asked for. */
	return std::uint64_t(std::chrono::ceil<longest>(time).count());
}

} // namespace detail

/** what happens to an add that does not fit */
enum class overflow : std::uint32_t {
	wait = FLOWFD_OVERFLOW_WAIT,
	/** the add fails, as if the counter were non-blocking */
	fail = FLOWFD_OVERFLOW_FAIL,
	/** what fits is added, and the rest is lost */
	saturate = FLOWFD_OVERFLOW_SATURATE,
	/** all of it is lost */
	drop = FLOWFD_OVERFLOW_DROP,
};

/** what makes a counter, to be sent to another process; they stay the counter's */
struct descriptors {
	int fds[FLOWFD_EXPORT_MAX];
	unsigned int count;
};

/** settings of a new counter; as they are, it is an eventfd(2) that works in memory */
struct counter_settings {
	std::uint64_t initial = 0;
	/** what the count stays below; 0: there is no limit */
	std::uint64_t maximum = 0;
	flowfd::overflow overflow = overflow::wait;
	/** a take takes 1 */
	bool semaphore = false;
	/** no call waits; those of a timeout neither */
	bool nonblocking = false;
	/** the descriptor is not closed by execve(2) */
	bool keep_on_exec = false;
	/** tokens, the longest burst of wakeups, and tokens per second; 0: all wakeups */
	std::uint32_t bucket_capacity = 0;
	std::uint32_t bucket_rate = 0;
	/** without the module there is no bucket, and that is no error */
	bool optional_bucket = false;
	/** without the module, an eventfd(2) and memory; false: an error */
	bool fallback = true;
	/**
	 * One thread at a time takes or polls. Before any thread polls the descriptor, or
	 * waits in a take, try_take() has found nothing. Without the module this saves two
	 * system calls for each take.
	 */
	bool one_consumer = false;
	/** nobody polls the descriptor: threads sleep in calls alone, which is cheaper */
	bool no_poll = false;
};

/** a counter; any number of threads may use it, also while another one waits in it */
class counter
{
public:
	/** @throws std::system_error as flowfd_counter_open() */
	explicit counter(const counter_settings &settings = {})
	{
		std::error_code error;

		open(settings, error);
		detail::check(error, "flowfd::counter");
	}

	/** after an error it is as one that was moved from */
	counter(const counter_settings &settings, std::error_code &error) noexcept
	{
		open(settings, error);
	}

	/** of another process, from its descriptors(); @fds are the counter's, but after an error */
	static counter from_descriptors(const int *fds, unsigned int count)
	{
		std::error_code error;
		counter made = from_descriptors(fds, count, error);

		detail::check(error, "flowfd::counter::from_descriptors");
		return made;
	}

	static counter from_descriptors(const int *fds, unsigned int count,
					std::error_code &error) noexcept
	{
		counter made{ closed() };
		flowfd_counter imported;

		if (!detail::set(error, flowfd_counter_import(&imported, fds, count)))
			made.c_ = imported;
		return made;
	}

	/** for SCM_RIGHTS of unix(7), in this order; whoever has them has the counter */
	flowfd::descriptors descriptors() const
	{
		std::error_code error;
		flowfd::descriptors found = descriptors(error);

		detail::check(error, "flowfd::counter::descriptors");
		return found;
	}

	flowfd::descriptors descriptors(std::error_code &error) const noexcept
	{
		flowfd::descriptors found = {};
		int count = is_open() ? flowfd_counter_export(&c_, found.fds) : -EBADF;

		if (detail::set(error, count) > 0)
			found.count = unsigned(count);
		return found;
	}

	/** of another process, by the key that share() has given there */
	static counter open_shared(const flowfd_key &key)
	{
		std::error_code error;
		counter made = open_shared(key, error);

		detail::check(error, "flowfd::counter::open_shared");
		return made;
	}

	static counter open_shared(const flowfd_key &key, std::error_code &error) noexcept
	{
		counter made{ closed() };
		flowfd_counter opened;
		int fd = flowfd_open_shared(&key, 0);

		if (detail::set(error, fd) < 0)
			return made;
		if (detail::set(error, flowfd_counter_map(&opened, fd,
							  FLOWFD_PRODUCER | FLOWFD_CONSUMER)))
			::close(fd);
		else
			made.c_ = opened;
		return made;
	}

	/**
	 * The key of the counter, which can lie in memory that processes share, or in a file;
	 * whoever knows it has the counter. Without the module there are none.
	 */
	flowfd_key share() const
	{
		std::error_code error;
		flowfd_key key = share(error);

		detail::check(error, "flowfd::counter::share");
		return key;
	}

	flowfd_key share(std::error_code &error) const noexcept
	{
		flowfd_key key = {};

		detail::set(error, is_open() ? flowfd_share(c_.fd, &key) : -EBADF);
		return key;
	}

	counter(counter &&other) noexcept : c_(std::exchange(other.c_, closed())) {}

	counter &operator=(counter &&other) noexcept
	{
		counter(std::move(other)).swap(*this);
		return *this;
	}

	~counter()
	{
		if (is_open())
			flowfd_counter_close(&c_);
	}

	void swap(counter &other) noexcept { std::swap(c_, other.c_); }

	/** adds; waits for room */
	void add(std::uint64_t value)
	{
		std::error_code error;

		add(value, error);
		detail::check(error, "flowfd::counter::add");
	}

	void add(std::uint64_t value, std::error_code &error) noexcept
	{
		detail::set(error, is_open() ? flowfd_add(&c_, value) : -EBADF);
	}

	/** adds if there is room; @return whether there was */
	bool try_add(std::uint64_t value)
	{
		std::error_code error;
		bool added = try_add(value, error);

		detail::check(error, "flowfd::counter::try_add");
		return added;
	}

	bool try_add(std::uint64_t value, std::error_code &error) noexcept
	{
		int ret;

		/* It waits for nothing, so a signal ends nothing. */
		do {
			ret = write_with(value, 0, FLOWFD_NONBLOCK);
		} while (ret == -EINTR);
		return happened(ret, error);
	}

	/** adds; waits so long for room; @return whether there was any */
	template <class Rep, class Period>
	bool add_for(std::uint64_t value, const std::chrono::duration<Rep, Period> &timeout)
	{
		std::error_code error;
		bool added = add_for(value, timeout, error);

		detail::check(error, "flowfd::counter::add_for");
		return added;
	}

	template <class Rep, class Period>
	bool add_for(std::uint64_t value, const std::chrono::duration<Rep, Period> &timeout,
		     std::error_code &error) noexcept
	{
		std::uint64_t time = detail::nanoseconds(timeout);

		if (!time)
			return try_add(value, error);
		return happened(write_with(value, time, 0), error);
	}

	/** takes the count, which is 0 then; waits until there is one; 0: an error */
	std::uint64_t take()
	{
		std::error_code error;
		std::uint64_t value = take(error);

		detail::check(error, "flowfd::counter::take");
		return value;
	}

	std::uint64_t take(std::error_code &error) noexcept
	{
		std::uint64_t value = 0;

		if (detail::set(error, is_open() ? flowfd_take(&c_, &value) : -EBADF))
			return 0;
		return value;
	}

	/** takes the count, if there is one */
	std::optional<std::uint64_t> try_take()
	{
		std::error_code error;
		std::optional<std::uint64_t> value = try_take(error);

		detail::check(error, "flowfd::counter::try_take");
		return value;
	}

	std::optional<std::uint64_t> try_take(std::error_code &error) noexcept
	{
		std::uint64_t value;
		int ret;

		do {
			ret = is_open() ? flowfd_try_take(&c_, &value) : -EBADF;
		} while (ret == -EINTR);
		if (!happened(ret, error))
			return std::nullopt;
		return value;
	}

	/** takes the count; waits so long until there is one */
	template <class Rep, class Period>
	std::optional<std::uint64_t>
	take_for(const std::chrono::duration<Rep, Period> &timeout)
	{
		std::error_code error;
		std::optional<std::uint64_t> value = take_for(timeout, error);

		detail::check(error, "flowfd::counter::take_for");
		return value;
	}

	template <class Rep, class Period>
	std::optional<std::uint64_t>
	take_for(const std::chrono::duration<Rep, Period> &timeout,
		 std::error_code &error) noexcept
	{
		std::uint64_t time = detail::nanoseconds(timeout);
		std::uint64_t value;

		if (!time)
			return try_take(error);
		if (!happened(is_open() ? flowfd_take_with(&c_, &value, time, 0) :
					  -EBADF, error))
			return std::nullopt;
		return value;
	}

	/** settings, count, and what was lost, of one moment with the module */
	flowfd_flow flow() const
	{
		std::error_code error;
		flowfd_flow found = flow(error);

		detail::check(error, "flowfd::counter::flow");
		return found;
	}

	flowfd_flow flow(std::error_code &error) const noexcept
	{
		flowfd_flow found = {};

		detail::set(error, is_open() ? flowfd_counter_get_flow(&c_, &found,
								       sizeof(found)) :
					       -EBADF);
		return found;
	}

	/** sets what FLOWFD_SET_* bits in @flow.set say; 0: all */
	void set_flow(const flowfd_flow &flow)
	{
		std::error_code error;

		set_flow(flow, error);
		detail::check(error, "flowfd::counter::set_flow");
	}

	void set_flow(const flowfd_flow &flow, std::error_code &error) noexcept
	{
		detail::set(error, is_open() ? flowfd_counter_set_flow(&c_, &flow, sizeof(flow)) :
					       -EBADF);
	}

	/** for poll(2), epoll(7), or boost::asio::posix::stream_descriptor; stays the counter's */
	int native_handle() const noexcept { return c_.fd; }

	/** whether adds and takes are in memory */
	bool is_mapped() const noexcept { return flowfd_counter_is_mapped(&c_); }

	/** FLOWFD_HAS_* bits */
	unsigned int features() const noexcept { return flowfd_features(&c_); }

	/** for the functions of C; all but those that unmap and close it */
	const flowfd_counter *get() const noexcept { return &c_; }

private:
	explicit counter(const flowfd_counter &c) noexcept : c_(c) {}

	static flowfd_counter closed() noexcept
	{
		flowfd_counter c = {};

		c.fd = -1;
		return c;
	}

	void open(const counter_settings &settings, std::error_code &error) noexcept
	{
		flowfd_create_counter create = {};
		unsigned int options = 0;
		flowfd_counter made;

		create.initial = settings.initial;
		create.maximum = settings.maximum;
		create.qos = { settings.bucket_capacity, settings.bucket_rate };
		create.flags = (settings.semaphore ? FLOWFD_SEMAPHORE : 0) |
			       (settings.nonblocking ? FLOWFD_NONBLOCK : 0) |
			       (settings.keep_on_exec ? FLOWFD_KEEP_ON_EXEC : 0);
		options = (settings.fallback ? FLOWFD_FALLBACK : 0) |
			  (settings.optional_bucket ? FLOWFD_OPTIONAL_BUCKET : 0) |
			  (settings.one_consumer ? FLOWFD_ONE_CONSUMER : 0) |
			  (settings.no_poll ? FLOWFD_NO_POLL : 0);
		if (detail::set(error, flowfd_counter_open(&made, &create, sizeof(create),
							   options)))
			return;
		c_ = made;
		if (settings.overflow == overflow::wait)
			return;
		flowfd_flow flow = {};

		flow.overflow = std::uint32_t(settings.overflow);
		flow.set = FLOWFD_SET_OVERFLOW;
		set_flow(flow, error);
		if (error)
			*this = counter{ closed() };
	}

	bool is_open() const noexcept { return c_.fd >= 0; }

	int write_with(std::uint64_t value, std::uint64_t timeout, unsigned int flags) noexcept
	{
		return is_open() ? flowfd_add_with(&c_, value, timeout, flags) :
				   -EBADF;
	}

	static bool happened(int result, std::error_code &error) noexcept
	{
		bool waited = result == -EAGAIN || result == -ETIMEDOUT;

		return detail::set(error, waited ? 0 : result) == 0 && !waited;
	}

	flowfd_counter c_ = closed();
};

inline void swap(counter &one, counter &other) noexcept
{
	one.swap(other);
}

/** a ring; one thread at a time takes and waits, any thread adds, removes and posts */
class ring
{
public:
	/** for so many files and posts; @throws std::system_error as flowfd_ring_create() */
	explicit ring(std::uint32_t max_items, bool fallback = true)
	{
		std::error_code error;

		open(max_items, fallback, error);
		detail::check(error, "flowfd::ring");
	}

	ring(std::uint32_t max_items, std::error_code &error, bool fallback = true) noexcept
	{
		open(max_items, fallback, error);
	}

	/** while nobody uses it */
	ring(ring &&other) noexcept : r_(std::exchange(other.r_, closed())) {}

	ring &operator=(ring &&other) noexcept
	{
		ring moved(std::move(other));

		std::swap(r_, moved.r_);
		return *this;
	}

	~ring()
	{
		if (is_open())
			flowfd_ring_destroy(&r_);
	}

	/** watches a file that does not block; @events must have EPOLLET */
	void add(int fd, std::uint32_t events, std::uint64_t data)
	{
		std::error_code error;

		add(fd, events, data, error);
		detail::check(error, "flowfd::ring::add");
	}

	void add(int fd, std::uint32_t events, std::uint64_t data,
		 std::error_code &error) noexcept
	{
		set(error, is_open() ? flowfd_ring_add(&r_, fd, events, data) : -EBADF);
	}

	/** changes a watch, or arms one of EPOLLONESHOT again */
	void modify(int fd, std::uint32_t events, std::uint64_t data)
	{
		std::error_code error;

		modify(fd, events, data, error);
		detail::check(error, "flowfd::ring::modify");
	}

	void modify(int fd, std::uint32_t events, std::uint64_t data,
		    std::error_code &error) noexcept
	{
		set(error, is_open() ? flowfd_ring_mod(&r_, fd, events, data) : -EBADF);
	}

	/** ends a watch: before the file is closed */
	void remove(int fd)
	{
		std::error_code error;

		remove(fd, error);
		detail::check(error, "flowfd::ring::remove");
	}

	void remove(int fd, std::error_code &error) noexcept
	{
		set(error, is_open() ? flowfd_ring_del(&r_, fd) : -EBADF);
	}

	/** an item for post(); @return its number */
	std::uint32_t add_post(std::uint64_t data)
	{
		std::error_code error;
		std::uint32_t item = add_post(data, error);

		detail::check(error, "flowfd::ring::add_post");
		return item;
	}

	std::uint32_t add_post(std::uint64_t data, std::error_code &error) noexcept
	{
		int item = is_open() ? flowfd_ring_add_post(&r_, data) : -EBADF;

		return set(error, item) < 0 ? 0 : std::uint32_t(item);
	}

	/** tells the consumer, from any thread, in memory */
	void post(std::uint32_t item, std::uint32_t bits)
	{
		std::error_code error;

		post(item, bits, error);
		detail::check(error, "flowfd::ring::post");
	}

	void post(std::uint32_t item, std::uint32_t bits, std::error_code &error) noexcept
	{
		set(error, is_open() ? flowfd_ring_post(&r_, item, bits) : -EBADF);
	}

	/** takes an event, in memory, if there is one */
	std::optional<flowfd_event> next() noexcept
	{
		flowfd_event event;

		if (!is_open() || !flowfd_ring_next(&r_, &event))
			return std::nullopt;
		return event;
	}

	/** waits for an event; @return whether there may be one */
	bool wait()
	{
		std::error_code error;
		bool any = wait(error);

		detail::check(error, "flowfd::ring::wait");
		return any;
	}

	bool wait(std::error_code &error) noexcept
	{
		return waited(FLOWFD_RING_FOREVER, error);
	}

	template <class Rep, class Period>
	bool wait_for(const std::chrono::duration<Rep, Period> &timeout)
	{
		std::error_code error;
		bool any = wait_for(timeout, error);

		detail::check(error, "flowfd::ring::wait_for");
		return any;
	}

	template <class Rep, class Period>
	bool wait_for(const std::chrono::duration<Rep, Period> &timeout,
		      std::error_code &error) noexcept
	{
		return waited(detail::nanoseconds(timeout), error);
	}

	/** for poll(2) and epoll(7): after next() has found nothing */
	int native_handle() const noexcept { return r_.fd; }

	/** for the functions of C; all but flowfd_ring_destroy() */
	flowfd_ring *get() noexcept { return &r_; }

private:
	static flowfd_ring closed() noexcept
	{
		flowfd_ring r = {};

		r.fd = -1;
		return r;
	}

	void open(std::uint32_t max_items, bool fallback, std::error_code &error) noexcept
	{
		flowfd_ring made;

		if (!set(error, flowfd_ring_create(&made, max_items,
						   fallback ? FLOWFD_FALLBACK : 0)))
			r_ = made;
	}

	bool is_open() const noexcept { return r_.fd >= 0; }

	static int set(std::error_code &error, int result) noexcept
	{
		return detail::set(error, result, ring_category());
	}

	bool waited(std::uint64_t timeout, std::error_code &error) noexcept
	{
		int events = is_open() ? flowfd_ring_wait(&r_, timeout) : -EBADF;

		return set(error, events) > 0;
	}

	flowfd_ring r_ = closed();
};

} // namespace flowfd

#endif /* FLOWFD_HPP */
