# SPDX-License-Identifier: GPL-2.0-only
"""What the tests of flowfdctl share: running it, and processes for it to find."""

import contextlib
import ctypes
import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import traceback

import pytest
import tap

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../examples")
import flowfd

# No event comes while one of these tests harvests, so any order of the stores will do.
flowfd.STORES_IN_ORDER = True
CTL = tap.BUILD + "/flowfdctl"
NOBODY = 65534
PATIENCE = 60  # seconds until a test gives up waiting
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
LIST = "/sys/kernel/debug/flowfd/objects"
libc = ctypes.CDLL(None, use_errno=True)
needs_module = pytest.mark.skipif(not os.path.exists(flowfd.DEVICE),
                                  reason="the module is not loaded")
with open("/proc/self/comm") as file:
    COMMAND = file.read().rstrip("\n")
kept = []  # objects that a process must not close before its end


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
