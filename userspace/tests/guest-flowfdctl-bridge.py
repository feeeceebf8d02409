#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-only
"""Usage: guest-flowfdctl-bridge.py BUILD [PYTEST-ARGUMENT...]

flowfdctl bridge: bridges between the counters and eventfds of running processes. Runs as
root in a virtual machine. Prints TAP.
"""

import contextlib
import errno
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest
import tap
from ctl import (BRIDGE_SLOTS, CTL, IOCTL, NOBODY, PATIENCE, PIDFD_GETFD, PIDFD_OPEN,
                 PR_SET_DUMPABLE, SCAN_SLOTS, SLOT_SIZE, SLOTS, Held, Process, block, ctl,
                 flowfd, forbid, kept, libc, needs_module)
from tap import settles

CLONE_FILES = 0x400
END = "(source|sink)"
YAMA = "/proc/sys/kernel/yama/ptrace_scope"
pytestmark = needs_module


def place(fd, pid=None):
    return f"{pid or os.getpid()}:{fd}"


def bridge(*args, **other):
    """Exit status and message of flowfdctl bridge, without its name; "" if it says which
    bridge it has made or removed."""
    done = ctl("bridge", *map(str, args), **other)
    assert bool(done.stdout) == (done.returncode == 0)
    if done.stdout:
        assert re.fullmatch(f"counter [0-9]+ has (a {END}: eventfd [0-9]+|no {END} any"
                            " more)\n", done.stdout)
    return done.returncode, done.stderr.removeprefix("flowfdctl: ").rstrip("\n")


def line_of(fd, key):
    with open(f"/proc/self/fdinfo/{fd}") as lines:
        return next(line.split()[1] for line in lines if line.startswith(key + ":"))


def ends(fd):
    """Numbers of the eventfds that are source and sink of a counter."""
    return line_of(fd, "flowfd-source"), line_of(fd, "flowfd-sink")


def nonblocking():
    return os.eventfd(0, os.EFD_NONBLOCK)


def read(event):
    with contextlib.suppress(BlockingIOError):
        return os.eventfd_read(event)


@pytest.fixture
def counter():
    with flowfd.Counter(flags=flowfd.NONBLOCK) as made:
        yield made


@pytest.fixture
def events():
    fds = nonblocking(), nonblocking()
    yield fds
    for fd in fds:
        os.close(fd)


def test_source_and_sink(counter, events):
    source, sink = events
    assert bridge("source", place(counter.fd), place(source)) == (0, "")
    assert ends(counter.fd) == (line_of(source, "eventfd-id"), "none")
    os.eventfd_write(source, 5)
    assert counter.read() == 5
    assert bridge("sink", place(counter.fd), place(sink)) == (0, "")
    assert ends(counter.fd)[1] == line_of(sink, "eventfd-id")
    os.eventfd_write(source, 7)
    assert settles(lambda: bool(read(sink)), True, PATIENCE)

    assert bridge("--remove", "source", place(counter.fd)) == (0, "")
    assert bridge("sink", "--remove", place(counter.fd)) == (0, "")
    assert ends(counter.fd) == ("none", "none")
    os.eventfd_write(source, 9)
    assert read(source) == 9


def test_processes_of_others():
    """The counter of one user, the eventfd of another, and neither is the caller's."""
    def with_a_counter():
        kept.append(flowfd.Counter(maximum=10))
        return kept[-1].fd

    def with_an_eventfd():
        event = os.eventfd(20)
        return [event, os.dup(event)]

    with (Process(with_a_counter, user=NOBODY, name=b"con\ntrol") as counter,
          Process(with_an_eventfd, user=NOBODY - 1, name=b"back end") as backend):
        event, same = backend.facts
        assert bridge("source", place(counter.facts, counter.pid),
                      place(event, backend.pid)) == (0, "")
        done = ctl("bridge")
        assert (done.returncode, done.stderr) == (0, "")
        headings, row = map(str.split, done.stdout.splitlines())
        row = dict(zip(headings, row))
        number = row.pop("COUNTER"), row.pop("EVENTFD")
        assert row == {
            "PID": str(counter.pid), "FD": str(counter.facts), "END": "source",
            "DESCRIPTORS": f"{backend.pid}:{event},{backend.pid}:{same}",
            "WAITING": "11", "COMMAND": "con\\x0atrol"}
        shown, = json.loads(ctl("bridge", "--json").stdout)["bridges"]
        assert shown == {
            "counter": int(number[0]), "pid": counter.pid, "fd": counter.facts,
            "command": "con\ntrol", "end": "source", "waiting": 11,
            "eventfd": int(number[1]),
            "eventfd_descriptors": [{"pid": backend.pid, "fd": fd, "command": "back end"}
                                    for fd in (event, same)]}


def test_many_descriptors_of_an_eventfd(counter, events):
    copies = [os.dup(events[0]) for _ in range(5)]
    assert bridge("sink", place(counter.fd), place(copies[-1])) == (0, "")
    row = ctl("bridge").stdout.splitlines()[1].split()
    assert row[5] == ",".join(map(place, sorted([events[0], *copies])[:4])) + ",..."
    for copy in copies:
        os.close(copy)


