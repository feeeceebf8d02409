#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""flowfdctl balance on a server of four processes that wait with EPOLLEXCLUSIVE."""
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time

PROGRAM = os.path.join(sys.argv[1], "flowfdctl")
WORKERS = 4
CONNECTIONS = 200
number = 0


def report(ok, name, detail=""):
    global number
    number += 1
    print(f"{'ok' if ok else 'not ok'} {number} - {name}")
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


def measure(listener, *arguments):
    """Connections during one interval of a command; its answer."""
    process = start("--json", *arguments)
    time.sleep(1)
    connect(listener, CONNECTIONS)
    return process, json.loads(process.stdout.readline())


def check(name, listener, address):
    server = serve(listener)
    time.sleep(1)
    pid = ["--pid", str(server)]
    process, answer = measure(listener, "--once", "--interval=8", *pid)
    before, count = accepted(answer)
    report(process.wait() == 0 and before > 2 and count == CONNECTIONS,
           f"{name}: once", answer)
    report(answer["state"] == "not balanced" and answer["listeners"] == [address],
           f"{name}: what --once says", answer)
    process, answer = measure(listener, "--interval=8", *pid)
    after, count = accepted(answer)
    report(after <= 1.2 and count == CONNECTIONS, f"{name}: balanced", answer)
    second = start(*pid)
    report(second.wait() == 1 and second.stderr.read() ==
           f"flowfdctl: {address}: it is balanced already, by another process\n",
           f"{name}: a second one is refused")
    process.kill()
    process.wait()
    # Nothing is left of a killed one.
    process = start("--listen", address, *pid)
    time.sleep(1)
    os.kill(server, signal.SIGTERM)
    os.waitpid(server, 0)
    report(process.wait(timeout=20) == 0, f"{name}: ends with the server",
           process.stderr.read())
    report(" connections, " in process.stdout.read(), f"{name}: its last table")


def refused(name, message, *arguments):
    process = start(*arguments)
    process.wait()
    report(message in (error := process.stderr.read()), name, error)


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
        refused("no server", "--pid is missing")
        refused("no number", "not the number of a process", "--pid=nginx")
        refused("no process", "No such process", "--pid=4194303")
        refused("no socket", f"process {os.getpid()} has no listening socket",
                "--pid", str(os.getpid()))
        shared = socket.socket()
        shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        shared.bind(("127.0.0.1", 0))
        shared.listen()
        refused("reuseport", "there is nothing to balance", "--pid", str(os.getpid()))
        shared.close()
    print(f"1..{number}")


main()
