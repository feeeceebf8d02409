#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-only
"""Usage: guest-flowfdctl.py BUILD

flowfdctl with the module, as root in a machine of its own: that it shows what
there is, to whom it may, and whatever processes do meanwhile. Prints TAP.
"""

import bisect
import ctypes
import json
import os
import pty
import random
import re
import select
import signal
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
PR_SET_DUMPABLE = 4
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


def ctl(*args, user=None, before=None, **other):
    return subprocess.run(before or [CTL, *args], capture_output=True, text=True,
                          user=user, group=user,
                          extra_groups=[] if user else None, **other)


def listed(*args, **other):
    """What list --json says, the descriptors in its order."""
    done = ctl("list", "--json", *args, **other)
    is_((done.returncode, done.stderr), (0, ""), "list --json")
    result = json.loads(done.stdout)
    for ring in result["rings"]:
        ring.get("watched", []).sort(key=lambda watch: watch["fd"])
    return result


def id_of(fd, key):
    with open(f"/proc/self/fdinfo/{fd}") as lines:
        return next(int(line.split()[1]) for line in lines
                    if line.startswith(key + ":"))


def counter_facts(fd, **other):
    """What list --json is to say of a counter of this process."""
    return {"id": id_of(fd, "eventfd-id"), "pid": os.getpid(), "fd": fd,
            "command": "holder", "count": 0, "maximum": None, "rate": 0,
            "burst": 0, "held": False, "semaphore": False, **other}


class Holder:
    """A process that has what a function makes, and waits to be released."""

    def __init__(self, make, name=b"holder", user=None):
        parent_reads, child_writes = os.pipe()
        child_reads, self.release_by = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.close(parent_reads)
            os.close(self.release_by)
            try:
                with open("/proc/self/comm", "wb") as comm:
                    comm.write(name)
                if user:
                    os.setgroups([])
                    os.setresgid(user, user, user)
                    os.setresuid(user, user, user)
                    # The change took it away: others of the user may look.
                    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1)
                kept, facts = make()
                with os.fdopen(child_writes, "w") as out:
                    json.dump(facts, out)
                os.read(child_reads, 1)
                del kept
            except BaseException:
                traceback.print_exc()
            os._exit(0)
        os.close(child_writes)
        os.close(child_reads)
        with os.fdopen(parent_reads) as facts:
            self.facts = json.loads(facts.read() or "null")

    def release(self):
        # Its end would not do: holders that came later have a copy.
        os.write(self.release_by, b"x")
        os.close(self.release_by)
        os.waitpid(self.pid, 0)


def plain(count):
    """Counters as they are when the device was opened."""
    def make():
        fds = [os.open(flowfd.DEVICE, os.O_RDWR) for _ in range(count)]
        return fds, {"counters": [counter_facts(fd) for fd in fds], "rings": []}
    return make


def one_of_each():
    made = flowfd.Counter(initial=3, maximum=10, burst=2, rate=1000)
    same = os.dup(made.fd)
    full = flowfd.Counter(initial=2**64 - 2, flags=flowfd.SEMAPHORE)
    settings = {"count": 3, "maximum": 10, "burst": 2, "rate": 1000}
    counters = [counter_facts(made.fd, **settings),
                counter_facts(same, **settings),
                counter_facts(full.fd, count=2**64 - 2, semaphore=True)]

    ring = flowfd.Ring(5)
    reader, writer = os.pipe2(os.O_NONBLOCK)
    event = os.eventfd(0, os.EFD_NONBLOCK)
    ring.add(reader, select.EPOLLIN)
    ring.add(event, select.EPOLLIN | select.EPOLLONESHOT)
    os.write(writer, b"x")
    os.eventfd_write(event, 1)
    next(ring.harvest())
    watched = [{"fd": reader, "events": 0x19, "data": ring.numbers[reader],
                "pinned": False},
               {"fd": event, "events": 0, "data": ring.numbers[event],
                "pinned": True}]
    # mmap keeps a descriptor too. The first has the watches.
    rings = [{"id": id_of(fd, "flowfd-ring-id"), "pid": os.getpid(), "fd": fd,
              "command": "holder", "max_items": 5, "head": 1, "tail": 2,
              "pending": 1, "busy": False, "watches": 2}
             for fd in range(3, 64)
             if os.path.islink(f"/proc/self/fd/{fd}") and
             os.readlink(f"/proc/self/fd/{fd}") == "anon_inode:[flowfd-ring]"]
    rings[0]["watched"] = watched
    return (made, full, ring), {"counters": counters, "rings": rings}


