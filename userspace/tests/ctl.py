# SPDX-License-Identifier: GPL-2.0-only
"""What the tests of flowfdctl share: running it, and counters, rings and processes for it
to find."""

import contextlib
import ctypes
import json
import os
import re
import resource
import select
import signal
import struct
import subprocess
import threading
import traceback

import pytest
import tap

DEVICE = "/dev/flowfd"
SEMAPHORE, NONBLOCK, MAPPED = 1, 2, 8
CTL = tap.BUILD + "/flowfdctl"
NOBODY = 65534
PATIENCE = 60  # seconds until a test gives up waiting
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
LIST = "/sys/kernel/debug/flowfd/objects"
libc = ctypes.CDLL(None, use_errno=True)
libflowfd = ctypes.CDLL(tap.BUILD + "/libflowfd.so")
needs_module = pytest.mark.skipif(not os.path.exists(DEVICE),
                                  reason="the module is not loaded")
with open("/proc/self/comm") as file:
    COMMAND = file.read().rstrip("\n")
kept = []  # objects that a process must not close before its end


def call(name, *args):
    """A function of libflowfd, whose error is an exception."""
    result = libflowfd["flowfd_" + name](*args)
    if result < 0:
        raise OSError(-result, name)
    return result


class Counter:
    """One that is not mapped here."""

    def __init__(self, initial=0, maximum=0, flags=0, burst=0, rate=0):
        settings = struct.pack("QQIIII", initial, maximum, flags, 0, burst, rate)
        self.fd = call("counter_create_from", settings, ctypes.c_size_t(len(settings)))

    def write(self, value=1):
        os.eventfd_write(self.fd, value)

    def read(self):
        return os.eventfd_read(self.fd)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)


class Ring:
    """One whose watches have their descriptors as data."""

    def __init__(self, max_items):
        self.ring = (ctypes.c_uint64 * 64)()  # more than a struct flowfd_ring
        call("ring_create", self.ring, max_items, 0)
        self.fd = ctypes.c_int.from_buffer(self.ring).value

    def add(self, fd, events):
        call("ring_add", self.ring, fd, ctypes.c_uint32(events | select.EPOLLET),
             ctypes.c_uint64(fd))

    def harvest(self):
        """Yields each descriptor that has an event."""
        event = (ctypes.c_uint64 * 2)()
        while call("ring_next", self.ring, event):
            yield event[1]

    def close(self):
        libflowfd.flowfd_ring_destroy(self.ring)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def ctl(*args, user=None, before=None, **other):
    """Runs flowfdctl, or the command @before."""
    return subprocess.run(before or [CTL, *args], capture_output=True, text=True,
                          user=user, group=user,
                          extra_groups=[] if user else None, **other)


def table(text, first):
    """The rows of the table whose first heading is @first, by their headings."""
    lines = iter(text.splitlines())
    headings = next(words for words in map(str.split, lines) if words[:1] == [first])
    return [dict(zip(headings, line.split(None, len(headings) - 1)))
            for line in iter(lambda: next(lines, ""), "")]


def unprintable(text):
    return re.findall("[^ -~\n]", text)


@contextlib.contextmanager
def repeated(function):
    """Calls a function again and again, every 5 ms, in a thread."""
    def run():
        while not stop.wait(0.005):
            function()

    stop = threading.Event()
    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


class Process:
    """Runs a function as a user, then waits until it is killed, in a process group of
    its own. @facts: what the function returned. @prepare runs as root before it."""

    def __init__(self, function, user=0, name=b"holder", prepare=lambda: None):
        reads, writes = os.pipe()
        self.pid = os.fork()
        if self.pid:
            os.close(writes)
            with os.fdopen(reads) as facts:
                self.facts = json.loads(facts.readline() or "null")
            return
        try:
            os.setpgid(0, 0)
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            with open("/proc/self/comm", "wb") as comm:
                comm.write(name)
            resource.setrlimit(resource.RLIMIT_NOFILE, (100000, 100000))
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (1 << 30, 1 << 30))
            prepare()
            if user:
                os.setgroups([])
                os.setresgid(user, user, user)
                os.setresuid(user, user, user)
                libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # setresuid cleared it
            os.write(writes, json.dumps(function()).encode() + b"\n")
            while True:
                signal.pause()
        except BaseException:
            traceback.print_exc()
        os._exit(1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # With its children: threads may wait for one of them.
        os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