def test_no_bridges(counter):
    done = ctl("bridge", "--json")
    assert json.loads(done.stdout) == {
        "format": "flowfdctl-bridge", "version": 1, "complete": True,
        "hidden_processes": 0, "unknown_descriptors": 0, "bridges": []}
    assert ctl("bridge").stdout.split() == [
        "COUNTER", "PID", "FD", "END", "EVENTFD", "DESCRIPTORS", "WAITING", "COMMAND"]


def test_wrong_files(counter, events):
    reader, writer = os.pipe()
    with flowfd.Ring(1) as ring, open("/dev/null") as null:
        opened = os.open(flowfd.DEVICE, os.O_RDWR)
        path = os.open(flowfd.DEVICE, os.O_PATH)
        for file, name in (
                (ring.fd, "is a ring of flowfd, not a counter of flowfd"),
                (events[0], "is an eventfd of the kernel, not a counter of flowfd"),
                (reader, "is not a counter of flowfd"),
                (path, "is not a counter of flowfd"),
                (null.fileno(), "is not a counter of flowfd")):
            assert bridge("sink", place(file), place(events[0])) == (
                1, f"{place(file)} {name}")
        for file, name in (
                (ring.fd, "is a ring of flowfd, not an eventfd of the kernel"),
                (counter.fd, "is a counter of flowfd, not an eventfd of the kernel"),
                (opened, "is a counter of flowfd, not an eventfd of the kernel"),
                (writer, "is not an eventfd of the kernel")):
            assert bridge("source", place(opened), place(file)) == (
                1, f"{place(file)} {name}")
        assert bridge("source", place(opened), place(events[0])) == (0, "")
    for fd in reader, writer, opened, path:
        os.close(fd)


def test_places_that_are_taken(counter, events):
    source, sink = (line_of(event, "eventfd-id") for event in events)
    number = line_of(counter.fd, "eventfd-id")
    with flowfd.Counter() as other:
        assert bridge("source", place(counter.fd), place(events[0])) == (0, "")
        assert bridge("source", place(counter.fd), place(events[1])) == (
            1, f"counter {number} has a source already: eventfd {source}")
        assert bridge("source", place(other.fd), place(events[0])) == (
            1, f"eventfd {source} is the source of another counter already")
        assert bridge("sink", place(counter.fd), place(events[1])) == (0, "")
        assert bridge("sink", place(counter.fd), place(events[1])) == (
            1, f"counter {number} has a sink already: eventfd {sink}")


def test_nothing_to_remove(counter):
    number = line_of(counter.fd, "eventfd-id")
    for end in "source", "sink":
        assert bridge("--remove", end, place(counter.fd)) == (
            1, f"counter {number} has no {end}")


def test_semaphore(events):
    with flowfd.Counter(flags=flowfd.SEMAPHORE) as semaphore:
        number = line_of(semaphore.fd, "eventfd-id")
        assert bridge("sink", place(semaphore.fd), place(events[0])) == (
            1, f"counter {number} is a semaphore: it can have no sink")
        assert bridge("source", place(semaphore.fd), place(events[0])) == (0, "")


@pytest.mark.parametrize("mode, end, verb", [
    (os.O_RDONLY, "source", "writing"), (os.O_WRONLY, "sink", "reading")],
    ids=["read-only", "write-only"])
def test_modes(events, mode, end, verb):
    opened = os.open(flowfd.DEVICE, mode)
    number = line_of(opened, "eventfd-id")
    assert bridge(end, place(opened), place(events[0])) == (
        1, f"counter {number} is not open for {verb} here: it can get no {end}")
    os.close(opened)


def test_permission(counter, events):
    assert bridge("source", place(counter.fd), place(events[0]), user=NOBODY) == (
        1, f"this user may not take descriptors of process {os.getpid()}: that needs"
        " root, or the permission to trace it (ptrace(2))")
    assert ends(counter.fd) == ("none", "none")


@contextlib.contextmanager
def yama(scope):
    """Debian's kernels have it, others need not."""
    if not os.path.exists(YAMA):
        yield
        return
    with open(YAMA) as file:
        before = file.read()
    with open(YAMA, "w") as file:
        file.write(scope)
    yield
    with open(YAMA, "w") as file:
        file.write(before)


def test_own_processes_without_root():
    def own():
        # setresuid() cleared it: other processes of the user may look again.
        libc.prctl(PR_SET_DUMPABLE, 1)
        kept.append(flowfd.Counter())
        return [kept[-1].fd, os.eventfd(0)]

    with yama("0"), Process(own, user=NOBODY) as process:
        counter, event = (place(fd, process.pid) for fd in process.facts)
        assert bridge("sink", counter, event, user=NOBODY) == (0, "")
        assert ctl("bridge", user=NOBODY).stdout.splitlines()[1].split()[1:4] == [
            str(process.pid), counter.split(":")[1], "sink"]