def together(*holders):
    return {kind: sorted((o for holder in holders for o in holder.facts[kind]),
                         key=lambda o: (o["pid"], o["fd"]))
            for kind in ("counters", "rings")}


def objects(result):
    return {kind: result[kind] for kind in ("counters", "rings")}


def table(text, first):
    """The rows of the table whose first heading is that, by their headings."""
    lines = iter(text.splitlines())
    for line in lines:
        if line.split()[:1] == [first]:
            break
    headings = line.split()
    rows = []
    for line in lines:
        if not line:
            break
        rows.append(dict(zip(headings, line.split(None, len(headings) - 1))))
    return rows


def test_info():
    with open("/sys/module/flowfd/version") as file:
        version = file.read().strip()
    wanted = f"""module           {version}
libflowfd        {version}
ABI version      1
features         maximum bucket ring setup
token rate       at most 1000000000 a second
ring             at most 1048576 watched files
"""
    is_(ctl("info").stdout, wanted, "info")
    is_(ctl("info", user=NOBODY).stdout, wanted, "info without root")

    mode = os.stat(flowfd.DEVICE).st_mode & 0o777
    os.chmod(flowfd.DEVICE, 0o600)
    done = ctl("info", user=NOBODY)
    os.chmod(flowfd.DEVICE, mode)
    is_((done.returncode, done.stdout, done.stderr), (1, "",
        "flowfdctl: this user may not open /dev/flowfd: root can change that"
        " with a udev rule\n"), "info without permission")

    def elsewhere(mount):
        done = ctl(before=["unshare", "-m", "sh", "-c", f"{mount} && {CTL} info"])
        return done.returncode, done.stdout, done.stderr
    is_(elsewhere("mount -t tmpfs none /dev"), (1, "",
        "flowfdctl: the flowfd module is loaded, but its device is not here: a"
        " container must be given /dev/flowfd\n"), "info without the device")
    status, out, error = elsewhere("mount --bind /dev/null /dev/flowfd")
    is_((status, out, error.partition(" for libflowfd")[0]), (1, "",
        "flowfdctl: the loaded flowfd module is too old"),
        "info with another device in its place")


def test_list():
    empty = {"format": "flowfdctl-list", "version": 1, "complete": True,
             "hidden_processes": 0, "unknown_descriptors": 0, "counters": [],
             "rings": []}
    is_(listed(), empty, "there is nothing")
    is_(ctl("list", "--watches").stdout.split("\n"), [
        "COUNTER  PID  FD  COUNT  MAXIMUM  RATE  BURST  HELD  TYPE  COMMAND", "",
        "RING  PID  FD  WATCHES  MAX  HEAD  TAIL  PENDING  COMMAND", "",
        "RING  FD  PINNED  DATA  EVENTS", ""], "headings alone")

    one, two = Holder(one_of_each), Holder(plain(3))
    facts = together(one, two)
    is_(listed("--watches"), {**empty, **facts}, "what processes hold")
    is_(len({c["id"] for c in facts["counters"]}), 5,
        "two descriptors of a counter have one id, others have others")
    is_((len(facts["rings"]), len({r["id"] for r in facts["rings"]})), (2, 1),
        "so have those of a ring")
    is_(["watched" in ring for ring in listed()["rings"]], [False, False],
        "watches only when asked for")

    text = ctl("list", "-w").stdout
    made = facts["counters"][0]
    is_(table(text, "COUNTER")[0],
        {"COUNTER": str(made["id"]), "PID": str(one.pid), "FD": str(made["fd"]),
         "COUNT": "3", "MAXIMUM": "10", "RATE": "1000", "BURST": "2",
         "HELD": "-", "TYPE": "count", "COMMAND": "holder"}, "a counter's row")
    row = table(text, "COUNTER")[2]
    is_([row[key] for key in ("COUNT", "MAXIMUM", "RATE", "BURST", "TYPE")],
        [str(2**64 - 2), "-", "-", "-", "semaphore"], "a semaphore's row")
    ring = facts["rings"][0]
    is_(table(text, "RING")[0],
        {"RING": str(ring["id"]), "PID": str(one.pid), "FD": str(ring["fd"]),
         "WATCHES": "2", "MAX": "5", "HEAD": "1", "TAIL": "2", "PENDING": "1",
         "COMMAND": "holder"}, "a ring's row")
    watches = table(text[text.index("RING  FD"):], "RING")
    is_(sorted((row["RING"], row["FD"], row["PINNED"], row["DATA"],
                row["EVENTS"]) for row in watches),
        sorted((str(ring["id"]), str(w["fd"]), "yes" if w["pinned"] else "-",
                hex(w["data"]), "0" if w["pinned"] else "IN|ERR|HUP")
               for w in ring["watched"]), "each watch of a ring once")

    rings = [flowfd.Ring(1) for _ in range(2)]
    ids = [id_of(ring.fd, "flowfd-ring-id") for ring in rings]
    rings.pop().close()
    rings.append(flowfd.Ring(1))
    ids.append(id_of(rings[1].fd, "flowfd-ring-id"))
    is_(len({*ids, facts["rings"][0]["id"]}), 4, "no ring has another's id")
    is_({r["id"] for r in listed()["rings"] if r["pid"] == os.getpid()},
        {ids[0], ids[2]}, "which are listed")
    for ring in rings:
        ring.close()

    # A fork shares all it has.
    before = len(listed()["counters"])
    shared = flowfd.Counter()
    number = id_of(shared.fd, "eventfd-id")
    child = Holder(lambda: (None, None))
    both = [c["pid"] for c in listed()["counters"] if c["id"] == number]
    is_(both, sorted([os.getpid(), child.pid]), "a counter of two processes")
    shared.close()
    child.release()
    is_(len(listed()["counters"]), before, "which goes with them")
    one.release()
    two.release()
    is_(listed(), empty, "nothing is left")


