#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""flowfdctl balance on a server of four processes that wait with EPOLLEXCLUSIVE."""
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

PROGRAM = os.path.join(sys.argv[1], "flowfdctl")
WORKERS = 4
CONNECTIONS = 200
PATIENCE = 60
IPPROTO_MPTCP = 262
number = 0


def report(ok, name, detail=""):
    global number
    number += 1
    print(f"{'ok' if ok else 'not ok'} {number} - {name}", flush=True)
    if not ok and detail:
        print("# " + str(detail).replace("\n", "\n# "))


def work(listener):
    """Accepts, and sends a byte: the client knows that its connection was taken."""
    poll = select.epoll()
    poll.register(listener, select.EPOLLIN | select.EPOLLEXCLUSIVE)
    while True:
        poll.poll()
        try:
            connection = listener.accept()[0]
        except BlockingIOError:
            continue
        connection.send(b"x")
        connection.close()


def serve(listener):
    """The server: a parent of workers. Returns its process."""
    server = os.fork()
    if server:
        return server
    children = []
    for _ in range(WORKERS):
        child = os.fork()
        if not child:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            work(listener)
        children.append(child)

    def end(*_):
        for child in children:
            os.kill(child, signal.SIGKILL)
        os._exit(0)
    signal.signal(signal.SIGTERM, end)
    while True:
        signal.pause()


def connect(listener, count):
    for _ in range(count):
        with socket.socket(listener.family) as client:
            client.connect(listener.getsockname())
            client.recv(1)
        time.sleep(0.001)


