#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-only
"""Usage: guest-flowfdctl.py BUILD [PYTEST-ARGUMENT...]

flowfdctl info and list, as root in a virtual machine: list shows each user the counters
and rings that this user may see, while processes come and go. Prints TAP.
"""

import contextlib
import glob
import json
import os
import random
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

import pytest
import tap
from ctl import (CTL, NOBODY, PATIENCE, PR_SET_DUMPABLE, Process, ctl, flowfd, kept,
                 libc, needs_module, repeated, table, unprintable)
from tap import settles

EMPTY = {"format": "flowfdctl-list", "version": 1, "complete": True,
         "hidden_processes": 0, "unknown_descriptors": 0, "counters": [], "rings": []}
pytestmark = needs_module


def listed(*args, **other):
    """The result of list --json without statistics, and with the watches of a ring in
    the order of theirs."""
    done = ctl("list", "--json", *args, **other)
    assert (done.returncode, done.stderr) == (0, "")
    result = json.loads(done.stdout)
    for ring in result["rings"]:
        ring.get("watched", []).sort(key=lambda watch: watch["fd"])
    for shown in result["counters"] + result["rings"]:
        del shown["stats"]
    return result


@pytest.fixture(scope="module", autouse=True)
def nothing_remains():
    yield
    assert settles(listed, EMPTY, PATIENCE)


def id_of(fd, key):
    with open(f"/proc/self/fdinfo/{fd}") as lines:
        return next(int(line.split()[1]) for line in lines
                    if line.startswith(key + ":"))


def counter_facts(fd, **other):
    """What list --json must show of a counter of this process."""
    return {"id": id_of(fd, "eventfd-id"), "pid": os.getpid(), "fd": fd,
            "command": "holder", "count": 0, "maximum": None, "rate": 0,
            "burst": 0, "deferred": False, "semaphore": False, "mapped": False,
            "flow": {"read_mark": 1, "write_mark": 1, "max_delay": 0, "overflow": "wait",
                     "source": None, "sink": None, "source_waiting": 0}, **other}


def plain(count):
    """Counters with the settings that they have when the device is opened."""
    def make():
        fds = [os.open(flowfd.DEVICE, os.O_RDWR) for _ in range(count)]
        return {"counters": [counter_facts(fd) for fd in fds], "rings": []}
    return make


def one_of_each():
    made = flowfd.Counter(initial=3, maximum=10, burst=2, rate=1000)
    same = os.dup(made.fd)
    full = flowfd.Counter(initial=2**64 - 2, flags=flowfd.SEMAPHORE)
    settings = {"count": 3, "maximum": 10, "burst": 2, "rate": 1000}
    counters = [counter_facts(made.fd, **settings), counter_facts(same, **settings),
                counter_facts(full.fd, count=2**64 - 2, semaphore=True)]

    ring = flowfd.Ring(5)
    reader, writer = os.pipe2(os.O_NONBLOCK)
    event = os.eventfd(0, os.EFD_NONBLOCK)
    ring.add(reader, select.EPOLLIN)
    ring.add(event, select.EPOLLIN | select.EPOLLONESHOT)
    os.write(writer, b"x")
    os.eventfd_write(event, 1)
    next(ring.harvest())
    # mmap keeps a descriptor too. The first has the watches.
    rings = [{"id": id_of(fd, "flowfd-ring-id"), "pid": os.getpid(), "fd": fd,
              "command": "holder", "max_items": 5, "head": 1, "tail": 2,
              "pending": 1, "busy": False, "watches": 2, "posts": 0}
             for fd in range(3, 64)
             if os.path.islink(f"/proc/self/fd/{fd}") and
             os.readlink(f"/proc/self/fd/{fd}") == "anon_inode:[flowfd-ring]"]
    rings[0]["watched"] = [
        {"fd": reader, "events": 0x19, "data": ring.numbers[reader], "pinned": False},
        {"fd": event, "events": 0, "data": ring.numbers[event], "pinned": True}]
    kept.extend((made, full, ring))
    return {"counters": counters, "rings": rings}


@pytest.fixture
def holder():
    with Process(one_of_each) as process:
        yield process


def together(*holders):
    return {kind: sorted((o for holder in holders for o in holder.facts[kind]),
                         key=lambda o: (o["pid"], o["fd"]))
            for kind in ("counters", "rings")}


