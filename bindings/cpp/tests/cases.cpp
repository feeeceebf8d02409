// SPDX-License-Identifier: GPL-2.0-only
/* cases FILE: does what the table of cases says, and compares the results. */
#include <cstdlib>
#include <fstream>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <poll.h>
#include <unistd.h>

#include <flowfd.hpp>

using words = std::vector<std::string>;

static words split(const std::string &text)
{
	std::istringstream stream(text);
	words found;

	for (std::string word; stream >> word;)
		found.push_back(word);
	return found;
}

static std::uint64_t number(const std::string &word)
{
	return std::stoull(word);
}

static std::string name_of(const std::error_code &error)
{
	static const std::map<std::errc, std::string> names = {
		{ std::errc::resource_unavailable_try_again, "EAGAIN" },
		{ std::errc::invalid_argument, "EINVAL" },
		{ std::errc::operation_not_supported, "EOPNOTSUPP" },
		{ std::errc::interrupted, "EINTR" },
		{ std::errc::inappropriate_io_control_operation, "ENOTTY" },
	};

	for (const auto &[condition, name] : names)
		if (error == condition)
			return name;
	return error.message();
}

static std::string yes(bool is)
{
	return is ? "yes" : "no";
}

static std::chrono::milliseconds milliseconds(const std::string &word)
{
	return std::chrono::milliseconds(number(word));
}

static std::string happened(bool did)
{
	return did ? "ok" : "nothing";
}

static std::string taken(std::optional<std::uint64_t> value)
{
	return value ? std::to_string(*value) : "nothing";
}

static bool poll_says(const flowfd::counter &counter, short events)
{
	pollfd polled = { counter.native_handle(), events, 0 };

	return poll(&polled, 1, 0) == 1 && polled.revents & events;
}

static flowfd::counter another(const flowfd::counter &counter)
{
	flowfd::descriptors sent = counter.descriptors();

	for (unsigned int i = 0; i < sent.count; i++)
		sent.fds[i] = dup(sent.fds[i]);
	return flowfd::counter::from_descriptors(sent.fds, sent.count);
}

static std::string added(flowfd::counter other, std::uint64_t value)
{
	return other.try_add(value) ? "ok" : "EAGAIN";
}

static std::string run(flowfd::counter &counter, const words &step)
{
	const std::string &operation = step.at(0);

	if (operation == "add")
		return counter.add(number(step.at(1))), "ok";
	if (operation == "try_add")
		return happened(counter.try_add(number(step.at(1))));
	if (operation == "add_for")
		return happened(counter.add_for(number(step.at(1)),
						milliseconds(step.at(2))));
	if (operation == "add_by_descriptors")
		return added(another(counter), number(step.at(1)));
	if (operation == "add_by_key")
		return added(flowfd::counter::open_shared(counter.share()), number(step.at(1)));
	if (operation == "take")
		return std::to_string(counter.take());
	if (operation == "try_take")
		return taken(counter.try_take());
	if (operation == "take_for")
		return taken(counter.take_for(milliseconds(step.at(1))));
	if (operation == "readable")
		return yes(poll_says(counter, POLLIN));
	if (operation == "writable")
		return yes(poll_says(counter, POLLOUT));
	if (operation == "count")
		return std::to_string(counter.flow().count);
	if (operation == "lost")
		return std::to_string(counter.flow().lost);
	if (operation == "mapped")
		return yes(counter.is_mapped());
	throw std::invalid_argument("unknown operation " + operation);
}

static std::string outcome(flowfd::counter &counter, const words &step)
{
	try {
		return run(counter, step);
	} catch (const std::system_error &error) {
		return name_of(error.code());
	}
}

static flowfd::counter_settings settings_of(const words &line)
{
	static const std::map<std::string, flowfd::overflow> policies = {
		{ "wait", flowfd::overflow::wait },
		{ "fail", flowfd::overflow::fail },
		{ "saturate", flowfd::overflow::saturate },
		{ "drop", flowfd::overflow::drop },
	};
	flowfd::counter_settings settings;

	for (std::size_t i = 2; i < line.size(); i++) {
		std::string name = line[i].substr(0, line[i].find('='));
		std::string value = line[i].substr(std::min(name.size() + 1, line[i].size()));

		if (name == "initial") {
			settings.initial = number(value);
		} else if (name == "maximum") {
			settings.maximum = number(value);
		} else if (name == "semaphore") {
			settings.semaphore = true;
		} else if (name == "nonblock") {
			settings.nonblocking = true;
		} else if (name == "one-consumer") {
			settings.one_consumer = true;
		} else if (name == "no-poll") {
			settings.no_poll = true;
		} else if (name == "overflow") {
			settings.overflow = policies.at(value);
		} else if (name == "bucket") {
			settings.bucket_capacity = number(value.substr(0, value.find(',')));
			settings.bucket_rate = number(value.substr(value.find(',') + 1));
		} else {
			throw std::invalid_argument("unknown setting " + name);
		}
	}
	return settings;
}

static int checks;
static int failures;

static void check(const std::string &name, const std::string &got, const std::string &wanted)
{
	bool passed = got == wanted;

	std::cout << (passed ? "" : "not ") << "ok " << ++checks << " - " << name << "\n";
	if (!passed)
		std::cout << "# got " << got << ", wanted " << wanted << "\n";
	failures += !passed;
}

/* A line of the table: its words, and the result that it must have. */
struct line {
	explicit line(std::string text)
	{
		std::size_t at = text.find(" @");

		if (at != std::string::npos) {
			backend = text.substr(at + 2);
			text.erase(at);
		}
		at = text.find(" = ");
		if (at != std::string::npos) {
			result = text.substr(at + 3);
			text.erase(at);
		}
		step = split(text);
	}

	words step;
	std::string result;
	std::string backend;
};

int main(int argc, char *argv[])
{
	const char *backend = std::getenv("FLOWFD_BACKEND");
	std::ifstream table(argc == 2 ? argv[1] : "");
	std::unique_ptr<flowfd::counter> counter;
	std::future<std::string> later;
	std::string text, name;

	if (!table || !backend) {
		std::cerr << "usage: FLOWFD_BACKEND={module|fallback} cases FILE\n";
		return 2;
	}
	while (std::getline(table, text)) {
		line now(text);

		if (now.step.empty() || now.step[0][0] == '#' ||
		    (!now.backend.empty() && now.backend != backend))
			continue;
		if (now.step[0] == "case") {
			std::string result = "ok";

			name = now.step.at(1);
			try {
				counter = std::make_unique<flowfd::counter>(
					settings_of(now.step));
			} catch (const std::system_error &error) {
				result = name_of(error.code());
			}
			check(name, result, now.result.empty() ? "ok" : now.result);
		} else if (now.step[0] == "later") {
			later = std::async(std::launch::async, [&counter, now] {
				std::this_thread::sleep_for(milliseconds(now.step.at(1)));
				return outcome(*counter, words(now.step.begin() + 2,
							       now.step.end()));
			});
		} else if (now.step[0] == "join") {
			check(name + ": " + text.substr(1), later.get(), now.result);
		} else {
			check(name + ": " + text.substr(1), outcome(*counter, now.step),
			      now.result);
		}
	}
	std::cout << "1.." << checks << "\n";
	return failures > 0;
}