def test_thread_with_a_table_of_its_own(events):
    def work():
        libc.unshare(CLONE_FILES)
        mine = flowfd.Counter()
        facts.extend((threading.get_native_id(), mine.fd))
        ready.set()
        done.wait()

    facts, ready, done = [], threading.Event(), threading.Event()
    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    status, message = bridge("sink", place(facts[1], facts[0]), place(events[0]))
    done.set()
    thread.join()
    release = os.uname().release.split(".")
    if (int(release[0]), int(release[1])) >= (6, 9):
        assert (status, message) == (0, "")
    else:
        assert (status, message) == (
            1, f"{facts[0]} is a thread, and this kernel cannot take descriptors of one:"
            " Linux 6.9 is needed")


@pytest.mark.parametrize("call, error, message", [
    (PIDFD_OPEN, errno.ENOSYS, "this kernel has no pidfd_open(2), or forbids it here"),
    (PIDFD_OPEN, errno.EMFILE, f"process {os.getpid()}: Too many open files"),
    (PIDFD_GETFD, errno.ENOSYS, "this kernel has no pidfd_getfd(2), or forbids it here"),
    (PIDFD_GETFD, errno.ESRCH, f"process {os.getpid()} has ended"),
    (PIDFD_GETFD, errno.EMFILE, "descriptor {fd} of process {pid}: Too many open files"),
    (IOCTL, errno.ENOTTY, "the loaded flowfd module is too old: it has no bridges"),
    (IOCTL, errno.ENOMEM, "counter {id}: Cannot allocate memory")])
def test_what_the_kernel_can_lack(counter, events, call, error, message):
    wanted = message.format(fd=counter.fd, pid=os.getpid(),
                            id=line_of(counter.fd, "eventfd-id"))
    assert bridge("source", place(counter.fd), place(events[0]),
                  preexec_fn=lambda: forbid(call, error)) == (1, wanted)
    assert ends(counter.fd) == ("none", "none")


def test_what_is_said():
    with flowfd.Counter() as counter:
        event = nonblocking()
        number = line_of(counter.fd, "eventfd-id")
        assert ctl("bridge", "sink", place(counter.fd), place(event)).stdout == (
            f"counter {number} has a sink: eventfd {line_of(event, 'eventfd-id')}\n")
        assert ctl("bridge", "--remove", "sink", place(counter.fd)).stdout == (
            f"counter {number} has no sink any more\n")
        os.close(event)


@pytest.mark.parametrize("call", [PIDFD_OPEN, PIDFD_GETFD])
def test_no_answer(counter, events, call):
    """The kernel can wait for ever, as for a process in the middle of execve(2)."""
    start = time.monotonic()
    assert bridge("source", place(counter.fd), place(events[0]), close_fds=False,
                  preexec_fn=lambda: block(call)) == (
        1, f"the kernel did not answer about process {os.getpid()}")
    assert 5 <= time.monotonic() - start < 15
    assert ends(counter.fd) == ("none", "none")


def test_stopped(counter, events):
    """Ctrl-Z for longer than the kernel has to answer, and fg."""
    held = Held(PIDFD_OPEN)
    child = subprocess.Popen([CTL, "bridge", "source", place(counter.fd),
                              place(events[0])], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, start_new_session=True,
                             close_fds=False, preexec_fn=held.before)
    of_counter = held.wait(child.pid)
    time.sleep(1)
    os.killpg(child.pid, signal.SIGSTOP)
    time.sleep(7)
    os.killpg(child.pid, signal.SIGCONT)
    with contextlib.suppress(OSError):  # it has given up
        # What takes the descriptors was not stopped.
        held.release(of_counter)
        held.release(held.wait(child.pid))  # of the eventfd
    out, error = child.communicate(timeout=PATIENCE)
    assert (child.returncode, error) == (0, "")
    assert "has a source" in out


def test_other_calls(counter, events):
    """That the kernel does answer have all slots: a call waits for them."""
    def lock(slots, how):
        for number in range(SCAN_SLOTS, SCAN_SLOTS + BRIDGE_SLOTS):
            fcntl.lockf(slots, how, 1, SLOT_SIZE * number)

    args = "source", place(counter.fd), place(events[0])
    assert ctl("list").returncode == 0  # makes the file
    with open(SLOTS, "r+b") as slots:
        lock(slots, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert bridge(*args) == (
            1, f"there are {BRIDGE_SLOTS} processes of flowfdctl already, and the kernel"
            " does not answer 0 of them: no more are made")
        timer = threading.Timer(2, lock, [slots, fcntl.LOCK_UN])
        timer.start()
        assert bridge(*args) == (0, "")
        timer.join()


def test_no_process_can_be_made(counter, events):
    assert ctl(before=["prlimit", "--nproc=1", tap.BUILD + "/flowfdctl", "bridge",
                       "source", place(counter.fd), place(events[0])],
               user=NOBODY).stderr == (
        "flowfdctl: cannot create a process that takes descriptors:"
        " Resource temporarily unavailable\n")


if __name__ == "__main__":
    sys.exit(tap.run())