def test_held():
    """A wakeup is held back until the next token is due, one second at most: so
    somebody must go on writing to have it in a list."""
    counter = flowfd.Counter(burst=1, rate=1)
    poller = select.epoll()
    poller.register(counter.fd, select.EPOLLIN)

    def write():
        while not stop.wait(0.005):
            counter.write()

    def held():
        """In the table and in JSON."""
        return (table(ctl("list").stdout, "COUNTER")[0]["HELD"],
                json.loads(ctl("list", "--json").stdout)["counters"][0]["held"])

    def becomes(wanted):
        end = time.monotonic() + PATIENCE
        got = held()
        while got != wanted and time.monotonic() < end:
            got = held()
        is_(got, wanted, "wakeups that are held back, and not")

    stop = threading.Event()
    writer = threading.Thread(target=write)
    writer.start()
    becomes(("yes", True))
    stop.set()
    writer.join()
    becomes(("-", False))
    poller.close()
    counter.close()


def readable_processes():
    """How many processes root owns that have a program."""
    count = 0
    for pid in os.listdir("/proc"):
        try:
            count += (pid.isdigit() and os.stat(f"/proc/{pid}").st_uid == 0 and
                      bool(os.readlink(f"/proc/{pid}/exe")))
        except OSError:
            pass
    return count


def test_without_root():
    own = Holder(plain(2), user=NOBODY)
    # It would be a zombie to who takes the first parenthesis for the last.
    other = Holder(plain(1), name=b") Z 1 1 1 1 1 1")
    others = readable_processes()
    seen = listed(user=NOBODY)
    is_(objects(seen), together(own), "without root: the user's own")
    is_(seen["hidden_processes"], others,
        "kernel threads are not among those that are not shown")
    done = ctl("list", user=NOBODY)
    is_((len(table(done.stdout, "COUNTER")), done.stderr), (2,
        f"flowfdctl: {others} processes are not shown: this user may not look"
        " into them\n"), "in one line besides the table")
    is_([c["pid"] for c in listed()["counters"]], [own.pid, own.pid, other.pid],
        "root sees all")
    own.release()
    other.release()


def test_names():
    names = {b"a\n\x1b[2J\"\\\xff\xc3\xa9)": ('a\\x0a\\x1b[2J"\\\\\\xff\\xc3\\xa9)',
                                               'a\n\x1b[2J"\\\ufffd\xe9)'),
             b" 1 ) S 2 3": (" 1 ) S 2 3", " 1 ) S 2 3"),
             b"\n\n": ("\\x0a\\x0a", "\n\n"),
             b"\xc2\x9b1m\xe2\x80\xae": ("\\xc2\\x9b1m\\xe2\\x80\\xae",
                                         "\x9b1m\u202e")}
    for name, (escaped, decoded) in names.items():
        holder = Holder(plain(1), name=name)
        text = ctl("list").stdout
        is_(text.splitlines()[1].partition(" count  ")[2], escaped,
            "a strange name in the table")
        is_(listed()["counters"][0]["command"], decoded, "and in JSON")
        raw = ctl("list", "--json").stdout
        is_(re.findall("[^ -~\n]", text + raw), [], "nothing but ASCII is printed")
        holder.release()


