#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-only
"""Usage: guest-flowfdctl.py BUILD [PYTEST-ARGUMENT...]

flowfdctl info and list, as root in a virtual machine: list shows all counters and rings
while processes come and go, whatever users do; list --pid those of a process. Prints TAP.
"""

import ctypes
import errno
import json
import os
import random
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
from ctl import (COMMAND, CTL, DEVICE, LIST, MAPPED, NOBODY, NONBLOCK, PATIENCE,
                 PR_SET_DUMPABLE, PR_SET_PDEATHSIG, SEMAPHORE, Counter, Process, Ring,
                 call, ctl, kept, libc, needs_module, repeated, table, unprintable)
from tap import settles

MANY = int(os.environ.get("FLOWFD_OBJECTS", 5000))
# For a list of MANY, on an emulated machine beside others: it finds what has no end. A
# processor takes 0.6 s for 100,000.
SECONDS = 60 * max(1, MANY // 5000)
MEMORY = 64 << 20
CLONE_NEWNS = 0x20000
MS_BIND, MS_REC_PRIVATE = 0x1000, 0x44000
pytestmark = needs_module


def listed(*args, status=0, **other):
    """The result of list --json."""
    done = ctl("list", "--json", *args, **other)
    assert (done.returncode, bool(done.stderr)) == (status, bool(status))
    result = json.loads(done.stdout)
    assert (result["format"], result["version"]) == ("flowfdctl-list", 3)
    assert result["complete"] == (not status)
    return result


def of(pid, *args, **other):
    """Counters and rings that a process created, without statistics."""
    result = listed(*args, **other)
    return {kind: [{key: value for key, value in o.items() if key != "stats"}
                   for o in result[kind] if o["pid"] == pid]
            for kind in ("counters", "rings")}


@pytest.fixture(scope="module", autouse=True)
def nothing_remains():
    """No counter and no ring of these tests, or of what they ran."""
    def remaining():
        return [o["pid"] for kind in ("counters", "rings") for o in listed()[kind]
                if o["pid"] == os.getpid() or not os.path.exists(f"/proc/{o['pid']}")]

    yield
    assert settles(remaining, [], PATIENCE)


def id_of(fd, key):
    with open(f"/proc/self/fdinfo/{fd}") as lines:
        return next(int(line.split()[1]) for line in lines
                    if line.startswith(key + ":"))


def counter_facts(fd, **other):
    """What list --json must show of a counter of this process."""
    return {"id": id_of(fd, "eventfd-id"), "uid": os.getuid(), "pid": os.getpid(),
            "command": "holder", "count": 0, "maximum": None, "rate": 0,
            "burst": 0, "deferred": False, "semaphore": False, "mapped": False,
            "flow": {"read_mark": 1, "write_mark": 1, "max_delay": 0, "overflow": "wait",
                     "source": None, "sink": None, "source_waiting": 0}, **other}


def plain(count):
    """Counters with the settings that they have when the device is opened."""
    def make():
        fds = [os.open(DEVICE, os.O_RDWR) for _ in range(count)]
        return {"counters": [counter_facts(fd) for fd in fds], "rings": []}
    return make


def one_of_each():
    made = Counter(initial=3, maximum=10, burst=2, rate=1000)
    same = os.dup(made.fd)
    full = Counter(initial=2**64 - 2, flags=SEMAPHORE)
    ring = Ring(5)
    reader, writer = os.pipe2(os.O_NONBLOCK)
    event = os.eventfd(0, os.EFD_NONBLOCK)
    ring.add(reader, select.EPOLLIN)
    ring.add(event, select.EPOLLIN | select.EPOLLONESHOT)
    os.write(writer, b"x")
    os.eventfd_write(event, 1)
    next(ring.harvest())
    number = id_of(ring.fd, "flowfd-ring-id")
    kept.extend((made, full, ring))
    return {
        "counters": [
            counter_facts(made.fd, count=3, maximum=10, burst=2, rate=1000),
            counter_facts(full.fd, count=2**64 - 2, semaphore=True)],
        "rings": [{"id": number, "uid": os.getuid(), "pid": os.getpid(),
                   "command": "holder", "max_items": 5, "head": 1, "tail": 2,
                   "pending": 1, "busy": False, "watches": 2, "posts": 0}],
        "ring": ring.fd,
        "watches": [
            f"tfd: {reader:8} events: {0x19:8x} data: {reader:16x} pinned: 0",
            f"tfd: {event:8} events: {0:8x} data: {event:16x} pinned: 1"],
        "fds": [made.fd, same, full.fd]}


@pytest.fixture
def holder():
    with Process(one_of_each) as process:
        yield process


def objects(facts):
    return {kind: sorted(facts[kind], key=lambda o: o["id"])
            for kind in ("counters", "rings")}


@pytest.mark.parametrize("user", [None, NOBODY], ids=["root", "nobody"])
def test_info(user):
    with open("/sys/module/flowfd/version") as file:
        version = file.read().strip()
    access = "for root" if not user else ("only root may see all counters and rings:"
                                          " 'flowfdctl list --pid PID' shows one process")
    assert ctl("info", user=user).stdout == f"""module           {version}
libflowfd        {version}
ABI version      1
features         maximum bucket ring setup mapped posts policies statistics bridges balance keys
token rate       at most 1000000000 a second
ring             at most 1048576 watched files
list             {access}
"""


def test_info_without_permission():
    mode = os.stat(DEVICE).st_mode & 0o777
    os.chmod(DEVICE, 0o600)
    done = ctl("info", user=NOBODY)
    os.chmod(DEVICE, mode)
    assert "fallback  " in done.stdout
    assert (done.returncode, done.stderr) == (
        1, "flowfdctl: this user may not open /dev/flowfd: root can change that"
        " with a udev rule; or a filter of seccomp(2) refuses a call\n")


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


def test_permissions():
    """Only root may read the list, and a name in it is no way in."""
    assert os.stat(LIST).st_mode & 0o7777 == 0o400
    done = ctl("list", user=NOBODY)
    assert (done.returncode, done.stdout, done.stderr) == (
        1, "", "flowfdctl: only root may see all counters and rings:"
        " 'flowfdctl list --pid PID' shows one process\n")


@pytest.mark.parametrize("change, error", [
    ("umount /sys/kernel/debug",
     "debugfs is not mounted: run 'mount -t debugfs none /sys/kernel/debug' as root"),
    ("mount -t tmpfs none /sys/kernel/debug/flowfd", "the loaded flowfd module has no list"
     " in /sys/kernel/debug: it is too old for flowfdctl"),
    ("umount /sys/kernel/debug; echo quiet debugfs=off > $t && mount --bind $t"
     " /proc/cmdline", "debugfs is switched off on the kernel's command line (debugfs=):"
     " 'flowfdctl list --pid PID' shows one process"),
    ("umount /sys/kernel/debug; echo nodev proc > $t && mount --bind $t"
     " /proc/filesystems", "this kernel has no debugfs (CONFIG_DEBUG_FS):"
     " 'flowfdctl list --pid PID' shows one process")],
    ids=["unmounted", "older module", "debugfs=off", "no debugfs"])
def test_no_list(change, error):
    done = ctl(before=["unshare", "-m", "sh", "-c", f"t=$(mktemp); {change} && {CTL} list;"
                       " s=$?; rm $t; exit $s"])
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("flowfdctl: " + error)


def test_tables_without_rows():
    assert ctl("list", "--pid", "1").stdout.split("\n") == [
        "COUNTER  PID  FD  COUNT  MAXIMUM  RATE  BURST  DEFERRED  TYPE  COMMAND", "",
        "RING  PID  FD  WATCHES  POSTS  MAX  HEAD  TAIL  PENDING  COMMAND", ""]


def test_json(holder):
    with Process(plain(3)) as other:
        for process in holder, other:
            assert of(process.pid) == objects(process.facts)


def test_tables(holder):
    text = ctl("list").stdout
    made = holder.facts["counters"][0]
    rows = [row for row in table(text, "COUNTER") if row["PID"] == str(holder.pid)]
    assert rows[0] == {
        "COUNTER": str(made["id"]), "UID": "0", "PID": str(holder.pid), "COUNT": "3",
        "MAXIMUM": "10", "RATE": "1000", "BURST": "2", "DEFERRED": "-", "TYPE": "count",
        "COMMAND": "holder"}
    assert [rows[1][key] for key in ("COUNT", "MAXIMUM", "RATE", "BURST", "TYPE")] == [
        str(2**64 - 2), "-", "-", "-", "semaphore"]
    ring = holder.facts["rings"][0]
    row, = (row for row in table(text, "RING") if row["PID"] == str(holder.pid))
    assert row == {
        "RING": str(ring["id"]), "UID": "0", "PID": str(holder.pid), "WATCHES": "2",
        "POSTS": "0", "MAX": "5", "HEAD": "1", "TAIL": "2", "PENDING": "1",
        "COMMAND": "holder"}


def test_watches_in_fdinfo(holder):
    """A watch that is armed, and one that is not."""
    with open(f"/proc/{holder.pid}/fdinfo/{holder.facts['ring']}") as lines:
        shown = [line.rstrip("\n") for line in lines if line.startswith("tfd:")]
    assert sorted(shown) == sorted(holder.facts["watches"])


def test_process(holder):
    """Each descriptor is a line."""
    result = listed("--pid", str(holder.pid))
    made, same, full = holder.facts["fds"]
    fds = [(c["fd"], c["id"], c["pid"], c["command"]) for c in result["counters"]]
    ids = [c["id"] for c in holder.facts["counters"]]
    assert fds == sorted([(made, ids[0], holder.pid, "holder"),
                          (same, ids[0], holder.pid, "holder"),
                          (full, ids[1], holder.pid, "holder")])
    ring = holder.facts["rings"][0]
    assert [r["id"] for r in result["rings"]] == [ring["id"]]
    assert "uid" not in result["rings"][0]


def test_process_without_dev():
    """The device need not be where flowfdctl runs."""
    with Process(plain(2)) as process:
        done = ctl(before=["unshare", "-m", "sh", "-c", "mount -t tmpfs none /dev &&"
                           f" {CTL} list --json --pid {process.pid}"])
    assert done.stderr == ""
    assert len(json.loads(done.stdout)["counters"]) == 2


def test_process_without_its_main_thread():
    """/proc shows the descriptors in the other threads alone."""
    def two_threads():
        libc.prctl(PR_SET_DUMPABLE, 1)
        signal.signal(signal.SIGUSR1, lambda *_: libc.pthread_exit(None))
        threading.Thread(target=signal.pause).start()
        return plain(2)()

    for user in None, NOBODY:
        with Process(two_threads, user=user) as process:
            os.kill(process.pid, signal.SIGUSR1)
            assert settles(lambda: os.listdir(f"/proc/{process.pid}/fd"), [], PATIENCE)
            done = ctl("list", "--json", "--pid", str(process.pid), user=user)
            assert done.stderr == ""
            assert len(json.loads(done.stdout)["counters"]) == 2


def test_process_of_another_user():
    def dumpable():
        # setresuid() cleared it: other processes of the user may look again.
        libc.prctl(PR_SET_DUMPABLE, 1)
        return plain(2)()

    with Process(dumpable, user=NOBODY) as own, Process(plain(1)) as other:
        for user in None, NOBODY:
            assert len(listed("--pid", str(own.pid), user=user)["counters"]) == 2
        done = ctl("list", "--pid", str(other.pid), user=NOBODY)
    assert (done.returncode, done.stdout, done.stderr) == (
        1, "", f"flowfdctl: this user may not inspect process {other.pid}: that needs"
        " root, or the permission to trace it (ptrace(2))\n")
    done = ctl("list", "--pid", str(other.pid))
    assert (done.returncode, done.stderr) == (
        1, f"flowfdctl: there is no process {other.pid}\n")


def test_creator():
    """Who created it stays, wherever it goes: user, process and name of that moment."""
    with Counter() as shared:
        number = id_of(shared.fd, "eventfd-id")
        with Process(lambda: None, user=NOBODY):
            shown, = (c for c in listed()["counters"] if c["id"] == number)
            assert (shown["uid"], shown["pid"]) == (0, os.getpid())
    with Process(plain(1), user=NOBODY) as made:
        shown, = of(made.pid)["counters"]
        assert (shown["uid"], shown["command"]) == (NOBODY, "holder")


def test_mapped():
    """list says so: its writes in memory are no calls."""
    def make():
        kept.append(Counter(maximum=5, flags=MAPPED))

    with Process(make) as process:
        row, = (row for row in table(ctl("list").stdout, "COUNTER")
                if row["PID"] == str(process.pid))
        assert (row["TYPE"], row["MAXIMUM"]) == ("mapped", "5")
        assert [c["mapped"] for c in of(process.pid)["counters"]] == [True]


def test_policies():
    with Counter(initial=1) as counter, Counter() as other, Ring(1):
        # A maximum, marks, a delay, no bucket, and FLOWFD_OVERFLOW_DROP.
        flow = struct.pack("QQQQIIIIQQII", 1000, 64, 16, 1500000, 0, 0, 3, 0, 0, 0, 0, 0)
        call("set_flow", counter.fd, flow, ctypes.c_size_t(len(flow)))
        counter.write(1500)
        ids = [id_of(c.fd, "eventfd-id") for c in (counter, other)]
        shown = [c for c in listed()["counters"] if c["id"] in ids]
        assert [c["flow"]["overflow"] for c in shown] == ["drop", "wait"]
        assert shown[0]["flow"] == {
            "read_mark": 64, "write_mark": 16, "max_delay": 1500000, "overflow": "drop",
            "source": None, "sink": None, "source_waiting": 0}
        assert [c["stats"]["lost"] for c in shown] == [1500, 0]
        text = ctl("list", "--flow").stdout
        rows = [row for row in table(text[text.index("COUNTER", 1):], "COUNTER")
                if int(row["COUNTER"]) in ids]
        assert [list(row.values())[3:10] for row in rows] == [
            ["64", "16", "1.5ms", "drop", "1500", "-", "-"],
            ["1", "1", "0ns", "wait", "0", "-", "-"]]
        assert list(rows[0])[3:] == ["READ-MARK", "WRITE-MARK", "MAX-DELAY", "OVERFLOW",
                                     "LOST", "SOURCE", "SINK", "WAITING", "COMMAND"]


def test_statistics():
    """What the kernel has counted, in both forms."""
    def own(rows):
        row, = (row for row in rows if row["PID"] == str(os.getpid()))
        return list(row.items())[3:]

    with Counter(maximum=10, flags=NONBLOCK) as counter, Ring(1):
        for value in 3, 5:
            counter.write(value)
        with pytest.raises(BlockingIOError):
            counter.write(2)
        counter.read()
        counter.write(1)
        shown, = (c for c in listed()["counters"] if c["pid"] == os.getpid())
        assert shown["stats"] == {
            "produced": 9, "writes": 3, "reads": 1, "wakeups": shown["stats"]["wakeups"],
            "held_back": 0, "again": 1, "waits": 0, "wait_ns": 0, "lost": 0,
            "highest": 8}
        text = ctl("list", "--stats").stdout
        assert own(table(text[text.index("COUNTER", 1):], "COUNTER")) == [
            ("PRODUCED", "9"), ("WRITES", "3"), ("READS", "1"),
            ("WAKEUPS", str(shown["stats"]["wakeups"])), ("HELD-BACK", "0"),
            ("AGAIN", "1"), ("WAITS", "0"), ("WAIT", "0ns"), ("LOST", "0"),
            ("HIGHEST", "8"), ("COMMAND", COMMAND)]
        assert own(table(text[text.rindex("RING"):], "RING")) == [
            ("PUBLISHED", "0"), ("COALESCED", "0"), ("WAITS", "0"), ("SLEEPS", "0"),
            ("COMMAND", COMMAND)]


def test_no_ring_has_the_id_of_another():
    rings = [Ring(1) for _ in range(2)]
    ids = [id_of(ring.fd, "flowfd-ring-id") for ring in rings]
    rings.pop().close()
    rings.append(Ring(1))
    ids.append(id_of(rings[1].fd, "flowfd-ring-id"))
    assert len(set(ids)) == 3
    own = [r["id"] for r in of(os.getpid())["rings"]]
    for ring in rings:
        ring.close()
    assert own == [ids[0], ids[2]]


def test_held():
    """A wakeup is deferred until the next token is due, at most one second: a thread
    must go on writing so that a list finds one."""
    def deferred():
        """In the table and in JSON."""
        row, = (row for row in table(ctl("list").stdout, "COUNTER")
                if row["PID"] == str(os.getpid()))
        return row["DEFERRED"], of(os.getpid())["counters"][0]["deferred"]

    with Counter(burst=1, rate=1) as counter, select.epoll() as poller:
        poller.register(counter.fd, select.EPOLLIN)
        with repeated(counter.write):
            assert settles(deferred, ("yes", True), PATIENCE)
        assert settles(deferred, ("-", False), PATIENCE)


@pytest.mark.parametrize("name, escaped", [
    (b"a\n\x1b[2J\"\\\xff\xc3\xa9)", 'a\\x0a\\x1b[2J"\\\\\\xff\\xc3\\xa9)'),
    (b"\nflowfd-uid: 0\n", "\\x0aflowfd-uid: 0\\x0a"),
    (b"x\\012\\134", "x\\\\012\\\\134"),
    (b"\n\n", "\\x0a\\x0a"),
    (b"\xc2\x9b1m\xe2\x80\xae", "\\xc2\\x9b1m\\xe2\\x80\\xae")],
    ids=["escape", "line", "backslash", "newlines", "utf-8"])
def test_strange_names(name, escaped):
    """In the kernel's list, and of a process."""
    with Process(plain(2), user=NOBODY, name=name) as process:
        for args in (), ("--pid", str(process.pid)):
            text = ctl("list", *args).stdout
            rows = [line for line in text.splitlines() if f" {process.pid} " in line]
            assert [row.partition(" count  ")[2] for row in rows] == [escaped] * 2
            shown = [c for c in listed(*args)["counters"] if c["pid"] == process.pid]
            assert {c["command"] for c in shown} == {escaped}
            assert {c.get("uid", NOBODY) for c in shown} == {NOBODY}
            assert unprintable(text + ctl("list", "--json", *args).stdout) == []


def test_device_of_another_name_in_another_root():
    def make():
        os.chroot(directory)
        os.open("/node", os.O_RDWR)

    with tempfile.TemporaryDirectory() as directory:
        os.mknod(directory + "/node", 0o20666, os.stat(DEVICE).st_rdev)
        with Process(make) as process:
            for args in (), ("--pid", str(process.pid)):
                assert len(of(process.pid, *args)["counters"]) == 1


def measured(*args, status=0, most=SECONDS):
    """Output of flowfdctl, which must not take longer, nor more memory."""
    with tempfile.TemporaryFile("w+") as error:
        start = time.monotonic()
        # The greatest size that the kernel tells has that of this process in it.
        child = subprocess.run(["prlimit", f"--as={MEMORY}", CTL, *args],
                               stdout=subprocess.PIPE, stderr=error, text=True,
                               check=False)
        spent = time.monotonic() - start
        wrote = error.tell() > 0
    print(f"# {args}: {spent:.2f} s")
    assert (child.returncode, wrote) == (status, bool(status))
    assert spent < most
    return child.stdout


def many(processes):
    """Makes MANY counters, and leaves them to processes that wait."""
    for _ in range(processes):
        if not os.fork():
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            for _ in range(MANY // processes):
                os.open(DEVICE, os.O_RDWR)
            os.write(kept[0], b"x")
            signal.pause()


def attack_many():
    reader, writer = os.pipe()
    kept.append(writer)
    many(10)
    for _ in range(10):
        os.read(reader, 1)


def test_many_objects():
    """All of one user: root's are there, and all others."""
    with Process(attack_many, user=NOBODY), Process(one_of_each) as own:
        for args in ("list",), ("list", "--flow", "--stats"), ("list", "--json"):
            text = measured(*args)
            assert text.count("\n") > MANY
        counters = json.loads(text)["counters"]
        assert sum(c["uid"] == NOBODY for c in counters) == MANY
        assert of(own.pid) == objects(own.facts)
        text = measured("--prometheus", status=2)
        assert f'pid="{own.pid}"' in text


def test_reads_of_any_size():
    """A read goes on where the one before ended, if objects come and go meanwhile."""
    def come_and_go():
        with Counter(), Ring(1):
            pass

    with Process(plain(300)) as stays, repeated(come_and_go):
        for size in 1 << 20, 4096, 100:
            text = b""
            with open(LIST, "rb", buffering=0) as file:
                while part := file.read(size):
                    text += part
            ids = [int(line.split()[1]) for record in text.decode().split("\n\n")
                   if f"flowfd-pid: {stays.pid}\n" in record
                   for line in record.splitlines() if line.startswith("eventfd-id")]
            assert ids == [c["id"] for c in objects(stays.facts)["counters"]]


def test_rings_without_end():
    """Those made while root reads do not keep it reading."""
    def attack():
        for _ in range(2):
            if not os.fork():
                libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
                rings = []
                while True:
                    rings.append(Ring(1))
                    if len(rings) > 10:
                        rings.pop(0).close()

    with Process(attack, user=NOBODY):
        for _ in range(5):
            measured("list")


def churn():
    """Makes processes that come and go, with counters and rings that come and go."""
    for _ in range(2):
        if os.fork():
            continue
        while True:
            pid = os.fork()
            if not pid:
                for _ in range(10):
                    os.open(DEVICE, os.O_RDWR)
                    Ring(2)
                os.write(kept[0], b"x")
                time.sleep(random.choice((0, random.uniform(0, 0.02))))
                os._exit(0)
            os.waitpid(pid, 0)


@pytest.mark.parametrize("processes", [int(os.environ.get("FLOWFD_PROCESSES", 200))])
def test_processes_that_come_and_go(processes):
    """What stays is in each list, and each is complete."""
    reader, writer = os.pipe()
    kept.insert(0, writer)
    came = lists = 0
    with Process(one_of_each) as stays, Process(churn):
        while came < processes:
            assert of(stays.pid) == objects(stays.facts)
            lists += 1
            while select.select([reader], [], [], 0)[0]:
                came += len(os.read(reader, 4096))
    os.close(reader)
    os.close(writer)
    kept.clear()
    print(f"# {lists} lists beside {came} processes")


def serve_fuse(device):
    """Serves one file: it can be opened, but reads and polls get no answer."""
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
        # FORGET, INTERRUPT and BATCH_FORGET take none; READ and POLL wait for one.
        if opcode in (2, 36, 42, 15, 40):
            continue
        reply = replies.get(opcode, b"")
        error = 0 if opcode in replies else -errno.ENOSYS
        os.write(device, struct.pack("=IiQ", 16 + len(reply), error, unique) + reply)


def mount(*args):
    if libc.mount(*args):
        raise OSError(ctypes.get_errno(), "mount")


def mount_fuse(directory):
    """In a mount namespace of its own."""
    libc.unshare(CLONE_NEWNS)
    mount(None, b"/", None, MS_REC_PRIVATE, None)
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other"
    mount(b"test", directory.encode(), b"fuse", 0, options.encode())
    # Until the mount, a read of the device fails.
    if not os.fork():
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        serve_fuse(device)
    os.close(device)


def test_mute_file():
    """A ring polls a file whose server never answers, and is locked; so is an epoll, whose
    fdinfo waits. A path that is the device's is that file."""
    def attack():
        ring = Ring(2)
        file = os.open(directory + "/file", os.O_RDONLY | os.O_NONBLOCK)
        mount(f"{directory}/file".encode(), DEVICE.encode(), None, MS_BIND, None)
        fake = os.open(DEVICE, os.O_RDONLY)
        epoll = select.epoll()
        kept.extend((ring, epoll, fake))
        for add in ring.add, epoll.register:
            threading.Thread(target=add, args=(file, select.EPOLLIN)).start()
        time.sleep(1)

    subprocess.run(["modprobe", "fuse"], check=True)
    with (tempfile.TemporaryDirectory() as directory,
          Process(attack, prepare=lambda: mount_fuse(directory)) as attacker,
          Process(one_of_each) as own):
        for args in (), ("--pid", str(attacker.pid)):
            shown = json.loads(measured("list", "--json", *args))
            busy = [(r["busy"], r["watches"]) for r in shown["rings"]
                    if r["pid"] == attacker.pid]
            assert set(busy) == {(True, None)}
        assert of(own.pid) == objects(own.facts)
        row, = (row for row in table(ctl("list").stdout, "RING")
                if row["PID"] == str(attacker.pid))
        assert (row["WATCHES"], row["POSTS"]) == ("busy", "-")


def test_output_that_cannot_be_written():
    """Also if it is more than its buffer."""
    for count in 1, 300:
        with open("/dev/full", "w") as full, Process(plain(count)):
            done = subprocess.run([CTL, "list"], stdout=full, stderr=subprocess.PIPE,
                                  text=True)
        assert (done.returncode, done.stderr) == (
            1, "flowfdctl: standard output: No space left on device\n")


if __name__ == "__main__":
    sys.exit(tap.run())
