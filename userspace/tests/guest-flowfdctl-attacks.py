#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-only
"""Usage: guest-flowfdctl-attacks.py BUILD [PYTEST-ARGUMENT...]

What a hostile user does to keep root from seeing the users of flowfd: each attack runs
as nobody, and root's flowfdctl must still end within its time, with little memory, and
show what root has. Runs as root in a virtual machine. Prints TAP.
"""

import contextlib
import ctypes
import errno
import fcntl
import functools
import json
import mmap
import os
import re
import resource
import select
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

import pytest
import tap
from ctl import (BRIDGE_SLOTS, CTL, EXIT, GETDENTS, KCMP, NOBODY, PATIENCE,
                 PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG, SCAN_SLOTS, SLOTS, SLOT_SIZE,
                 Held, Process, ctl, flowfd, forbid, kept, left_behind, libc,
                 needs_module, own_children)
from tap import settles

MEMORY_KB = 64 << 10
# flowfdctl scans for 4 s and waits for 4.5; the rest is for its output, in a virtual
# machine that may be emulated. Without an attack a list takes a fraction of a second.
SCAN_SECONDS = 4.5
PRINT_SECONDS = 5
SLOT_SECONDS = 5  # that a call waits for others
CLONE_FILES = 0x400
CLONE_NEWNS = 0x20000
RLIMIT_LOCKS = 10
MS_BIND = 0x1000
MS_REC_PRIVATE = 0x4000 | 0x40000
pytestmark = needs_module
Attacker = functools.partial(Process, user=NOBODY)


@pytest.fixture(scope="module", autouse=True)
def nothing_remains():
    """Whatever was attacked: root's next command shows everything again."""
    yield
    assert settles(lambda: (ctl("list").returncode, ctl("list").stderr), (0, ""), PATIENCE)


def roots_own():
    made = flowfd.Counter(), os.open(flowfd.DEVICE, os.O_RDWR), flowfd.Ring(2)
    kept.append(made)
    return [made[0].fd, made[1], made[2].fd]


def run(scans, *args):
    """Exit status and both outputs of flowfdctl, which must close them within the time
    of @scans scans, and take little memory."""
    start = time.monotonic()
    done = ctl(*args, timeout=PATIENCE)
    spent = time.monotonic() - start
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"# {args}: {spent:.1f} s, {memory} KB at most, {done.stderr!r}")
    assert spent < scans * SCAN_SECONDS + PRINT_SECONDS
    assert memory < MEMORY_KB
    return done.returncode, done.stdout, done.stderr


def attacked(status, *args):
    """Checks that list and top work; returns the result of list. A @status of None
    depends on the machine: there may be time for everything, or not."""
    allowed = (0, 2) if status is None else (status,)
    with Process(roots_own) as own:
        code, out, error = run(1, "list", "--json", *args)
        result = json.loads(out)
        assert code in allowed
        assert bool(error) == (code != 0)
        assert result.get("complete") == (code == 0)
        objects = result["counters"] + result["rings"]
        assert set(own.facts) <= {o["fd"] for o in objects if o["pid"] == own.pid}
        assert run(1, "list", *args)[0] in allowed
        if not args:  # top has no such options
            code, out, _ = run(2, "top", "-i", "0.1", "-n", "1")
            assert code in (0, 2) and f" {own.pid} " in out
    return result


def rings_of(process, result):
    return [ring for ring in result["rings"] if ring["pid"] == process.pid]


def test_no_attack():
    attacked(0)


def test_long_path():
    """The path is longer than a link may be, so readlink(2) fails."""
    def attack():
        os.chdir(directory)
        for _ in range(25):
            os.mkdir("d" * 200)
            os.chdir("d" * 200)
        return os.open(".", os.O_RDONLY)
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o777)
        with Attacker(attack):
            attacked(0)