def test_another_place():
    """The device under another name, in another root."""
    def make():
        os.chroot(directory)
        os.open("/node", os.O_RDWR)
        return None, None
    with tempfile.TemporaryDirectory() as directory:
        os.mknod(directory + "/node", 0o20666, os.stat(flowfd.DEVICE).st_rdev)
        holder = Holder(make)
        is_([c["pid"] for c in listed()["counters"]], [holder.pid],
            "a device with another name, in another root")
        holder.release()


def test_many():
    holder = Holder(plain(1000))
    start = time.monotonic()
    seen = listed()
    spent = time.monotonic() - start
    is_(objects(seen) == together(holder), True, "1,000 counters")
    is_(len({c["id"] for c in seen["counters"]}), 1000, "with an id each")
    print(f"# listed in {1000 * spent:.0f} ms")
    is_(spent < 10, True, "in less than 10 s")
    holder.release()


def test_churn():
    """Processes that go, and descriptors that come and go, meanwhile."""
    def churn():
        parent = os.getppid()
        while os.getppid() == parent:
            pid = os.fork()
            if not pid:
                held = flowfd.Counter()  # for a look to meet
                for _ in range(20):
                    os.open(flowfd.DEVICE, os.O_RDWR)
                for _ in range(20):
                    flowfd.Counter().close()
                # Gone before a look comes to it, or there throughout.
                time.sleep(random.choice((0, random.uniform(0, 0.1))))
                held.close()
                os._exit(0)
            os.waitpid(pid, 0)
    pids = []
    for _ in range(2):
        pids.append(os.fork())
        if not pids[-1]:
            churn()
            os._exit(0)
    wrong, met, looks = [], 0, 0
    end = time.monotonic() + PATIENCE
    while met < 40 and time.monotonic() < end:
        looks += 1
        done = ctl("list", "--json")
        if done.returncode or done.stderr:
            wrong.append((done.returncode, done.stderr))
        else:
            met += bool(json.loads(done.stdout)["counters"])
    for pid in pids:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    is_(wrong, [], f"processes that go meanwhile, of which {met} of {looks} looks"
        " met one")
    is_(met >= 10, True, "enough of them")


def test_errors():
    with open("/dev/full", "w") as full:
        done = subprocess.run([CTL, "list"], stdout=full, stderr=subprocess.PIPE,
                              text=True)
    is_((done.returncode, done.stderr),
        (1, "flowfdctl: standard output: No space left on device\n"),
        "output that cannot be written")
    done = ctl(before=["prlimit", "--nofile=4", CTL, "list"])
    is_((done.returncode, done.stdout.split("\n")[0].split()[:3],
         re.sub("[0-9]+", "N", done.stderr)),
        (2, ["COUNTER", "PID", "FD"], "flowfdctl: N descriptors or processes could"
         " not be read: Too many open files\n"),
        "too few descriptors are no short list without a word")
    done = ctl(before=["prlimit", "--nproc=1", CTL, "list"], user=NOBODY)
    is_((done.returncode, done.stdout, done.stderr), (1, "",
        "flowfdctl: no process can be made to look with: Resource temporarily"
        " unavailable\n"), "too few processes are said")
    done = ctl("list", preexec_fn=lambda: signal.signal(signal.SIGCHLD,
                                                        signal.SIG_IGN))
    is_((done.returncode, done.stderr), (0, ""),
        "whoever calls it may ignore the end of processes")


def per_second(times):
    """The least and the most of these in a second."""
    counts = [bisect.bisect(times, start + 1) - i
              for i, start in enumerate(times) if start + 1 < times[-1]]
    return min(counts), max(counts)


def busy(stop, out):
    """Makes entries and counts until told to stop; how often, per second."""
    ring = flowfd.Ring(3)
    reader, writer = os.pipe2(os.O_NONBLOCK)
    ring.add(reader, select.EPOLLIN)
    counter = flowfd.Counter(maximum=1 << 32)
    idle = flowfd.Counter(initial=1)
    os.write(out, b"ready ")
    times = []
    while not select.select([stop], [], [], 0.005)[0]:
        os.write(writer, b"x")
        for _ in ring.harvest():
            os.read(reader, 1)
            times.append(time.monotonic())
        counter.write(10)
    os.write(out, json.dumps(per_second(times)).encode())
    idle.close()


