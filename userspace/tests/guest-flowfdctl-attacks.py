#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-only
"""Usage: guest-flowfdctl-attacks.py BUILD [TEST...]

What a hostile user does to keep root from seeing who uses flowfd: each attack
runs as nobody, and root's flowfdctl must still end in its time, with little
memory, and show what root has. Runs as root in a machine of its own. Prints TAP.
"""

import contextlib
import ctypes
import errno
import fcntl
import json
import mmap
import os
import resource
import select
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../examples")
import flowfd

CTL = os.path.abspath(sys.argv[1]) + "/flowfdctl"
NOBODY = 65534
PATIENCE = 60
MEMORY_KB = 64 << 10
# flowfdctl looks for 4 s and waits for 4.5; the rest is for what it prints, in a
# machine that may be emulated. Without an attack a list takes a part of a second.
LOOK_SECONDS = 4.5
PRINT_SECONDS = 5
CLONE_FILES = 0x400
CLONE_NEWNS = 0x20000
MS_BIND = 0x1000
MS_REC_PRIVATE = 0x4000 | 0x40000
libc = ctypes.CDLL(None, use_errno=True)
checks = failures = 0


def is_(got, wanted, what):
    global checks, failures
    checks += 1
    if got == wanted:
        print(f"ok {checks} - {what}", flush=True)
        return
    failures += 1
    print(f"not ok {checks} - {what}\n# got:    {got!r}\n# wanted: {wanted!r}",
          flush=True)


class Process:
    """Runs a function, as a user, and waits to be killed."""

    def __init__(self, function, user=NOBODY, prepare=lambda: None):
        reads, writes = os.pipe()
        self.pid = os.fork()
        if self.pid:
            os.close(writes)
            with os.fdopen(reads) as facts:
                self.facts = json.loads(facts.readline() or "null")
            return
        try:
            os.setpgid(0, 0)
            libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
            resource.setrlimit(resource.RLIMIT_NOFILE, (100000, 100000))
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (1 << 30, 1 << 30))
            prepare()
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            libc.prctl(1, signal.SIGKILL)
            facts = function()
            os.write(writes, json.dumps(facts).encode() + b"\n")
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


def id_of(fd, key):
    with open(f"/proc/self/fdinfo/{fd}") as lines:
        return next(int(line.split()[1]) for line in lines
                    if line.startswith(key + ":"))


def roots_own():
    kept.append((flowfd.Counter(), os.open(flowfd.DEVICE, os.O_RDWR),
                 flowfd.Ring(2)))
    return [kept[-1][0].fd, kept[-1][1], kept[-1][2].fd]


kept = []