def test_many_watches():
    def attack():
        ring = flowfd.Ring(5000)
        event = os.eventfd(0, os.EFD_NONBLOCK)
        for _ in range(5000):
            ring.add(os.dup(event), select.EPOLLIN)
        for _ in range(400):
            os.dup(ring.fd)
        kept.append(ring)
    with Attacker(attack) as attacker:
        result = attacked(None)
        assert {r["watches"] for r in rings_of(attacker, result)} == {5000}
        result = attacked(2, "--watches")
        # The first of them, and once.
        assert [len(r["watched"]) for r in rings_of(attacker, result)
                if "watched" in r] == [4096]


def many_descriptors():
    counter = flowfd.Counter()
    kept.append(counter)
    with contextlib.suppress(OSError):
        while True:
            os.dup(counter.fd)
    for _ in range(3):
        if not os.fork():
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            signal.pause()


def test_many_descriptors():
    """More than flowfdctl has time or memory for."""
    with Attacker(many_descriptors):
        attacked(2)


def test_forks():
    """The process that has the counter ends at once, and its child has it then."""
    def attack():
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # leaves no zombies
        with flowfd.Counter(maximum=79) as counter:
            if not os.fork():
                for _ in range(1000):  # so that an exit takes long
                    os.dup(counter.fd)
                while not os.fork():
                    pass
                os._exit(0)

    with Attacker(attack):
        for _ in range(10):
            code, out, error = run(1, "list", "--json")
            shown = [c for c in json.loads(out)["counters"] if c["maximum"] == 79]
            assert shown or code == 2 and "ended during the scan" in error


def test_locks():
    """Lines of locks come first in fdinfo, and a user can have any number of them."""
    def attack():
        ring = flowfd.Ring(4)
        kept.append(ring)
        for i in range(5000):
            fcntl.lockf(ring.fileno(), fcntl.LOCK_EX, 1, 10000 - 2 * i)
    with Attacker(attack) as attacker:
        assert rings_of(attacker, attacked(2)) == []


def test_locks_before_a_part():
    """As many that the number of posts is the first line that does not fit."""
    def lock(how, start):
        fcntl.fcntl(kept[0], fcntl.F_OFD_SETLK,
                    struct.pack("@hhqqi", how, os.SEEK_SET, start, 1, 0))

    def room():
        with open(f"/proc/self/fdinfo/{kept[0].fd}") as lines:
            return 4095 - lines.read().index("flowfd-ring-posts:")

    def attack():
        kept.append(flowfd.Ring(4))
        start = 1001
        while room() > 110:
            lock(fcntl.F_WRLCK, start)
            start += 2
        for digits in range(1, 19):
            lock(fcntl.F_WRLCK, 10**digits)
            if 0 <= room() < len("flowfd-ring-posts: 0"):
                return kept[0].fd
            lock(fcntl.F_UNLCK, 10**digits)

    with Attacker(attack) as attacker:
        assert attacker.facts
        assert rings_of(attacker, attacked(2)) == []
        place = (attacker.pid, attacker.facts)
        assert bridge(place, place) == (1, "flowfdctl: %d:%d: File too large\n" % place)


def serve_fuse(device, mute):
    """Serves one file: it can be opened, but reads, polls and requests with the numbers
    in @mute get no answer."""
    asked = 0
    while True:
        opcode, unique, node = struct.unpack_from("=IQQ", os.read(device, 1 << 18), 4)
        if opcode == 1:
            node = 2
        attr = struct.pack("6Q10I", node, 4096, *[0] * 7,
                           0o40755 if node == 1 else 0o100666, 1, *[0] * 5)
        replies = {
            1: struct.pack("4Q2I", 2, *[0] * 5) + attr,  # LOOKUP
            3: struct.pack("Q2I", 0, 0, 0) + attr,  # GETATTR
            26: struct.pack("4I2H11I", 7, 31, 4096, 0, 0, 0, 4096, *[0] * 10),  # INIT
            **dict.fromkeys((14, 27), struct.pack("Q2I", 1, 0, 0)),  # OPEN, OPENDIR
            **dict.fromkeys((18, 25, 29), b""),  # RELEASE, FLUSH, RELEASEDIR
        }
        asked += opcode == 3 and node == 2
        # FORGET, INTERRUPT and BATCH_FORGET take none; READ, POLL and all but the first
        # two GETATTR of the file wait for one.
        if opcode in (2, 36, 42, 15, 40, *mute) or opcode == 3 and node == 2 and asked > 2:
            continue
        reply = replies.get(opcode, b"")
        error = 0 if opcode in replies else -errno.ENOSYS
        os.write(device, struct.pack("=IiQ", 16 + len(reply), error, unique) + reply)