def start(*arguments):
    return subprocess.Popen([PROGRAM, "balance", *arguments], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def accepted(answer):
    counts = [w["accepted"] for w in answer["workers"] if w["accepted"]]
    return max(counts) / (sum(counts) / WORKERS), sum(counts)


def begin(*arguments):
    """A command that counts what two processes and more accept, with two events each."""
    process = start("--json", *arguments)
    directory = f"/proc/{process.pid}/fd/"
    end = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < end:
        links = [link_of(directory + fd) for fd in os.listdir(directory)]
        if sum("perf_event" in link for link in links) == 2 * (WORKERS + 1):
            break
        time.sleep(0.01)
    return process


def link_of(path):
    try:
        return os.readlink(path)
    except FileNotFoundError:
        return ""


def links_of(pid):
    return [link_of(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]


def check(name, listener, address):
    server = serve(listener)
    time.sleep(1)
    pid = ["--pid", str(server)]
    process = begin("--once", "--interval=10", *pid)
    connect(listener, CONNECTIONS)
    answer = json.loads(process.communicate()[0])
    before, count = accepted(answer)
    report(before > 2 and count == CONNECTIONS, f"{name}: once", answer)
    report(answer["state"] == "not balanced" and answer["listeners"] == [address],
           f"{name}: what --once says", answer)
    process = begin("--interval=3600", *pid)
    second = start(*pid)
    report(second.wait() == 1 and second.stderr.read() ==
           f"flowfdctl: {address}: it is balanced already, by another process\n",
           f"{name}: a second one is refused")
    process.kill()
    process.wait()
    # Nothing is left of a killed one.
    process = begin("--interval=3600", "--listen", address, *pid)
    connect(listener, CONNECTIONS)
    os.kill(server, signal.SIGTERM)
    os.waitpid(server, 0)
    output, error = process.communicate(timeout=PATIENCE)
    report((process.returncode, error) == (0, ""), f"{name}: ends with the server", error)
    answer = json.loads(output)
    after, count = accepted(answer)
    report(after <= 1.2 and count == CONNECTIONS and answer["state"] == "balanced",
           f"{name}: balanced, in the last table", answer)


def listen_abstract(name):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(name)
    listener.listen(64)
    listener.setblocking(False)
    return listener


def check_ended():
    """A worker that ends is in one more table; the name of the socket is hostile."""
    listener = listen_abstract(b"\0a\0\x1b[2Jb")
    server = serve(listener)
    time.sleep(1)
    process = start("--json", "--interval=2", "--pid", str(server))
    pids = worker_pids(process)
    with open(f"/proc/{server}/task/{server}/children", encoding="ascii") as file:
        children = {int(child) for child in file.read().split()}
    report(pids == children, "the children are the workers", (pids, children))
    end = min(pids)
    os.kill(end, signal.SIGKILL)
    report(end in worker_pids(process) and worker_pids(process) == pids - {end},
           "a worker that has ended is in one more table", (end, pids))
    process.kill()
    answer = start("--once", "--json", "--interval=0.1", "--pid", str(server))
    report(json.loads(answer.communicate()[0])["listeners"] ==
           [r"unix:@a@\x1b[2Jb"], "an abstract name is escaped")
    answer = start("--once", "--json", "--interval=0.1", "--pid", str(server),
                   "--listen", r"unix:@a@\x1b[2Jb")
    report(not answer.wait(), "and found by what is shown", answer.stderr.read())
    os.kill(server, signal.SIGTERM)
    os.waitpid(server, 0)
    listener.close()


def worker_pids(process):
    return {w["pid"] for w in json.loads(process.stdout.readline())["workers"]}


def check_reuseport():
    """One socket that workers share, and one for each of them."""
    sockets = []
    for _ in range(2):
        sockets.append(shared := socket.socket())
        shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        shared.bind(sockets[0].getsockname() if len(sockets) > 1 else ("127.0.0.1", 0))
        shared.listen()
        if len(sockets) == 1:
            process = start("--json", "--interval=0.1", "--pid", str(os.getpid()))
            answer = process.stdout.readline()
            report('"state": "balanced"' in answer, "one socket with SO_REUSEPORT",
                   process.stderr.read() if not answer else answer)
            process.kill()
            process.wait()
    refused("one socket for each worker", "the kernel distributes its connections",
            "--pid", str(os.getpid()))
    process = start("--once", "--interval=0.1", "--pid", str(os.getpid()))
    report(process.wait() == 0, "they can be counted", process.stderr.read())
    for shared in sockets:
        shared.close()


def refused(name, message, *arguments):
    process = start(*arguments)
    process.wait()
    report(message in (error := process.stderr.read()), name, error)


def check_uncounted(listener):
    """On a kernel without tracepoints, there are no tables, but a balance."""
    hidden = ["unshare", "--mount", "sh", "-c",
              'mount -t tmpfs none /sys/kernel && exec "$@"', "sh", PROGRAM, "balance"]
    for option in "--once", "--interval=1":
        answer = subprocess.run([*hidden, option, "--pid", str(os.getpid())], text=True,
                                capture_output=True, check=False)
        report((answer.returncode, answer.stdout) == (1, "") and
               "is not there: mount tracefs" in answer.stderr,
               f"no tracepoints: {option} is refused", answer)
    with subprocess.Popen([*hidden, "--pid", str(os.getpid())], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        line = process.stdout.readline()
        report(line == f"{name_of(listener)}: balanced\n", "no tracepoints: balanced", line)
        process.terminate()


def name_of(listener):
    return "%s:%d" % listener.getsockname()


def check_sockets(first):
    """Those that the server opens and closes later, has twice, or shares with another
    command; a socket that cannot be balanced."""
    pid = ["--pid", str(os.getpid())]
    twice = os.dup(first.fileno())
    one = start("--listen", name_of(first), *pid)
    report(one.stdout.readline() == f"{name_of(first)}: balanced\n", "a line says it")
    report(not any("perf_event" in link for link in links_of(one.pid)), "nothing is counted")
    second = socket.create_server(("127.0.0.1", 0))
    both = start(*pid)
    report((both.stderr.readline(), both.stdout.readline()) ==
           (f"flowfdctl: {name_of(first)}: it is balanced already, by another process\n",
            f"{name_of(second)}: balanced\n"), "one of two is balanced already")
    one.kill()
    one.wait()
    report(both.stdout.readline() == f"{name_of(first)}: balanced\n", "and not any more")
    third = socket.create_server(("127.0.0.1", 0))
    report(both.stdout.readline() == f"{name_of(third)}: balanced\n",
           "a socket that was opened later")
    name, link = name_of(third), link_of(f"/proc/self/fd/{third.fileno()}")
    report(link in links_of(both.pid), "has a descriptor")
    third.close()
    report(both.stdout.readline() == f"{name}: closed\n", "a socket that is closed")
    report(link not in links_of(both.pid), "has none")
    second.close()
    both.terminate()
    output, error = both.communicate()
    report((both.returncode, output, error) == (-signal.SIGTERM, "", ""),
           "each is named once", (output, error))
    os.close(twice)
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as six:
        address = "[::1]:%d" % six.getsockname()[1]
        one = start("--listen", address, *pid)
        report(one.stdout.readline() == f"{address}: balanced\n", "IPv6")
        one.kill()
        one.communicate()
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP) as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        refused("another protocol", "only listening sockets of TCP and UNIX can be",
                "--listen", name_of(other), *pid)


def check_names(listener):
    """The name of a UNIX socket that looks like a line of the kernel's; a name of full
    length."""
    false = listen_abstract(b"\0a\n0: 00000002 00000000 00010000 0001 01 %d @x" %
                            os.fstat(listener.fileno()).st_ino)
    full = listen_abstract(b"\0" + b"b" * 107)
    answer = json.loads(start("--once", "--json", "--interval=0.1", "--pid",
                              str(os.getpid())).communicate()[0])
    expected = [name_of(listener), "unix:@" + "b" * 107, r"unix:@a\x0a0: 00000002 "
                f"00000000 00010000 0001 01 {os.fstat(listener.fileno()).st_ino} @x"]
    report(sorted(answer["listeners"]) == sorted(expected), "names", answer)
    false.close()
    full.close()


def check_namespace():
    """A server in a network namespace of its own."""
    program = ("import socket, sys; s = socket.create_server(('', 7)); print('', flush=True);"
               "sys.stdin.read(1); t = socket.create_server(('', 8)); sys.stdin.read()")
    with subprocess.Popen(["unshare", "--net", sys.executable, "-c", program],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        server.stdout.readline()
        process = start("--pid", str(server.pid))
        line = process.stdout.readline()
        report(line == "0.0.0.0:7: balanced\n", "another network namespace", line)
        server.stdin.write(b"x")
        server.stdin.flush()
        line = process.stdout.readline()
        report(line == "0.0.0.0:8: balanced\n", "a later look at it", line)
        server.stdin.close()
        output, error = process.communicate(timeout=PATIENCE)
        report((process.returncode, error) == (0, ""), "it ends with its server",
               (output, error))


def check_many():
    """More sockets than are balanced: an error, and the others are."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (2048, 4096))
    sockets = [listen_abstract(b"\0many%d" % i) for i in range(1100)]
    process = start("--pid", str(os.getpid()))
    lines = [process.stdout.readline() for i in range(1024)]
    report(all(line.endswith(": balanced\n") for line in lines) and
           "more listening sockets than the 1,024" in process.stderr.readline(),
           "more sockets than are balanced", lines[-1])
    process.kill()
    process.communicate()
    for end in sockets:
        end.close()


def check_left(listener):
    """A socket that the server has closed, and its workers have not."""
    server = serve(listener)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    other = os.fork()
    if not other:
        # The server of this command: it has the socket, and lets go of it when told.
        signal.sigwait([signal.SIGUSR1])
        listener.close()
        signal.pause()
    process = start("--pid", str(other))
    line = process.stdout.readline()
    os.kill(other, signal.SIGUSR1)
    # Two looks.
    time.sleep(11)
    second = start("--pid", str(server))
    report(line and "balanced already" in second.communicate()[1],
           "a socket that only workers have stays balanced", line)
    for end in other, server:
        os.kill(end, signal.SIGTERM)
        os.waitpid(end, 0)
    output, error = process.communicate(timeout=PATIENCE)
    report((process.returncode, output, error) == (0, "", ""), "until the server ends",
           (output, error))


def check_descriptors(listener):
    """A limit of descriptors."""
    pid = ["--pid", str(os.getpid())]
    limited = subprocess.run(["prlimit", "--nofile=4:4", PROGRAM, "balance", *pid],
                             text=True, capture_output=True, check=False)
    report((limited.returncode, limited.stdout) == (1, "") and
           f"process {os.getpid()}: Too many open files" in limited.stderr,
           "too few descriptors to look", limited)
    with subprocess.Popen(["prlimit", "--nofile=23:23", PROGRAM, "balance",
                           "--interval=0.1", *pid], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        line = process.stdout.readline()
        error = process.stderr.readline()
        report("not all connections are counted: Too many open files" in error and
               line.startswith("balanced: "), "too few to count all", (line, error))
        process.terminate()
    # Raised from a limit that is soft.
    with subprocess.Popen(["prlimit", "--nofile=5:1000", PROGRAM, "balance", *pid],
                          text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        line = process.stdout.readline()
        report(line == f"{name_of(listener)}: balanced\n", "a soft limit is raised", line)
        process.terminate()


def check_threads(listener):
    """A worker that another thread has started."""
    children = []

    def start_worker():
        child = os.fork()
        if not child:
            work(listener)
        children.append(child)
        done.wait()

    done = threading.Event()
    thread = threading.Thread(target=start_worker)
    thread.start()
    while not children:
        time.sleep(0.01)
    process = start("--json", "--interval=0.1", "--pid", str(os.getpid()))
    pids = worker_pids(process)
    report(children[0] in pids, "a child of another thread", (pids, children))
    process.kill()
    process.communicate()
    os.kill(children[0], signal.SIGKILL)
    done.set()
    thread.join()
    os.waitpid(children[0], 0)


def main():
    with tempfile.TemporaryDirectory() as directory:
        tcp = socket.create_server(("127.0.0.1", 0), backlog=64)
        tcp.setblocking(False)
        check("TCP", tcp, "127.0.0.1:%d" % tcp.getsockname()[1])
        path = os.path.join(directory, "socket")
        unix = socket.socket(socket.AF_UNIX)
        unix.bind(path)
        unix.listen(64)
        unix.setblocking(False)
        tcp.close()
        check("UNIX", unix, "unix:" + path)
        unix.close()
        tcp = socket.create_server(("127.0.0.1", 0))
        tcp.setblocking(False)
        check_uncounted(tcp)
        check_sockets(tcp)
        check_names(tcp)
        check_namespace()
        check_many()
        check_left(tcp)
        check_descriptors(tcp)
        check_threads(tcp)
        tcp.close()
        refused("no server", "--pid is missing")
        refused("no table for JSON", "--json needs --interval or --once", "--json",
                "--pid=1")
        refused("no number", "not the number of a process", "--pid=nginx")
        refused("a number that is too large", "not the number of a process",
                f"--pid={2 ** 32 + os.getpid()}")
        refused("no process", "No such process", "--pid=4194303")
        refused("no socket", f"process {os.getpid()} has no listening socket",
                "--pid", str(os.getpid()))
        answer = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", PROGRAM,
                                 "balance", f"--pid={os.getpid()}"], text=True,
                                capture_output=True, check=False)
        report(answer.returncode == 1 and "run this as root" in answer.stderr,
               "another user", answer)
        check_ended()
        check_reuseport()
    print(f"1..{number}")


main()
