# SPDX-License-Identifier: GPL-2.0-only
"""Does what the table of cases says, and compares the results."""

import concurrent.futures
import errno
import os
import pathlib
import select
import time

import pytest

import flowfd

TABLE = pathlib.Path(
    os.environ.get("FLOWFD_CASES", pathlib.Path(__file__).parents[2] / "cases.txt")
)
BACKEND = os.environ.get("FLOWFD_BACKEND", "fallback")


def parse(text):
    """A line of the table: its words, its result, and its backend."""
    text, _, backend = text.partition(" @")
    words, _, result = text.partition(" = ")
    return words.split(), result.strip(), backend


def cases():
    """Each case, with its steps."""
    found = []
    for text in TABLE.read_text().splitlines():
        words, result, backend = parse(text)
        if not words or words[0].startswith("#") or backend not in ("", BACKEND):
            continue
        if words[0] == "case":
            found.append((words[1], words[2:], result or "ok", []))
        else:
            found[-1][3].append((words, result))
    return found


def settings_of(words):
    settings = {}
    for word in words:
        name, _, value = word.partition("=")
        if name in ("initial", "maximum"):
            settings[name] = int(value)
        elif name == "bucket":
            settings[name] = tuple(int(part) for part in value.split(","))
        elif name == "overflow":
            settings[name] = value
        elif name in ("semaphore", "nonblock", "one-consumer", "no-poll"):
            settings[name.replace("-", "_")] = True
        else:
            raise ValueError(f"unknown setting {name}")
    return settings


def poll_says(counter, event):
    poll = select.poll()
    poll.register(counter, event)
    return "yes" if any(bits & event for _, bits in poll.poll(0)) else "no"


def added_by(other, value):
    with other:
        return "ok" if other.try_add(value) else "EAGAIN"


def run(counter, words):
    numbers = [int(word) for word in words[1:]]
    match words[0]:
        case "add":
            return counter.add(*numbers) or "ok"
        case "try_add":
            return "ok" if counter.try_add(*numbers) else "nothing"
        case "add_for":
            return counter.add(numbers[0], timeout=numbers[1] / 1000) or "ok"
        case "add_by_descriptors":
            fds = [os.dup(fd) for fd in counter.descriptors()]
            return added_by(flowfd.Counter.from_descriptors(fds), numbers[0])
        case "add_by_key":
            return added_by(flowfd.Counter.open_shared(counter.share()), numbers[0])
        case "take":
            return str(counter.take())
        case "try_take":
            value = counter.try_take()
            return "nothing" if value is None else str(value)
        case "take_for":
            return str(counter.take(timeout=numbers[0] / 1000))
        case "readable":
            return poll_says(counter, select.POLLIN)
        case "writable":
            return poll_says(counter, select.POLLOUT)
        case "count":
            return str(counter.count)
        case "lost":
            return str(counter.lost)
        case "mapped":
            return "yes" if counter.mapped else "no"
    raise ValueError(f"unknown operation {words[0]}")


def name_of(error):
    name = errno.errorcode[error.errno]
    # Two names for one number.
    return "EOPNOTSUPP" if name == "ENOTSUP" else name


def outcome(counter, words):
    try:
        return run(counter, words)
    except (TimeoutError, BlockingIOError, OSError) as error:
        if words[0].endswith("_for") and isinstance(error, (TimeoutError, BlockingIOError)):
            return "nothing"
        return name_of(error)


@pytest.mark.parametrize("settings, opened, steps", [
    pytest.param(*case[1:], id=case[0]) for case in cases()])
def test_case(settings, opened, steps):
    try:
        counter = flowfd.Counter(**settings_of(settings))
    except OSError as error:
        assert name_of(error) == opened
        assert not steps
        return
    assert opened == "ok"
    later = None
    with counter, concurrent.futures.ThreadPoolExecutor() as threads:
        for words, result in steps:
            if words[0] == "later":
                def work(words=words):
                    time.sleep(int(words[1]) / 1000)
                    return outcome(counter, words[2:])
                later = threads.submit(work)
            elif words[0] == "join":
                assert later.result() == result, words
            else:
                assert outcome(counter, words) == result, words


def test_table():
    assert len(cases()) > 15