def mount(*args):
    if libc.mount(*args):
        raise OSError(ctypes.get_errno(), "mount")


def unshare_mounts():
    libc.unshare(CLONE_NEWNS)
    mount(None, b"/", None, MS_REC_PRIVATE, None)


def mount_fuse(directory, mute):
    """In a mount namespace of its own, where the file also has the device's name."""
    unshare_mounts()
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other"
    mount(b"test", directory.encode(), b"fuse", 0, options.encode())
    # Until the mount, a read of the device fails.
    if not os.fork():
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        serve_fuse(device, mute)
    mount(f"{directory}/file".encode(), flowfd.DEVICE.encode(), None, MS_BIND, None)
    os.close(device)


@contextlib.contextmanager
def with_mute_file(attack, mute=()):
    """A process whose file server, in user space, never answers."""
    def prepare():
        # The name of the device is about to be that of the file.
        kept.append(os.open(flowfd.DEVICE, os.O_RDWR))
        mount_fuse(directory, mute)
        flowfd.DEVICE = f"/proc/self/fd/{kept[-1]}"

    subprocess.run(["modprobe", "fuse"], check=True)
    with (tempfile.TemporaryDirectory() as directory,
          Attacker(lambda: attack(directory), prepare=prepare) as attacker):
        yield attacker


def test_mute_file():
    """Its file is in a ring and in an epoll, and has the device's name."""
    def attack(directory):
        ring = flowfd.Ring(2)
        file = os.open(directory + "/file", os.O_RDONLY | os.O_NONBLOCK)
        fake = os.open("/dev/flowfd", os.O_RDONLY)
        epoll = select.epoll()
        kept.extend((ring, epoll))
        for add in (ring.add, epoll.register):
            threading.Thread(target=add, args=(file, select.EPOLLIN)).start()
        time.sleep(1)
        return [ring.fd, os.readlink(f"/proc/self/fd/{fake}")]

    with with_mute_file(attack) as attacker:
        ring, name = attacker.facts
        assert name == "/dev/flowfd"
        result = attacked(0)
        assert {(r["busy"], r["watches"]) for r in rings_of(attacker, result)} == {
            (True, None)}
        rows = [line.split() for line in run(1, "list")[1].splitlines()]
        assert [row[3] for row in rows
                if row[1:3] == [str(attacker.pid), str(ring)]] == ["busy"]
        assert "busy" in run(2, "top", "-i", "0.1", "-n", "1")[1]


def lock(directory, *targets):
    """Blocks each lookup in the @targets, any directories that may be read, and signals
    do not end that: a reader of the directory waits for the memory that it must write
    to, a file of the mute server in @directory, and a writer waits for the reader."""
    file = os.open(directory + "/file", os.O_RDWR)
    # Not by Python's mmap, which asks for the size of the file.
    libc.mmap.restype = ctypes.c_void_p
    memory = ctypes.c_void_p(libc.mmap(None, 4096, mmap.PROT_WRITE,
                                       mmap.MAP_SHARED, file, 0))
    opened = [os.open(target, os.O_RDONLY) for target in targets]
    for calls in ([(libc.syscall, GETDENTS, fd, memory, 4096) for fd in opened],
                  [(os.mkdir, target + "/x") for target in targets]):
        for call, *args in calls:
            threading.Thread(target=call, args=args).start()
        time.sleep(1)