def run(*args):
    """The exit status, both outputs, seconds and the largest memory in KB."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        start = time.monotonic()
        child = subprocess.Popen([CTL, *args], stdout=out, stderr=err)
        patience = threading.Timer(PATIENCE, child.kill)
        patience.start()
        _, status, usage = os.wait4(child.pid, 0)
        patience.cancel()
        spent = time.monotonic() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        return (child.returncode, out.read(), err.read(), spent,
                usage.ru_maxrss)


def is_bounded(spent, memory, looks, what):
    print(f"# {what}: {spent:.1f} s, {memory} KB")
    is_(spent < looks * LOOK_SECONDS + PRINT_SECONDS, True,
        f"{what}: ends in its time")
    is_(memory < MEMORY_KB, True, f"{what}: memory")


def attacked(what, status, *args):
    """What list shows, after it was seen that it and top work as they should. A
    status of None depends on the machine: there may be time for all, or not."""
    with Process(roots_own, user=0) as own:
        code, out, error, spent, memory = run("list", "--json", *args)
        is_bounded(spent, memory, 1, f"{what}, list {' '.join(args)}")
        is_(code in ((0, 2) if status is None else (status,)), True,
            f"{what}: exit status {code}")
        is_(bool(error), code != 0, f"{what}: says why")
        print(f"# {error.strip()}")
        result = json.loads(out)
        is_(result.get("complete"), code == 0, f"{what}: says whether that is all")
        objects = result["counters"] + result["rings"]
        is_(set(own.facts) - {o["fd"] for o in objects if o["pid"] == own.pid},
            set(), f"{what}: root's are shown")
        code, out, error, spent, memory = run("list", *args)
        is_bounded(spent, memory, 1, f"{what}, tables")
        is_(code in ((0, 2) if status is None else (status,)), True,
            f"{what}: exit status with tables")
        if args:
            return result  # top has no such option: it was seen without
        code, out, error, spent, memory = run("top", "-i", "0.1", "-n", "1")
        is_bounded(spent, memory, 2, f"{what}, top")
        is_((code in (0, 2), f" {own.pid} " in out), (True, True),
            f"{what}: top shows root's")
    return result


def test_nothing():
    attacked("no attack", 0)


def test_long_path():
    """readlink(2) fails, as the path is longer than a link may be."""
    def attack():
        os.chdir(directory)
        for _ in range(25):
            os.mkdir("d" * 200)
            os.chdir("d" * 200)
        return os.open(".", os.O_RDONLY)
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o777)
        with Process(attack):
            attacked("a path that is too long", 0)


def test_many_watches():
    def attack():
        ring = flowfd.Ring(5000)
        event = os.eventfd(0, os.EFD_NONBLOCK)
        for _ in range(5000):
            ring.add(os.dup(event), select.EPOLLIN)
        for _ in range(400):
            os.dup(ring.fd)
        kept.append(ring)
    with Process(attack) as attacker:
        result = attacked("400 descriptors of 5,000 watches", None)
        is_({r["watches"] for r in result["rings"] if r["pid"] == attacker.pid},
            {5000}, "which are counted")
        result = attacked("the same with watches", 2, "--watches")
        is_([len(r["watched"]) for r in result["rings"]
             if r["pid"] == attacker.pid and "watched" in r], [4096],
            "the first of them are shown once")


def many_descriptors():
    counter = flowfd.Counter()
    kept.append(counter)
    with contextlib.suppress(OSError):
        while True:
            os.dup(counter.fd)
    for _ in range(3):
        if not os.fork():
            libc.prctl(1, signal.SIGKILL)
            signal.pause()


def test_many_descriptors():
    """More than there is time for, or memory."""
    with Process(many_descriptors):
        attacked("400,000 descriptors", 2)


def test_locks():
    """Lines of locks come first in fdinfo, as many as anybody likes."""
    def attack():
        global ring
        ring = flowfd.Ring(4)
        for i in range(5000):
            fcntl.lockf(ring.fileno(), fcntl.LOCK_EX, 1, 10000 - 2 * i)
    with Process(attack) as attacker:
        result = attacked("5,000 locks of a ring", 2)
        is_([r for r in result["rings"] if r["pid"] == attacker.pid], [],
            "of which not all is read")


def serve_fuse(device):
    """One file, which is opened; what is in it and its events are never told."""
    asked = 0
    while True:
        request = os.read(device, 1 << 18)
        opcode, unique, node = struct.unpack_from("=IQQ", request, 4)
        reply, error = b"", 0
        if opcode == 1:  # LOOKUP
            node = 2
        attr = struct.pack("6Q10I", node, 4096, *[0] * 7,
                           0o40755 if node == 1 else 0o100666, 1, *[0] * 5)
        if opcode == 26:  # INIT
            reply = struct.pack("4I2H11I", 7, 31, 4096, 0, 0, 0, 4096, *[0] * 10)
        elif opcode == 1:
            reply = struct.pack("4Q2I", 2, 0, 0, 0, 0, 0) + attr
        elif opcode == 3 and (node == 1 or asked < 2):  # GETATTR
            asked += node == 2
            reply = struct.pack("Q2I", 0, 0, 0) + attr
        elif opcode in (14, 27):  # OPEN, OPENDIR
            reply = struct.pack("Q2I", 1, 0, 0)
        elif opcode in (2, 36, 42):  # FORGET, INTERRUPT, BATCH_FORGET
            continue
        elif opcode in (18, 25, 29):  # RELEASE, FLUSH, RELEASEDIR
            pass
        elif opcode in (3, 15, 40):  # GETATTR, READ, POLL
            continue
        else:
            error = -38  # ENOSYS
        os.write(device, struct.pack("=IiQ", 16 + len(reply), error, unique) +
                 reply)


def mount(*args):
    if libc.mount(*args):
        raise OSError(ctypes.get_errno(), "mount")


def mount_fuse(directory):
    """In a tree of its own, where the file is also called as the device is."""
    libc.unshare(CLONE_NEWNS)
    mount(None, b"/", None, MS_REC_PRIVATE, None)
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other"
    mount(b"test", directory.encode(), b"fuse", 0, options.encode())
    # A read of the device fails before it is mounted.
    if not os.fork():
        libc.prctl(1, signal.SIGKILL)
        serve_fuse(device)
    mount(f"{directory}/file".encode(), flowfd.DEVICE.encode(), None, MS_BIND, None)
    os.close(device)


@contextlib.contextmanager
def with_mute_file(attack):
    """A process that has a server in user space which never answers."""
    def prepare():
        # Before that the device has another name.
        kept.append(os.open(flowfd.DEVICE, os.O_RDWR))
        mount_fuse(directory)
        flowfd.DEVICE = f"/proc/self/fd/{kept[-1]}"

    subprocess.run(["modprobe", "fuse"], check=True)
    with (tempfile.TemporaryDirectory() as directory,
          Process(lambda: attack(directory), prepare=prepare) as attacker):
        yield attacker


def test_mute_file():
    """A server in user space that never answers, for a ring, an epoll, a name."""
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
        is_(name, "/dev/flowfd", "a file that is called as the device")
        result = attacked("a mute file", 0)
        is_({(r["busy"], r["watches"]) for r in result["rings"]
             if r["pid"] == attacker.pid}, {(True, None)}, "its ring is busy")
        shown = [line.split() for line in run("list")[1].splitlines()
                 if line.split()[1:3] == [str(attacker.pid), str(ring)]]
        is_([row[3] for row in shown], ["busy"], "and so in the table")
        shown = run("top", "-i", "0.1", "-n", "1")[1]
        is_("busy" in shown, True, "and in top")


def lock_fdinfo(directory):
    """Whoever opens a file of our fdinfo waits, whatever signals come: a reader
    of the directory waits for memory that it is to write to, and a writer for it.
    """
    kept.append(flowfd.Counter())
    lock(directory, "/proc/self/fdinfo")


def lock(directory, *targets):
    """The same with any directories that may be read."""
    file = os.open(directory + "/file", os.O_RDWR)
    # Not by Python's mmap, which asks for the size of the file.
    libc.mmap.restype = ctypes.c_void_p
    memory = ctypes.c_void_p(libc.mmap(None, 4096, mmap.PROT_WRITE,
                                       mmap.MAP_SHARED, file, 0))
    getdents64 = 217
    opened = [os.open(target, os.O_RDONLY) for target in targets]
    for function in ([lambda fd=fd: libc.syscall(getdents64, fd, memory, 4096)
                      for fd in opened] +
                     [lambda name=target: os.mkdir(name + "/x")
                      for target in targets]):
        threading.Thread(target=function).start()
        time.sleep(1)


def test_left_behind():
    """A file of /proc that keeps its reader whatever happens: nobody else waits."""
    with (with_mute_file(lock_fdinfo) as attacker,
          Process(roots_own, user=NOBODY + 1) as other):
        start = time.monotonic()
        done = subprocess.run([CTL, "list"], capture_output=True, text=True,
                              timeout=PATIENCE)
        spent = time.monotonic() - start
        is_(spent < LOOK_SECONDS + PRINT_SECONDS, True,
            f"the end of what is written comes after {spent:.1f} s")
        is_((done.returncode, done.stderr.splitlines()[-1:]),
            (2, ["flowfdctl: the kernel did not answer about process "
                 f"{attacker.pid}"]), "one process is left behind")
        is_(f" {other.pid} " in done.stdout, True, "others are shown")
        looks = 10
        _, out, _, spent, memory = run("top", "-i", "0.1", "-n", str(looks))
        is_bounded(spent, memory, 2, f"{looks} looks of top")
        is_([f" {other.pid} " in table for table in out.split(
            "flowfd on this machine")[1:]], [True] * looks,
            "each look shows others, and only the first waits")


@contextlib.contextmanager
def with_locked(*targets):
    with with_mute_file(lambda directory: lock(directory, *targets)):
        yield


def ended(locked, *args, prepare=None):
    """Status, outputs and whether it ended by itself, while a directory is locked
    that others need, too: nothing is looked up here until it is free again."""
    with (tempfile.TemporaryFile("w+") as out,
          tempfile.TemporaryFile("w+") as error):
        with with_locked(locked):
            child = subprocess.Popen([CTL, *args], stdout=out, stderr=error,
                                     close_fds=False, preexec_fn=prepare)
            end = time.monotonic() + LOOK_SECONDS + PRINT_SECONDS
            while child.poll() is None and time.monotonic() < end:
                time.sleep(0.1)
            in_time = child.returncode is not None
        child.wait()
        out.seek(0)
        error.seek(0)
        return child.returncode, out.read(), error.read(), in_time


def test_locked_proc():
    """The directory in which all processes are, so that none can be found."""
    code, out, error, in_time = ended("/proc", "list")
    is_(in_time, True, "a locked /proc: list ends in its time")
    is_((code, error), (2, "flowfdctl: the kernel did not answer about /proc: "
                           "nothing was inspected\n"), "and says why")


def test_locked_device():
    """The directory of the device, where its name must be looked for."""
    def use():
        libc.unshare(CLONE_NEWNS)
        mount(None, b"/", None, MS_REC_PRIVATE, None)
        mount(directory.encode(), b"/dev", None, MS_BIND, None)

    with (tempfile.TemporaryDirectory() as directory,
          Process(roots_own, user=0) as own):
        os.chmod(directory, 0o755)
        os.mknod(directory + "/null", 0o20666, os.makedev(1, 3))
        code, out, error, in_time = ended(directory, "list", "--json", prepare=use)
    is_(in_time, True, "a locked /dev: list ends in its time")
    is_((code, error), (2, "flowfdctl: the kernel did not answer about /dev/flowfd "
                           "or its module\n"), "and says why")
    shown = {c["fd"] for c in json.loads(out or '{"counters": []}')["counters"]
             if c["pid"] == own.pid}
    is_(shown, {own.facts[0]}, "a counter that was not opened is shown")


def test_locked_processes():
    """Any user can lock the directory of any process: others are still shown."""
    def with_a_watch():
        roots_own()
        kept[-1][2].add(os.eventfd(0, os.EFD_NONBLOCK), select.EPOLLIN)
        if not os.fork():
            libc.prctl(1, signal.SIGKILL)
            signal.pause()

    with (Process(roots_own, user=0) as root,
          Process(with_a_watch, user=NOBODY - 1) as free,
          Process(roots_own, user=NOBODY - 1) as locked,
          with_locked(f"/proc/{root.pid}", f"/proc/{locked.pid}")):
        for args in ((), ("--watches",)):
            result = attacked("locked processes", 2, *args)
            shown = {o["pid"] for o in result["counters"] + result["rings"]}
            is_([process.pid in shown for process in (root, locked, free)],
                [False, False, True], "of a user, one process is left out")
        is_(len([r for r in result["rings"]
                 if r.get("watched") and r["pid"] >= free.pid]), 1,
            "watches are shown once, though another process went on")
        error = run("list")[2]
        is_(error in [f"flowfdctl: the kernel did not answer about process {pid} "
                      "and 1 more\n" for pid in (root.pid, locked.pid)], True,
            error.strip())


def test_hidden():
    """Directories of processes that cannot even be opened."""
    def hide():
        libc.unshare(CLONE_NEWNS)
        mount(None, b"/", None, MS_REC_PRIVATE, None)
        mount(b"none", b"/proc", b"proc", 0, b"hidepid=1")
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    with Process(roots_own, user=0):
        out = subprocess.run([CTL, "list", "--json"], stdout=subprocess.PIPE,
                             text=True, preexec_fn=hide).stdout
        is_(json.loads(out)["hidden_processes"] > 0, True, "hidden are counted")


def shared_memory_kb():
    with open("/proc/meminfo") as lines:
        return next(int(line.split()[1]) for line in lines
                    if line.startswith("Shmem:"))


def test_left_memory():
    """What is left behind keeps no memory of its look."""
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

    with Process(attack), Process(roots_own, user=NOBODY + 1) as other:
        with with_locked(f"/proc/{other.pid}"):
            before = shared_memory_kb()
            looks = [run("list", "--watches") for _ in range(4)]
            grown = shared_memory_kb() - before
    is_([look[0] for look in looks], [2] * 4,
        "four looks, each of which leaves a process")
    is_(grown < 1024, True, f"and {grown} KB")


def test_stopped():
    """Ctrl-Z in the middle of a look, and fg when its time is over."""
    with Process(many_descriptors):
        child = subprocess.Popen([CTL, "list"], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, text=True,
                                 start_new_session=True)
        time.sleep(0.5)
        os.killpg(child.pid, signal.SIGSTOP)
        time.sleep(LOOK_SECONDS + 1)
        os.killpg(child.pid, signal.SIGCONT)
        error = child.communicate(timeout=PATIENCE)[1]
    is_((child.returncode, "the kernel did not answer" in error), (2, False),
        "a look that was stopped is out of time, no more")


def forbid_kcmp():
    """From here on it fails with EPERM."""
    program = b"".join(struct.pack("=HBBI", *line) for line in (
        (0x20, 0, 0, 0), (0x15, 0, 1, 312),  # number of the call; kcmp
        (6, 0, 0, 0x50000 + errno.EPERM), (6, 0, 0, 0x7fff0000)))
    memory = ctypes.create_string_buffer(program)
    filter_ = ctypes.create_string_buffer(
        struct.pack("@HP", len(program) // 8, ctypes.addressof(memory)))
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, filter_):
        raise OSError(ctypes.get_errno(), "seccomp")


def test_threads():
    """Tables of descriptors that are not those of a process."""
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
            libc.prctl(1, signal.SIGKILL)
            def tell():
                os.write(writes, str(threading.get_native_id()).encode())
                threading.Event().wait()
            threading.Thread(target=tell).start()
            libc.syscall(60, 0)  # exit(2), of this thread alone
        return int(os.read(reads, 16))

    with Process(attack) as attacker, Process(attack_without_leader) as other:
        result = attacked("threads", 0)
        is_([[c["pid"], c["fd"]] for c in result["counters"]
             if c["maximum"] == 77], [attacker.facts],
            "a thread with a table of its own")
        done = subprocess.run([CTL, "list", "--json"], capture_output=True,
                              text=True, preexec_fn=forbid_kcmp)
        is_([attacker.facts] == [[c["pid"], c["fd"]] for c in json.loads(
            done.stdout)["counters"] if c["maximum"] == 77], True,
            "which is shown without kcmp, too")
        is_(sorted(c["pid"] for c in result["counters"] if c["maximum"] == 78),
            sorted([other.pid, other.facts]),
            "a process whose first thread has ended")


def stop_looking(child, at):
    """Stops the process that looks for another, where it looks at some process."""
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
    """A file of /proc that keeps its reader: another process goes on with others."""
    with (Process(many_descriptors) as attacker,
          Process(roots_own, user=NOBODY - 1),
          Process(roots_own, user=NOBODY + 1) as other):
        start = time.monotonic()
        child = subprocess.Popen([CTL, "list"], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        looking = stop_looking(child, attacker.pid)
        out, error = child.communicate(timeout=PATIENCE)
        spent = time.monotonic() - start
    is_(looking is None, False, "it was stopped")
    is_((child.returncode, error.splitlines()[-1]),
        (2, "flowfdctl: the kernel did not answer about process "
         f"{attacker.pid}"), "no answer")
    is_(f" {other.pid} " in out, True, "what comes after that is shown")
    is_(spent < LOOK_SECONDS + PRINT_SECONDS, True, f"ends in {spent:.1f} s")
    end = time.monotonic() + PATIENCE
    while os.path.exists(f"/proc/{looking}") and time.monotonic() < end:
        time.sleep(0.01)
    is_(os.path.exists(f"/proc/{looking}"), False, "nothing is left")


def main():
    if not os.path.exists(flowfd.DEVICE):
        print("1..0 # SKIP the module is not loaded")
        return 0
    tests = (test_nothing, test_long_path, test_many_watches,
             test_many_descriptors, test_locks, test_mute_file, test_threads,
             test_no_answer, test_left_behind, test_locked_processes,
             test_locked_proc, test_locked_device, test_hidden, test_left_memory,
             test_stopped)
    for test in tests:
        if sys.argv[2:] and test.__name__ not in sys.argv[2:]:
            continue
        try:
            test()
        except Exception:
            is_(traceback.format_exc().replace("\n", "\n# "), None,
                test.__name__)
    print(f"1..{checks}")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
