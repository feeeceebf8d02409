#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""How evenly the workers of servers from Debian share connections, with and without a
balance, and how long clients wait. 'make servers' shows it as a table.
"""
import concurrent.futures
import json
import os
import select
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

# The build, or, as a server of ours, "serve" and what to listen at.
BUILD = sys.argv[1]
FLOWFDCTL = os.path.join(BUILD, "flowfdctl")
CLIENTS = os.path.join(BUILD, "tests", "clients")
WORKERS = 8
PORT = 8000
ROUNDS = 3
# Where the machine is too slow for that, no worker sleeps, and all are even.
RATE = int(os.environ.get("FLOWFD_RATE", 100))
CONNECTIONS = int(os.environ.get("FLOWFD_CONNECTIONS", 400))
number = 0

NGINX = """
daemon off; user root; worker_processes {workers}; pid {directory}/pid;
error_log {directory}/log;
events {{ worker_connections 4096; accept_mutex {mutex}; }}
http {{
    access_log off; default_type text/plain;
    keepalive_timeout 300; keepalive_requests 1000000;
    client_body_temp_path {directory}; proxy_temp_path {directory};
    fastcgi_temp_path {directory}; uwsgi_temp_path {directory};
    scgi_temp_path {directory};
    server {{ listen {listen}; return 200 "$pid\\n"; }}
}}
"""

# These answer as nginx does here.
UNICORN = """
worker_processes {workers}
listen "{listen}", :backlog => 1024
logger Logger.new("{directory}/log")
"""
RACK = """
run lambda { |env|
  pid = "#{Process.pid}\\n"
  [200, { "content-type" => "text/plain", "content-length" => pid.size.to_s }, [pid]]
}
"""


def answer_all(listener):
    """A worker that accepts one connection for each wakeup and keeps it, with no measures
    against unevenness."""
    body = f"{os.getpid()}\n"
    text = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    poll = select.epoll()
    poll.register(listener, select.EPOLLIN | select.EPOLLEXCLUSIVE)
    held = {}
    while True:
        for fd, _ in poll.poll():
            if fd != listener.fileno():
                # Its registration goes with its descriptor.
                if held[fd].recv(4096):
                    held[fd].send(text)
                else:
                    held.pop(fd).close()
                continue
            try:
                connection = listener.accept()[0]
            except BlockingIOError:
                continue
            held[connection.fileno()] = connection
            poll.register(connection, select.EPOLLIN)


def serve(port):
    """A server whose parent only waits."""
    listener = socket.create_server(("127.0.0.1", port), backlog=1024)
    listener.setblocking(False)
    signal.signal(signal.SIGTERM, lambda *_: os.killpg(0, signal.SIGKILL))
    os.setpgid(0, 0)
    for _ in range(WORKERS):
        if not os.fork():
            answer_all(listener)
    signal.pause()


def report(ok, name, detail=""):
    global number
    number += 1
    print(f"{'ok' if ok else 'not ok'} {number} - {name}", flush=True)
    if not ok and detail:
        print("# " + str(detail).replace("\n", "\n# "), flush=True)


def show(text):
    print("# " + text, flush=True)


def link_of(path):
    try:
        return os.readlink(path)
    except FileNotFoundError:
        return ""


class Server:
    """A server of WORKERS processes; kind: TCP, reuseport or UNIX."""

    def __init__(self, program, kind="TCP", mutex="off"):
        self.directory = tempfile.mkdtemp()
        self.balance = None
        self.address = os.path.join(self.directory, "socket") if kind == "UNIX" else \
            str(PORT)
        command = {"nginx": lambda: self.nginx(kind, mutex),
                   "unicorn": lambda: self.unicorn(kind),
                   "ours": lambda: [sys.executable, __file__, "serve"]}[program]()
        with open(os.path.join(self.directory, "output"), "w", encoding="ascii") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out,
                                            cwd=self.directory)
        self.wait()

    def write(self, name, text):
        with open(os.path.join(self.directory, name), "w", encoding="ascii") as file:
            file.write(text)

    def nginx(self, kind, mutex):
        listen = {"TCP": f"127.0.0.1:{PORT} backlog=1024",
                  "reuseport": f"127.0.0.1:{PORT} backlog=1024 reuseport",
                  "UNIX": f"unix:{self.address}"}[kind]
        self.write("conf", NGINX.format(directory=self.directory, listen=listen,
                                        mutex=mutex, workers=WORKERS))
        return ["nginx", "-c", os.path.join(self.directory, "conf")]

    def unicorn(self, kind):
        listen = self.address if kind == "UNIX" else f"127.0.0.1:{PORT}"
        self.write("conf", UNICORN.format(directory=self.directory, listen=listen,
                                          workers=WORKERS))
        self.write("config.ru", RACK)
        return ["unicorn", "-E", "none", "-c", os.path.join(self.directory, "conf"),
                os.path.join(self.directory, "config.ru")]

    def children(self):
        """As pgrep(1) finds them: not every kernel has a list of them in /proc."""
        found = subprocess.run(["pgrep", "-P", str(self.process.pid)],
                               capture_output=True, text=True, check=False)
        return [int(child) for child in found.stdout.split()]

    def wait(self):
        """Until it answers, and all workers are asleep."""
        end = time.monotonic() + 300
        while len(self.children()) < WORKERS or not self.answers():
            if time.monotonic() > end or self.process.poll() is not None:
                with open(os.path.join(self.directory, "output"), encoding="utf8") as out:
                    sys.exit("no server: " + out.read())
            time.sleep(0.1)
        time.sleep(1)

    def answers(self):
        family = socket.AF_UNIX if self.address[0] == "/" else socket.AF_INET
        with socket.socket(family) as client:
            return not client.connect_ex(
                self.address if family == socket.AF_UNIX else ("127.0.0.1", PORT))

    def switch_on(self):
        """Returns how long it took until the balance was in force."""
        begun = time.monotonic()
        self.balance = subprocess.Popen(
            [FLOWFDCTL, "balance", "--pid", str(self.process.pid)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not self.is_balanced():
            if self.balance.poll() is not None or time.monotonic() > begun + 30:
                sys.exit("no balance")
            time.sleep(0.01)
        return time.monotonic() - begun

    def is_balanced(self):
        directory = f"/proc/{self.balance.pid}/fd/"
        return any("flowfd-balance" in link_of(directory + fd)
                   for fd in os.listdir(directory))

    def switch_off(self, how=signal.SIGTERM):
        self.balance.send_signal(how)
        self.balance.wait()
        self.balance = None

    def load(self, *arguments):
        """Answers of clients: most over mean, and the times."""
        answer = subprocess.run([CLIENTS, self.address, *map(str, arguments)],
                                capture_output=True, text=True, check=False)
        if answer.returncode:
            sys.exit("clients: " + answer.stderr)
        answer = json.loads(answer.stdout)
        counts = sorted(answer["workers"].values(), reverse=True)
        counts += [0] * (WORKERS - len(counts))
        answer["counts"] = counts
        answer["most"] = counts[0] * len(counts) / sum(counts)
        return answer

    def end(self):
        if self.balance:
            self.switch_off()
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.directory)


def measure(name, program, connections=CONNECTIONS, balanced=False, **options):
    server = Server(program, **options)
    if balanced:
        server.switch_on()
    answer = server.load(0, connections, RATE)
    server.end()
    times = answer["connections"]
    counts = " ".join(f"{count:3}" for count in answer["counts"])
    show(f"{name:32} {counts}  {answer['most']:5.2f}  {times['p50']:6.0f} "
         f"{times['p99']:7.0f}")
    return answer


def times(name, key, command, program="nginx", kinds=("off", "on"), rounds=ROUNDS):
    """The 99th percentile of each kind of server, in microseconds: the median of rounds,
    in turns."""
    found = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for kind, values in found.items():
            server = Server(program, "reuseport" if kind == "reuseport" else "TCP")
            if kind == "on":
                server.switch_on()
            values.append(server.load(*command)[key]["p99"])
            server.end()
    result = {kind: statistics.median(values) for kind, values in found.items()}
    show(f"{name}, p99: " + ", ".join(
        f"{kind} {result[kind]:.0f} us ({min(values):.0f} to {max(values):.0f})"
        for kind, values in found.items()))
    return result


def check_even():
    """Connections of each worker. nginx joins the end of the queue itself, each 16 of its
    connections: only few show what its workers get without that."""
    show(f"{f'{RATE} connections/s':32} {'of each worker':31}  {'most':>5}  {'p50':>6} "
         f"{'p99':>7} us")
    for program, connections, kinds in (("ours", CONNECTIONS, ["TCP"]),
                                        ("unicorn", CONNECTIONS, ["TCP", "UNIX"]),
                                        ("nginx", 3 * WORKERS, ["TCP", "UNIX"])):
        for kind in kinds:
            before = measure(f"{program}, {kind}", program, connections, kind=kind)
            after = measure(f"{program}, {kind}, balanced", program, connections, True,
                            kind=kind)
            report(before["most"] >= 5 and after["most"] <= 1.2,
                   f"{program}, {kind}: even", (before, after))
    measure("nginx, TCP", "nginx")
    measure("nginx, TCP, balanced", "nginx", balanced=True)
    measure("nginx, TCP, reuseport", "nginx", kind="reuseport")
    measure("nginx, TCP, accept_mutex", "nginx", mutex="on")


def check_switch():
    """On and off under load; a tool that is killed leaves nothing; nothing is lost."""
    server = Server("nginx")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        load = pool.submit(server.load, 0, 4 * RATE, RATE)
        took = []
        for how in signal.SIGTERM, signal.SIGKILL, signal.SIGTERM:
            took.append(server.switch_on())
            begun = time.monotonic()
            server.switch_off(how)
            took.append(time.monotonic() - begun)
        running = not load.done()
        answer = load.result()
    show("on and off under load: " + ", ".join(f"{value:.2f} s" for value in took))
    report(running and max(took) < 1, "on and off under load in less than 1 s", took)
    report(answer["connections"]["count"] == 4 * RATE, "every connection has its answer")
    server.end()


def main():
    check_even()
    check_switch()
    # Few connections, so the 99th percentile is one of the slowest two.
    low = times(f"{RATE // 2} connections/s, all workers warm", "connections",
                (160, 2 * RATE, RATE // 2), kinds=("off", "on", "reuseport"),
                rounds=11)
    report(low["on"] <= 1.1 * low["off"], "low load", low)
    # A worker that is stopped for a 20th of the time delays a 20th of its share. If all
    # have an equal share, that is less than a hundredth of all requests.
    busy = times("a worker busy for 50 ms each second, 80 connections", "requests",
                 (0, 80, RATE, 16 * RATE, 50), "ours")
    report(busy["on"] <= 0.5 * busy["off"], "a busy worker", busy)
    print(f"1..{number}")


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(PORT)
    main()