def lock_fdinfo(directory):
    kept.append(flowfd.Counter())
    lock(directory, "/proc/self/fdinfo")


def with_locked(*targets):
    return with_mute_file(lambda directory: lock(directory, *targets))


def is_without(process, status, error):
    assert (status, error.splitlines()[-1]) == (
        2, f"flowfdctl: the kernel did not answer about process {process.pid}")


def test_left_behind():
    """A file of /proc blocks its reader for ever, but nothing else waits."""
    with (with_mute_file(lock_fdinfo) as attacker,
          Process(roots_own, user=NOBODY + 1) as other):
        code, out, error = run(1, "list")
        is_without(attacker, code, error)
        assert f" {other.pid} " in out
        # Only the first of ten scans waits.
        _, out, _ = run(2, "top", "-i", "0.1", "-n", "10")
        assert [f" {other.pid} " in table
                for table in out.split("flowfd on this machine")[1:]] == [True] * 10


def owner_of(slot):
    """Process ID of the child of flowfdctl that has it; 0: none."""
    with open(SLOTS, "rb") as slots:
        content = os.pread(slots.fileno(), SLOT_SIZE, SLOT_SIZE * slot)
    if len(content) == SLOT_SIZE:
        _, owner, _, taken = struct.unpack("=iiQQ", content)
        with contextlib.suppress(ProcessLookupError):
            if owner and resource.prlimit(owner, RLIMIT_LOCKS)[0] == taken:
                return owner
    return 0


def call_while_locked(directory, *args, prepare=None, before=lambda: None):
    """Exit status and both outputs of flowfdctl, which must end within its time. Until
    @directory is unlocked again, a lookup in it would block the test, too. Calls @before
    when it is locked."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as error:
        with with_locked(directory):
            before()
            # To close descriptors, Python would read /proc.
            child = subprocess.Popen([CTL, *args], stdout=out, stderr=error,
                                     close_fds=False, preexec_fn=prepare)
            end = time.monotonic() + SLOT_SECONDS + SCAN_SECONDS + PRINT_SECONDS
            while child.poll() is None and time.monotonic() < end:
                time.sleep(0.1)
            in_time = child.returncode is not None
        child.wait()
        assert in_time
        out.seek(0)
        error.seek(0)
        return child.returncode, out.read(), error.read()


def test_locked_proc():
    """No process can be found."""
    code, _, error = call_while_locked("/proc", "list")
    assert (code, error) == (2, "flowfdctl: the kernel did not answer about /proc:"
                                " nothing was inspected\n")


def test_many_calls_without_proc():
    """The first one leaves a child behind, and then others leave /proc alone."""
    def before():
        for wait in SCAN_SECONDS, 0:  # in which the child could find all processes
            subprocess.run([CTL, "list"], capture_output=True, close_fds=False)
            time.sleep(wait)
        left.extend(filter(None, map(owner_of, range(SCAN_SLOTS))))

    left = []
    code, _, error = call_while_locked("/proc", "list", before=before)
    assert (code, error) == (2, "flowfdctl: the kernel did not answer about /proc:"
                                " nothing was inspected\n")
    assert len(left) == 1


def test_locked_device():
    """The directory of the device, in which its name must be looked up."""
    def use():
        unshare_mounts()
        mount(directory.encode(), b"/dev", None, MS_BIND, None)

    with tempfile.TemporaryDirectory() as directory, Process(roots_own) as own:
        os.chmod(directory, 0o755)
        os.mknod(directory + "/null", 0o20666, os.makedev(1, 3))
        code, out, error = call_while_locked(directory, "list", "--json", prepare=use)
    assert (code, error) == (2, "flowfdctl: the kernel did not answer about /dev/flowfd"
                                " or its module\n")
    # The opened counter cannot be recognized without the number of the device.
    assert [c["fd"] for c in json.loads(out)["counters"] if c["pid"] == own.pid] == [
        own.facts[0]]


@pytest.mark.parametrize("args, rest", [
    (["list"], (2, ": nothing was inspected\n")),
    (["bridge", "--remove", "sink", "1:1"], (1, "\n"))], ids=["list", "bridge"])
def test_locked_run(args, rest):
    """The directory of the file with the slots, which is not there yet."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(SLOTS)
    code, _, error = call_while_locked("/run", *args)
    assert (code, error) == (
        rest[0], "flowfdctl: the kernel did not answer about /run/flowfdctl" + rest[1])