def objects(result):
    return {kind: result[kind] for kind in ("counters", "rings")}


@pytest.mark.parametrize("user", [None, NOBODY], ids=["root", "nobody"])
def test_info(user):
    with open("/sys/module/flowfd/version") as file:
        version = file.read().strip()
    assert ctl("info", user=user).stdout == f"""module           {version}
libflowfd        {version}
ABI version      1
features         maximum bucket ring setup mapped posts policies statistics bridges
token rate       at most 1000000000 a second
ring             at most 1048576 watched files
"""


def test_info_without_permission():
    mode = os.stat(flowfd.DEVICE).st_mode & 0o777
    os.chmod(flowfd.DEVICE, 0o600)
    done = ctl("info", user=NOBODY)
    os.chmod(flowfd.DEVICE, mode)
    assert "fallback  " in done.stdout
    assert (done.returncode, done.stderr) == (
        1, "flowfdctl: this user may not open /dev/flowfd: root can change that"
        " with a udev rule\n")


@pytest.mark.parametrize("mount, error", [
    ("mount -t tmpfs none /dev", "the flowfd module is loaded, but its device is not"
     " here: a container must be given /dev/flowfd\n"),
    ("mount --bind /dev/null /dev/flowfd", "the loaded flowfd module is too old")],
    ids=["no device", "another device"])
def test_info_without_the_device(mount, error):
    done = ctl(before=["unshare", "-m", "sh", "-c", f"{mount} && {CTL} info"])
    assert done.returncode == 1
    assert ("fallback  " in done.stdout) == ("container" in error)
    assert done.stderr.partition(" for libflowfd")[0] == "flowfdctl: " + error


def test_nothing():
    assert listed() == EMPTY
    assert ctl("list", "--watches").stdout.split("\n") == [
        "COUNTER  PID  FD  COUNT  MAXIMUM  RATE  BURST  DEFERRED  TYPE  COMMAND", "",
        "RING  PID  FD  WATCHES  POSTS  MAX  HEAD  TAIL  PENDING  COMMAND", "",
        "RING  FD  PINNED  DATA  EVENTS", ""]


def test_json(holder):
    with Process(plain(3)) as other:
        facts = together(holder, other)
        assert listed("--watches") == {**EMPTY, **facts}
        assert ["watched" in ring for ring in listed()["rings"]] == [False, False]
    # Two descriptors of a counter, and of a ring, have one id.
    assert len({c["id"] for c in facts["counters"]}) == 5
    assert (len(facts["rings"]), len({r["id"] for r in facts["rings"]})) == (2, 1)


def test_tables(holder):
    text = ctl("list", "-w").stdout
    made = together(holder)["counters"][0]
    rows = table(text, "COUNTER")
    assert rows[0] == {
        "COUNTER": str(made["id"]), "PID": str(holder.pid), "FD": str(made["fd"]),
        "COUNT": "3", "MAXIMUM": "10", "RATE": "1000", "BURST": "2", "DEFERRED": "-",
        "TYPE": "count", "COMMAND": "holder"}
    assert [rows[2][key] for key in ("COUNT", "MAXIMUM", "RATE", "BURST", "TYPE")] == [
        str(2**64 - 2), "-", "-", "-", "semaphore"]
    ring = holder.facts["rings"][0]
    assert table(text, "RING")[0] == {
        "RING": str(ring["id"]), "PID": str(holder.pid), "FD": str(ring["fd"]),
        "WATCHES": "2", "POSTS": "0", "MAX": "5", "HEAD": "1", "TAIL": "2",
        "PENDING": "1", "COMMAND": "holder"}
    # Each watch once, although two descriptors have the ring.
    watches = table(text[text.index("RING  FD"):], "RING")
    assert sorted(tuple(row.values()) for row in watches) == sorted(
        (str(ring["id"]), str(w["fd"]), "yes" if w["pinned"] else "-", hex(w["data"]),
         "0" if w["pinned"] else "IN|ERR|HUP") for w in ring["watched"])


