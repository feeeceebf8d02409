# SPDX-License-Identifier: GPL-2.0-only
"""What the tests of flowfdctl share: running it, and processes for it to find."""

import contextlib
import ctypes
import fcntl
import json
import os
import platform
import re
import resource
import signal
import struct
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
# Numbers of system calls: of two architectures, and those of all newer ones.
SECCOMP, IOCTL, GETDENTS, KCMP, EXIT = {
    "x86_64": (317, 16, 217, 312, 60),
    "s390x": (348, 54, 220, 343, 1),
}.get(platform.machine(), (277, 29, 61, 272, 93))
PIDFD_OPEN, PIDFD_GETFD = 434, 438  # on all
CTL = tap.BUILD + "/flowfdctl"
NOBODY = 65534
PATIENCE = 60  # seconds until a test gives up waiting
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
SLOTS = "/run/flowfdctl"  # the child processes of all calls
SCAN_SLOTS = 12
BRIDGE_SLOTS = 4
SLOT_SIZE = 24
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


def _seccomp(call, action, flags):
    """Sets what happens to a system call of this process and its children. Returns what
    seccomp(2) does."""
    program = b"".join(struct.pack("=HBBI", *line) for line in (
        (0x20, 0, 0, 0), (0x15, 0, 1, call),  # number of the call; is it this one?
        (6, 0, 0, action), (6, 0, 0, 0x7fff0000)))
    memory = ctypes.create_string_buffer(program)
    filter_ = ctypes.create_string_buffer(
        struct.pack("@HP", len(program) // 8, ctypes.addressof(memory)))
    if libc.prctl(38, 1, 0, 0, 0) or (done := libc.syscall(SECCOMP, 1, flags, filter_)) < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    return done


def forbid(call, error):
    """Makes a system call fail with @error, in this process and its children."""
    _seccomp(call, 0x50000 + error, 0)


def block(call):
    """Makes a system call wait for as long as this process has the descriptor that this
    leaves open: nobody answers there."""
    os.set_inheritable(_seccomp(call, 0x7fc00000, 8), True)


class Held:
    """Holds a system call of a command, which must call before() before its execution."""

    LISTENER = 99  # descriptor of the command

    def __init__(self, call):
        self.call = call

    def before(self):
        os.dup2(_seccomp(self.call, 0x7fc00000, 8), self.LISTENER)

    def wait(self, pid):
        """Waits for the next such call."""
        pidfd = os.pidfd_open(pid)
        listener = libc.syscall(PIDFD_GETFD, pidfd, self.LISTENER, 0)
        os.close(pidfd)
        notice = bytearray(80)
        fcntl.ioctl(listener, 0xc0502100, notice)  # SECCOMP_IOCTL_NOTIF_RECV
        return listener, notice[:8]

    @staticmethod
    def release(held):
        listener, number = held
        # SECCOMP_IOCTL_NOTIF_SEND, SECCOMP_USER_NOTIF_FLAG_CONTINUE
        fcntl.ioctl(listener, 0xc0182101, number + struct.pack("=qiI", 0, 0, 1))
        os.close(listener)


def own_children():
    with open(f"/proc/self/task/{os.getpid()}/children") as children:
        return set(map(int, children.read().split()))


@contextlib.contextmanager
def left_behind():
    """Yields a function: how many processes calls of flowfdctl have left behind since, and
    have not ended. No other child may be started meanwhile."""
    def count():
        left = own_children() - before
        return len([pid for pid in left if not os.waitpid(pid, os.WNOHANG)[0]])

    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    before = own_children()
    yield count
    libc.prctl(PR_SET_CHILD_SUBREAPER, 0)


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