def test_locked_run_with_the_slots():
    attacked(0)
    with with_locked("/run"):
        attacked(0)


def test_locked_processes():
    """Any user can lock the directory of any process: others are still shown."""
    def with_a_watch():
        roots_own()
        kept[-1][2].add(os.eventfd(0, os.EFD_NONBLOCK), select.EPOLLIN)
        if not os.fork():
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            signal.pause()

    with (Process(roots_own) as root,
          Process(with_a_watch, user=NOBODY - 1) as free,
          Process(roots_own, user=NOBODY - 1) as locked,
          with_locked(f"/proc/{root.pid}", f"/proc/{locked.pid}")):
        for args in (), ("--watches",):
            result = attacked(2, *args)
            shown = {o["pid"] for o in result["counters"] + result["rings"]}
            # One process of a user is left out, the other is not.
            assert [process.pid in shown for process in (root, locked, free)] == [
                False, False, True]
        # Once, although more than one child of flowfdctl scanned.
        assert len([r for r in result["rings"]
                    if r.get("watched") and r["pid"] >= free.pid]) == 1
        assert run(1, "list")[2] in [
            f"flowfdctl: the kernel did not answer about process {pid} and 1 more\n"
            for pid in (root.pid, locked.pid)]


def test_locked_beside_many_descriptors():
    """Another user could use up the time that a user with a locked process waits."""
    with (Process(roots_own) as root, Attacker(many_descriptors),
          Process(roots_own) as locked, with_locked(f"/proc/{locked.pid}")):
        code, out, error = run(1, "list")
        is_without(locked, code, error)
        assert f" {root.pid} " in out
        code, out, _ = run(2, "top", "-i", "0.1", "-n", "1")
        assert code == 2 and f" {root.pid} " in out


FLUSH = 25  # of FUSE: a descriptor is being closed


def bridge(place, other):
    """Exit status and messages of flowfdctl bridge, which must end within its time."""
    start = time.monotonic()
    done = ctl("bridge", "source", "%d:%d" % place, "%d:%d" % other, timeout=PATIENCE)
    assert time.monotonic() - start < SCAN_SECONDS + PRINT_SECONDS
    return done.returncode, done.stderr


def test_bridge_of_a_file_that_cannot_be_closed():
    """Its server never lets anybody close a descriptor of it."""
    def attack(directory):
        return os.open(directory + "/file", os.O_RDONLY | os.O_NONBLOCK)

    with with_mute_file(attack, mute=[FLUSH]) as attacker, left_behind() as left:
        place = (attacker.pid, attacker.facts)
        assert bridge(place, place) == (
            1, "flowfdctl: %d:%d is not a counter of flowfd\n" % place)
        assert owner_of(SCAN_SLOTS) in own_children()
        # The process that closes it is known at once, and no other one is left behind.
        for _ in range(BRIDGE_SLOTS):
            assert bridge(place, place) == (
                1, f"flowfdctl: the kernel did not answer about process {attacker.pid}\n")
        assert left() == 1
        other = (os.getpid(), 0)
        assert bridge(other, other) == (
            1, "flowfdctl: %d:%d is not a counter of flowfd\n" % other)
        assert left() == 1
    assert settles(left, 0, PATIENCE)