def test_top():
    child_stop, stop = os.pipe()
    reads, out = os.pipe()
    pid = os.fork()
    if not pid:
        busy(child_stop, out)
        os._exit(0)
    is_(os.read(reads, 100), b"ready ", "a busy process")
    start = time.monotonic()
    done = ctl("top", "--interval", "2", "--count", "2")
    spent = time.monotonic() - start
    os.write(stop, b"x")
    os.waitpid(pid, 0)
    # The machine may be busy with something else for a part of the time.
    least, most = json.loads(os.read(reads, 100))
    is_((done.returncode, done.stderr), (0, ""), "top")
    is_(4 <= spent < 10, True, f"takes its intervals: {spent:.1f} s")
    parts = done.stdout.split("flowfd on this machine\n")
    is_(len(parts), 3, "prints two tables")
    is_(re.findall("[^ -~\n]", done.stdout), [],
        "without control characters where there is no terminal")
    for part in parts[1:]:
        ring, = table(part, "RING")
        first, second = table(part, "COUNTER")
        for what, value, times in (
                ("entries", ring["ENTRIES/S"], 1),
                ("taken", ring["TAKEN/S"], 1),
                ("change", first["CHANGE/S"], 10)):
            is_(0.8 * times * least < float(value) < 1.2 * times * most, True,
                f"{what}: {value}/s, {times * least}/s to {times * most}/s"
                " by itself")
        is_((ring["WATCHES"], ring["FDS"], first["FDS"], first["MAXIMUM"]),
            ("1", "2", "1", str(1 << 32)), "and what they are")
        is_((second["COUNT"], second["CHANGE/S"]), ("1", "+0"),
            "the busiest first, the idle last")
    for fd in (child_stop, stop, reads, out):
        os.close(fd)


def on_terminal(rows, columns, *args):
    """What a command writes to a terminal of that size."""
    pid, master = pty.fork()
    if not pid:
        os.environ["TERM"] = "vt100"
        subprocess.run(["stty", "rows", str(rows), "cols", str(columns)])
        os.execv(CTL, [CTL, *args])
    output = b""
    try:
        while part := os.read(master, 4096):
            output += part
    except OSError:
        pass
    os.waitpid(pid, 0)
    os.close(master)
    return output.decode().replace("\r\n", "\n")


def test_terminal():
    holder = Holder(plain(30))
    screen = on_terminal(16, 40, "top", "-i", "0.2", "-n", "2")
    tables = screen.split("\x1b[H\x1b[J")
    is_(len(tables), 3, "on a terminal each table begins at its top")
    is_(max(len(line) for line in screen.split("\n")) <= 40 + len("\x1b[H\x1b[J"),
        True, "and is as wide as that")
    is_(max(part.count("\n") for part in tables) < 16, True, "and as high")
    is_([part.count("more\n") for part in tables[1:]], [1, 1],
        "and says that something is left out")
    screen = on_terminal(50, 132, "top", "-i", "0.2", "-n", "1")
    is_((screen.count("holder"), screen.count("more\n")), (30, 0),
        "on a large one there is room for all")
    holder.release()

    done = ctl(before=["bash", "-c", f"{CTL} top -i 0.1 | head -n 1;"
                       " echo ${PIPESTATUS[0]}"], timeout=PATIENCE)
    is_(done.stdout.split("\n")[1], "141", "top ends with its reader")
    child = subprocess.Popen([CTL, "top"], stdout=subprocess.PIPE)
    child.stdout.readline()
    child.send_signal(2)
    is_(child.wait(PATIENCE), -2, "and by Ctrl-C")
    child.stdout.close()


def main():
    if not os.path.exists(flowfd.DEVICE):
        print("1..0 # SKIP the module is not loaded")
        return 0
    for test in (test_info, test_list, test_held, test_without_root, test_names,
                 test_another_place, test_many, test_churn, test_errors,
                 test_top, test_terminal):
        try:
            test()
        except Exception:
            is_(traceback.format_exc().replace("\n", "\n# "), None,
                test.__name__)
    print(f"1..{checks}")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