def test_policies():
    with (flowfd.Counter(initial=1, maximum=1000) as counter, flowfd.Counter() as plain,
          flowfd.Ring(1)):
        counter.set_flow(counter.flow()._replace(
            read_mark=64, write_mark=16, max_delay=0.0015, overflow=flowfd.DROP))
        counter.write(1500)
        shown = json.loads(ctl("list", "--json").stdout)["counters"]
        assert [c["flow"]["overflow"] for c in shown] == ["drop", "wait"]
        assert shown[0]["flow"] == {
            "read_mark": 64, "write_mark": 16, "max_delay": 1500000, "overflow": "drop",
            "source": None, "sink": None, "source_waiting": 0}
        assert [c["stats"]["lost"] for c in shown] == [1500, 0]
        text = ctl("list", "--flow").stdout
        rows = table(text[text.index("COUNTER", 1):], "COUNTER")
        assert [list(row.values())[2:10] for row in rows] == [
            [str(counter.fd), "64", "16", "1.5ms", "drop", "1500", "-", "-"],
            [str(plain.fd), "1", "1", "0ns", "wait", "0", "-", "-"]]
        assert list(rows[0])[3:] == ["READ-MARK", "WRITE-MARK", "MAX-DELAY", "OVERFLOW",
                                     "LOST", "SOURCE", "SINK", "WAITING", "COMMAND"]


def test_watches_of_a_process_that_ends():
    """Its name cannot be read: the watches are shown with another descriptor."""
    def shown():
        done = ctl(before=["unshare", "-m", "sh", "-c", f"mount --bind {nameless}"
                           f" /proc/{ends.pid}/comm && {CTL} list --json -w"])
        return [(ring["pid"], "watched" in ring)
                for ring in json.loads(done.stdout)["rings"] if ring["id"] == number]

    with flowfd.Ring(1) as ring, tempfile.TemporaryDirectory() as directory:
        nameless = directory + "/socket"
        os.mknod(nameless, 0o140666)
        event = os.eventfd(0, os.EFD_NONBLOCK)
        ring.add(event, select.EPOLLIN)
        number = id_of(ring.fd, "flowfd-ring-id")
        with Process(lambda: None) as first, Process(lambda: None) as second:
            for ends in first, second:
                other = {first.pid, second.pid, os.getpid()} - {ends.pid}
                rings = shown()
                assert {pid for pid, _ in rings} == other
                assert sum(watched for _, watched in rings) == 1
        os.close(event)


def test_no_ring_has_the_id_of_another(holder):
    rings = [flowfd.Ring(1) for _ in range(2)]
    ids = [id_of(ring.fd, "flowfd-ring-id") for ring in rings]
    rings.pop().close()
    rings.append(flowfd.Ring(1))
    ids.append(id_of(rings[1].fd, "flowfd-ring-id"))
    assert len({*ids, holder.facts["rings"][0]["id"]}) == 4
    own = {r["id"] for r in listed()["rings"] if r["pid"] == os.getpid()}
    for ring in rings:
        ring.close()
    assert own == {ids[0], ids[2]}


def test_fork_shares_counters(holder):
    before = len(listed()["counters"])
    with flowfd.Counter() as shared:
        number = id_of(shared.fd, "eventfd-id")
        with Process(lambda: None) as child:
            both = [c["pid"] for c in listed()["counters"] if c["id"] == number]
            shared.close()
    assert both == sorted([os.getpid(), child.pid])
    assert len(listed()["counters"]) == before


def test_held():
    """A wakeup is deferred until the next token is due, at most one second: a thread
    must go on writing so that a list finds one."""
    def deferred():
        """In the table and in JSON."""
        return (table(ctl("list").stdout, "COUNTER")[0]["DEFERRED"],
                listed()["counters"][0]["deferred"])

    with flowfd.Counter(burst=1, rate=1) as counter, select.epoll() as poller:
        poller.register(counter.fd, select.EPOLLIN)
        with repeated(counter.write):
            assert settles(deferred, ("yes", True), PATIENCE)
        assert settles(deferred, ("-", False), PATIENCE)


def readable_processes():
    """How many processes root owns that have a program."""
    count = 0
    for program in glob.glob("/proc/[0-9]*/exe"):
        with contextlib.suppress(OSError):
            count += os.lstat(program).st_uid == 0 and os.readlink(program) != ""
    return count