def test_many_eventfds():
    """More than flowfdctl has memory for: root's bridge is still shown."""
    def attack():
        event = os.eventfd(0)
        with contextlib.suppress(OSError):
            while True:
                os.dup(event)

    def bridged():
        counter, event = flowfd.Counter(), os.eventfd(0)
        kept.append(counter)
        return [counter.fd, event]

    with Attacker(attack), Process(bridged) as own:
        counter, event = own.facts
        assert bridge((own.pid, counter), (own.pid, event)) == (0, "")
        code, out, error = run(1, "bridge", "--json")
    # There are more than it has room for, or time.
    assert code == 2 and error
    shown, = json.loads(out)["bridges"]
    assert (shown["pid"], shown["fd"], shown["end"]) == (own.pid, counter, "source")
    assert [(e["pid"], e["fd"]) for e in shown["eventfd_descriptors"]] == [
        (own.pid, event)]


def test_many_calls():
    """As a timer makes them: a blocked process costs one child, and hides nothing else."""
    with (Process(roots_own) as own, Process(roots_own) as locked,
          with_locked(f"/proc/{locked.pid}"), left_behind() as left):
        for _ in range(SCAN_SLOTS + 2):
            done = ctl("--prometheus", close_fds=False, timeout=PATIENCE)
            is_without(locked, done.returncode, done.stderr)
            assert f'pid="{own.pid}"' in done.stdout
            assert left() == 1
        done = ctl("top", "-i", "0.1", "-n", "1", close_fds=False, timeout=PATIENCE)
        assert f"process {locked.pid}\n" in done.stdout and f" {own.pid} " in done.stdout
        assert left() == 1
    assert settles(left, 0, PATIENCE)
    attacked(0)


def is_looked_at(pid):
    """Whether a slot says that a child is at a process."""
    with contextlib.suppress(FileNotFoundError), open(SLOTS, "rb") as slots:
        return any(at == pid for at, in struct.iter_unpack("=i20x", slots.read()))
    return False


def test_killed_calls():
    """Nobody is there any more who could say where the child is blocked."""
    with (Process(roots_own) as own, Process(roots_own) as locked,
          with_locked(f"/proc/{locked.pid}"), left_behind() as left):
        call = subprocess.Popen([CTL, "list"], stdout=subprocess.DEVNULL, close_fds=False)
        assert settles(lambda: is_looked_at(locked.pid), True, PATIENCE)
        call.kill()
        call.wait()
        time.sleep(1.1)
        for _ in range(SCAN_SLOTS + 1):
            ctl(before=["timeout", "-s", "KILL", "0.9", CTL, "list"], close_fds=False)
        assert left() == 1
        done = ctl("list", close_fds=False, timeout=PATIENCE)
        is_without(locked, done.returncode, done.stderr)
        assert f" {own.pid} " in done.stdout


def test_crowd():
    """More blocked processes than there can be children: nothing is inspected then, but
    bridges are made."""
    with contextlib.ExitStack() as stack:
        locked = [stack.enter_context(Process(roots_own)).pid
                  for _ in range(SCAN_SLOTS + 1)]
        stack.enter_context(with_locked(*(f"/proc/{pid}" for pid in locked)))
        left = stack.enter_context(left_behind())
        start = time.monotonic()
        # At once: none of them can know that the others are blocked, too.
        calls = [subprocess.Popen([CTL, "list"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True, close_fds=False)
                 for _ in range(2 * SCAN_SLOTS)]
        for call in calls:
            error = call.communicate(timeout=PATIENCE)[1]
            assert (call.returncode, "process" in error) == (2, True)
        print(f"# {len(calls)} lists in {time.monotonic() - start:.1f} s")
        assert left() == SCAN_SLOTS
        for args in ("--prometheus",), ("list",), ("bridge",), ("top", "-n", "1"):
            start = time.monotonic()
            done = ctl(*args, close_fds=False, timeout=PATIENCE)
            assert (done.returncode, time.monotonic() - start < PRINT_SECONDS) == (2, True)
            crowd = re.search(
                f"there are {SCAN_SLOTS} processes of flowfdctl already .one is ([0-9]+).,"
                f" and the kernel does not answer {SCAN_SLOTS} of them: no more are made\n",
                done.stderr + done.stdout)
            assert int(crowd[1]) in own_children()
        assert left() == SCAN_SLOTS
        with flowfd.Counter() as counter:
            event = os.eventfd(0)
            assert bridge((os.getpid(), counter.fd), (os.getpid(), event)) == (0, "")
            os.close(event)
    assert settles(left, 0, PATIENCE)
    attacked(0)


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def is_removed(directory):
    with contextlib.suppress(OSError):
        os.rmdir(directory)
    return not os.path.exists(directory)


@contextlib.contextmanager
def cgroup():
    with tempfile.TemporaryDirectory() as top:
        mount(b"none", top.encode(), b"cgroup2", 0, None)
        group = f"{top}/flowfdctl-test"
        os.mkdir(group)
        try:
            yield group
        finally:
            write(f"{group}/cgroup.kill", "1")
            assert settles(lambda: is_removed(group), True, PATIENCE)
            libc.umount(top.encode())


def test_frozen():
    """A call is frozen with its cgroup while its child finds all processes."""
    def enter():
        write(f"{group}/cgroup.procs", "0")
        held.before()

    held = Held(GETDENTS)
    with cgroup() as group:
        call = subprocess.Popen([CTL, "list"], stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL, close_fds=False,
                                preexec_fn=enter)
        listener, _ = held.wait(call.pid)
        write(f"{group}/cgroup.freeze", "1")
        time.sleep(SCAN_SECONDS + 1)
        assert ctl("list").stderr == ("flowfdctl: the kernel did not answer about /proc:"
                                      " nothing was inspected\n")
        assert settles(lambda: ctl("list").returncode, 0, PATIENCE)
        os.close(listener)
    call.wait()


def test_hidden():
    """Directories of processes that cannot even be opened."""
    def hide():
        unshare_mounts()
        mount(b"none", b"/proc", b"proc", 0, b"hidepid=1")
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)

    with Process(roots_own):
        done = ctl("list", "--json", preexec_fn=hide)
    assert json.loads(done.stdout)["hidden_processes"] > 0


def shared_memory_kb():
    with open("/proc/meminfo") as lines:
        return next(int(line.split()[1]) for line in lines
                    if line.startswith("Shmem:"))


def test_left_memory():
    """A child process that is left behind keeps no memory of its scan."""
    def attack():
        event = os.eventfd(0, os.EFD_NONBLOCK)
        files = [os.dup(event) for _ in range(4096)]
        for _ in range(9):
            ring = flowfd.Ring(4096)
            kept.append(ring)
            for file in files:
                ring.add(file, select.EPOLLIN)
        # The watches stay: the file is open elsewhere.
        for file in files:
            os.close(file)

    with (Attacker(attack), Process(roots_own, user=NOBODY + 1) as other,
          with_locked(f"/proc/{other.pid}")):
        before = shared_memory_kb()
        codes = [run(1, "list", "--watches")[0] for _ in range(4)]
        grown = shared_memory_kb() - before
    assert codes == [2] * 4  # each left a child behind
    assert grown < 1024


def test_stopped():
    """Ctrl-Z in the middle of a scan, and fg after its time: it is out of time, but the
    kernel did answer."""
    with Attacker(many_descriptors):
        child = subprocess.Popen([CTL, "list"], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, text=True,
                                 start_new_session=True)
        time.sleep(0.5)
        os.killpg(child.pid, signal.SIGSTOP)
        time.sleep(SCAN_SECONDS + 1)
        os.killpg(child.pid, signal.SIGCONT)
        error = child.communicate(timeout=PATIENCE)[1]
    assert child.returncode == 2
    assert "the kernel did not answer" not in error