def test_without_root():
    def dumpable():
        # setresuid() cleared it: other processes of the user may look again.
        libc.prctl(PR_SET_DUMPABLE, 1)
        return plain(2)()

    # A zombie, if a reader takes the first parenthesis for the last.
    with (Process(dumpable, user=NOBODY) as own,
          Process(plain(1), name=b") Z 1 1 1 1 1 1") as other):
        hidden = readable_processes()  # without kernel threads
        seen = listed(user=NOBODY)
        assert objects(seen) == together(own)
        assert seen["hidden_processes"] == hidden
        done = ctl("list", user=NOBODY)
        assert len(table(done.stdout, "COUNTER")) == 2
        assert done.stderr == (f"flowfdctl: {hidden} processes are not shown: this user"
                               " may not inspect them\n")
        assert [c["pid"] for c in listed()["counters"]] == [own.pid, own.pid, other.pid]


@pytest.mark.parametrize("name, escaped, decoded", [
    (b"a\n\x1b[2J\"\\\xff\xc3\xa9)", 'a\\x0a\\x1b[2J"\\\\\\xff\\xc3\\xa9)',
     'a\n\x1b[2J"\\\ufffd\xe9)'),
    (b" 1 ) S 2 3", " 1 ) S 2 3", " 1 ) S 2 3"),
    (b"\n\n", "\\x0a\\x0a", "\n\n"),
    (b"\xc2\x9b1m\xe2\x80\xae", "\\xc2\\x9b1m\\xe2\\x80\\xae", "\x9b1m\u202e")],
    ids=["escape", "parenthesis", "newlines", "utf-8"])
def test_strange_names(name, escaped, decoded):
    with Process(plain(1), name=name):
        text = ctl("list").stdout
        assert text.splitlines()[1].partition(" count  ")[2] == escaped
        assert listed()["counters"][0]["command"] == decoded
        assert unprintable(text + ctl("list", "--json").stdout) == []


def test_device_of_another_name_in_another_root():
    def make():
        os.chroot(directory)
        os.open("/node", os.O_RDWR)

    with tempfile.TemporaryDirectory() as directory:
        os.mknod(directory + "/node", 0o20666, os.stat(flowfd.DEVICE).st_rdev)
        with Process(make) as holder:
            assert [c["pid"] for c in listed()["counters"]] == [holder.pid]


def test_1000_counters():
    with Process(plain(1000)) as holder:
        start = time.monotonic()
        seen = listed()
        spent = time.monotonic() - start
    assert objects(seen) == together(holder)
    assert len({c["id"] for c in seen["counters"]}) == 1000
    print(f"# listed in {1000 * spent:.0f} ms")
    assert spent < 10


def churn():
    """Makes processes that come and go, with descriptors that come and go."""
    for _ in range(2):
        if os.fork():
            continue
        while True:
            pid = os.fork()
            if not pid:
                held = flowfd.Counter()  # for a list to find
                for _ in range(20):
                    os.open(flowfd.DEVICE, os.O_RDWR)
                for _ in range(20):
                    flowfd.Counter().close()
                # It ends before a list comes to it, or stays throughout.
                time.sleep(random.choice((0, random.uniform(0, 0.1))))
                held.close()
                os._exit(0)
            os.waitpid(pid, 0)


def test_churn():
    met = lists = 0
    end = time.monotonic() + PATIENCE
    with Process(churn):
        while met < 40 and time.monotonic() < end:
            lists += 1
            met += bool(listed()["counters"])
    print(f"# {met} of {lists} lists met a process")
    assert met >= 10


def test_output_that_cannot_be_written():
    with open("/dev/full", "w") as full:
        done = subprocess.run([CTL, "list"], stdout=full, stderr=subprocess.PIPE,
                              text=True)
    assert (done.returncode, done.stderr) == (
        1, "flowfdctl: standard output: No space left on device\n")


@pytest.mark.parametrize("limit, user, status, output, error", [
    ("nofile=5", None, 2, ["COUNTER", "PID"],
     "N descriptors or processes could not be read: Too many open files"),
    ("nproc=1", NOBODY, 1, [],
     "cannot create a process that reads /proc: Resource temporarily unavailable")],
    ids=["descriptors", "processes"])
def test_limits(limit, user, status, output, error):
    done = ctl(before=["prlimit", "--" + limit, CTL, "list"], user=user)
    assert (done.returncode, done.stdout.split()[:2]) == (status, output)
    assert re.sub("[0-9]+", "N", done.stderr) == f"flowfdctl: {error}\n"


def test_caller_ignores_sigchld():
    done = ctl("list", preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert (done.returncode, done.stderr) == (0, "")


if __name__ == "__main__":
    sys.exit(tap.run())