def test_threads():
    """Threads whose table of descriptors is not that of their process."""
    def attack():
        def with_a_table():
            libc.unshare(CLONE_FILES)
            mine = flowfd.Counter(maximum=77)
            kept.append(mine)
            facts["thread"] = [threading.get_native_id(), mine.fd]
            ready.set()
            threading.Event().wait()
        facts, ready = {}, threading.Event()
        threading.Thread(target=with_a_table).start()
        for _ in range(3):
            threading.Thread(target=threading.Event().wait).start()
        ready.wait()
        return facts["thread"]

    def attack_without_leader():
        kept.append(flowfd.Counter(maximum=78))
        reads, writes = os.pipe()
        if not os.fork():
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            def tell():
                os.write(writes, str(threading.get_native_id()).encode())
                threading.Event().wait()
            threading.Thread(target=tell).start()
            libc.syscall(EXIT, 0)  # ends this thread alone
        return int(os.read(reads, 16))

    with Attacker(attack) as attacker, Attacker(attack_without_leader) as other:
        result = attacked(0)
        done = ctl("list", "--json", preexec_fn=lambda: forbid(KCMP, errno.EPERM))
        for shown in result, json.loads(done.stdout):
            assert [[c["pid"], c["fd"]] for c in shown["counters"]
                    if c["maximum"] == 77] == [attacker.facts]
        assert sorted(c["pid"] for c in result["counters"] if c["maximum"] == 78) == (
            sorted([other.pid, other.facts]))


def test_many_threads():
    """They share a table, but not with the main thread, which has ended: it is shown
    once, although the threads take more than a turn."""
    def attack():
        reads, writes = os.pipe()
        with flowfd.Counter(maximum=80) as counter:
            if not os.fork():
                libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
                for _ in range(20):
                    os.dup(counter.fd)
                threading.stack_size(1 << 18)   # on arm64 half of that is the least
                for _ in range(600):
                    threading.Thread(target=threading.Event().wait).start()
                os.write(writes, b"x")
                libc.syscall(EXIT, 0)  # ends this thread alone
        os.close(writes)
        assert os.read(reads, 1)

    with Attacker(attack):
        time.sleep(1)
        shown = [c for c in attacked(0)["counters"] if c["maximum"] == 80]
    assert len(shown) == 21


def stop_looking(child, at):
    """Stops the child of flowfdctl while it reads the directory of process @at."""
    listed = f"/proc/{child.pid}/task/{child.pid}/children"
    while child.poll() is None:
        with open(listed) as children, contextlib.suppress(OSError):
            for looking in children.read().split():
                links = f"/proc/{looking}/fd/"
                if any(os.readlink(links + fd).startswith(f"/proc/{at}/")
                       for fd in os.listdir(links)):
                    os.kill(int(looking), signal.SIGSTOP)
                    return looking
    return None


def test_no_answer():
    """A file of /proc blocks its reader: another process goes on with the others."""
    with (Attacker(many_descriptors) as attacker,
          Process(roots_own, user=NOBODY - 1),
          Process(roots_own, user=NOBODY + 1) as other):
        start = time.monotonic()
        child = subprocess.Popen([CTL, "list"], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        looking = stop_looking(child, attacker.pid)
        out, error = child.communicate(timeout=PATIENCE)
        spent = time.monotonic() - start
    assert looking
    is_without(attacker, child.returncode, error)
    assert f" {other.pid} " in out
    assert spent < SCAN_SECONDS + PRINT_SECONDS
    assert settles(lambda: os.path.exists(f"/proc/{looking}"), False, PATIENCE)


if __name__ == "__main__":
    sys.exit(tap.run())
