#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Usage: guest-http.py BUILD

The HTTP server of the examples on each of its event loops, as root in a machine
that may be broken. Prints TAP.
"""

import atexit
import os
import re
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

SERVER = sys.argv[1] + "/examples/http/server"
WATCHES = "/proc/sys/fs/epoll/max_user_watches"
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
GET_AND_CLOSE = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
# Slow kernels have more time for a whole test, and so for each of its calls.
TIMEOUT = int(os.environ.get("FLOWFD_TEST_SECONDS", 120)) / 6

BAD = {
    "no request line": b"\r\n\r\n",
    "another method": b"POST / HTTP/1.1\r\nHost: a\r\n\r\n",
    "another protocol": b"GET / HTTP/2.0\r\nHost: a\r\n\r\n",
    "no version": b"GET /\r\n\r\n",
    "four words": b"GET / / HTTP/1.1\r\nHost: a\r\n\r\n",
    "no target": b"GET  HTTP/1.1\r\nHost: a\r\n\r\n",
    "no Host": b"GET / HTTP/1.1\r\n\r\n",
    "two Hosts": b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "no colon": b"GET / HTTP/1.1\r\nHost: a\r\nnonsense\r\n\r\n",
    "no name": b"GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n",
    "a blank in a name": b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
    "a folded line": b"GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c: d\r\n\r\n",
    "a body": b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx",
    "a chunked body": b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
    "bytes": bytes(range(256)),
    "a head that is too long": b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\n",
    "a head without end": b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 1000,
}


class Tap:
    """Counts and prints results."""

    def __init__(self):
        self.count = 0
        self.failed = 0

    def report(self, good, what, *details):
        self.count += 1
        self.failed += not good
        print("ok" if good else "not ok", self.count, "-", what)
        for detail in () if good else details:
            print("#", detail)
        sys.stdout.flush()

    def equal(self, got, wanted, what):
        self.report(got == wanted, what, f"got: {got!r}", f"wanted: {wanted!r}")

    def attempt(self, what, function, *arguments):
        """Runs tests; one that cannot go on has failed."""
        print("#", what)
        try:
            function(*arguments)
        except (OSError, RuntimeError) as error:
            self.report(False, what, repr(error))

    def skip(self, what, why):
        self.count += 1
        print(f"ok {self.count} - {what} # SKIP {why}")

    def done(self):
        print(f"1..{self.count}")
        return bool(self.failed)


class Client:
    """A connection; counts answers by status."""

    def __init__(self, port, buffers=None):
        self.socket = socket.socket()
        self.socket.settimeout(TIMEOUT)
        if buffers:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffers)
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffers)
        self.socket.connect(("127.0.0.1", port))
        self.buffer = b""

    def send(self, data):
        # The time is for all that one call sends.
        for at in range(0, len(data), 1 << 16):
            self.socket.sendall(data[at:at + (1 << 16)])

    def answer(self):
        """The next answer: (status, Connection); None at the end."""
        while True:
            head, separator, rest = self.buffer.partition(b"\r\n\r\n")
            if separator:
                length = int(re.search(rb"Content-Length: (\d+)", head)[1])
                if len(rest) >= length:
                    self.buffer = rest[length:]
                    status = int(head.split()[1])
                    return status, re.search(rb"Connection: (\S+)", head)[1].decode()
            data = self.socket.recv(1 << 16)
            if not data:
                return None
            self.buffer += data

    def answers(self, count):
        return [self.answer() for _ in range(count)]

    def reset(self):
        linger = struct.pack("ii", 1, 0)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.socket.close()


class Server:
    """The server, with at most @files descriptors."""

    def __init__(self, loop, files=4096):
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

        self.process = subprocess.Popen(
            [SERVER, "--loop", loop, "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=limit,
        )
        atexit.register(self.process.kill)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(self.process.stderr.read().decode())
        self.port = int(line.split()[-1])

    def client(self):
        return Client(self.port)

    def files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def watches(self):
        """How many files its ring watches, closed ones aside."""
        directory = f"/proc/{self.process.pid}/fdinfo"
        texts = [open(f"{directory}/{fd}").read() for fd in os.listdir(directory)]
        return sum(text.count("tfd:") for text in texts if "flowfd-ring" in text)

    def settles(self, what, wanted):
        """Waits until @what() is @wanted, and returns what it was at last."""
        end = time.monotonic() + TIMEOUT
        while (got := what()) != wanted and time.monotonic() < end:
            time.sleep(0.05)
        return got

    def stop(self):
        """Its exit status, and what it had to say."""
        self.process.send_signal(signal.SIGTERM)
        try:
            error = self.process.communicate(timeout=TIMEOUT)[1]
        except subprocess.TimeoutExpired:
            self.process.kill()
            error = b"still there\n"
        return self.process.returncode, error.decode()


STAYS = (200, "keep-alive")
CLOSES = (200, "close")
BAD_REQUEST = (400, "close")


def test_requests(tap, server):
    client = server.client()
    for _ in range(3):
        client.send(GET)
        tap.equal(client.answer(), STAYS, "a request")
    client.send(GET_AND_CLOSE)
    tap.equal(client.answers(2), [CLOSES, None], "Connection: close")
    client = server.client()
    client.send(b"GET / HTTP/1.0\r\n\r\n")
    tap.equal(client.answers(2), [CLOSES, None], "HTTP/1.0 closes")
    client = server.client()
    client.send(b"GET / HTTP/1.0\r\nconnection: x, Keep-Alive\r\n\r\n" * 2)
    tap.equal(client.answers(2), [STAYS] * 2, "unless it wants to stay")
    client = server.client()
    client.send(b"GET /a?b HTTP/1.1\nHost:\nContent-Length: 0\n\n")
    tap.equal(client.answer(), STAYS, "lines without carriage return")


def test_pieces(tap, server):
    client = server.client()
    for byte in GET + GET_AND_CLOSE:
        client.send(bytes([byte]))
        time.sleep(0.001)
    tap.equal(client.answers(3), [STAYS, CLOSES, None], "byte by byte")
    client = server.client()
    client.send(GET * 500 + GET_AND_CLOSE + GET)
    tap.equal(client.answers(502), [STAYS] * 500 + [CLOSES, None], "pipelined")
    client = server.client()
    client.send(GET + GET_AND_CLOSE[:-1])
    client.socket.shutdown(socket.SHUT_WR)
    tap.equal(client.answers(2), [STAYS, None], "a client that ends half-way")
    client = server.client()
    client.send(GET)
    client.socket.shutdown(socket.SHUT_WR)
    tap.equal(client.answers(2), [STAYS, None], "a client that only listens")


def test_slow_reader(tap, server):
    """Answers fill both sockets' buffers, so that the server must wait. The server's
    own grow to 4 MB of answers (46,000) and 6 MB of requests (160,000)."""
    count = 250000
    client = Client(server.port, 8192)
    client.send(GET)
    answer = client.socket.recv(1 << 16)
    client.socket.setblocking(False)
    unsent = memoryview(GET * count)
    sent = 0
    while sent < len(unsent) and select.select([], [client.socket], [], 1)[1]:
        sent += client.socket.send(unsent[sent:])
    tap.report(sent < len(unsent), "backpressure on who does not read")
    client.socket.settimeout(TIMEOUT)
    sender = threading.Thread(target=client.send, args=(unsent[sent:],))
    sender.start()
    received = bytearray()
    while len(received) < count * len(answer):
        data = client.socket.recv(1 << 16)
        if not data:
            break
        received += data
    sender.join()
    tap.report(received == answer * count, "and then all answers")


def test_bad(tap, server):
    for name, request in BAD.items():
        client = server.client()
        client.send(GET + request)
        tap.equal(client.answers(3), [STAYS, BAD_REQUEST, None], f"bad: {name}")


def test_disconnects(tap, server):
    for i in range(300):
        client = server.client()
        client.send((b"", GET[:10], GET, GET * 200)[i % 4])
        if i % 3:
            client.reset()
        else:
            client.socket.close()
    client = server.client()
    client.send(GET)
    tap.equal(client.answer(), STAYS, "goes on after abrupt disconnects")


def test_cut_off(tap, server):
    """Who is still sending after the last answer: data come while it closes."""
    ended = 0
    for _ in range(200):
        client = server.client()
        try:
            client.send(GET_AND_CLOSE + bytes(300000))
            client.answers(2)
        except ConnectionError:
            pass
        ended += 1
        client.socket.close()
    tap.equal(ended, 200, "ends while the client is sending")


def test_many(tap, server):
    clients = [server.client() for _ in range(1000)]
    answers = []
    for _ in range(2):
        for client in clients:
            client.send(GET)
        answers += [client.answer() for client in clients]
    tap.equal(answers, [STAYS] * 2000, "1000 connections")
    for client in clients[::2]:
        client.send(GET_AND_CLOSE)
    answers = [client.answer() for client in clients[::2]]
    tap.equal(answers, [CLOSES] * 500, "half of them close")
    for client in clients:
        client.socket.close()


def test_no_descriptors(tap, loop):
    server = Server(loop, files=32)
    clients = [server.client() for _ in range(100)]
    for client in clients:
        client.send(GET)
    served = 0
    for client in clients:
        if client.answer() == STAYS:
            served += 1
        client.socket.close()
    tap.equal(served, 100, "more connections than descriptors")
    tap.equal(server.stop(), (0, ""), "and ends in peace")


def test_no_watches(tap):
    """epoll limits how many files a user watches."""
    with open(WATCHES) as file:
        before = file.read()
    server = Server("epoll")
    client = server.client()
    client.send(GET)
    tap.equal(client.answer(), STAYS, "a connection that is watched")
    with open(WATCHES, "w") as file:
        file.write("1")
    refused = server.client()
    tap.equal(refused.answer(), None, "one that cannot be watched is closed")
    with open(WATCHES, "w") as file:
        file.write(before)
    client.send(GET)
    tap.equal(client.answer(), STAYS, "the other is served")
    status, error = server.stop()
    tap.report(
        status == 0 and "epoll: No space left on device" in error,
        "and it says why",
        error,
    )


def test_end(tap, server, loop, files):
    tap.equal(server.settles(server.files, files), files, "no descriptor leaks")
    if loop.startswith("ring"):
        tap.equal(server.settles(server.watches, 2), 2, "nor a watch")
    clients = [server.client() for _ in range(10)]
    for client in clients:
        client.send(GET)
    for client in clients:
        client.answer()
    tap.equal(server.stop(), (0, ""), "ends on SIGTERM")
    tap.equal([c.answer() for c in clients], [None] * 10, "and all connections end")


def test_loop(tap, loop):
    server = Server(loop)
    files = server.files()
    for test in (
        test_requests,
        test_pieces,
        test_slow_reader,
        test_bad,
        test_disconnects,
        test_cut_off,
        test_many,
    ):
        tap.attempt(f"{loop}: {test.__name__}", test, tap, server)
    tap.attempt(f"{loop}: test_end", test_end, tap, server, loop, files)
    tap.attempt(f"{loop}: test_no_descriptors", test_no_descriptors, tap, loop)


def says(*arguments):
    """Exit status and the first line of complaint."""
    result = subprocess.run(
        [SERVER, *arguments], capture_output=True, text=True, timeout=TIMEOUT
    )
    return result.returncode, result.stderr.partition("\n")[0].partition(": ")[2]


def test_options(tap):
    wrong = "--loop select: not built, or unknown"
    tap.equal(says("--loop", "select"), (64, wrong), "an unknown loop")
    for port in ("", "x", "65536", "8x"):
        wrong = f"--port {port}: not a port"
        tap.equal(says("--port", port), (64, wrong), f"port '{port}'")
    server = Server("epoll")
    wrong = "listening socket: Address already in use"
    tap.equal(says("--port", str(server.port)), (1, wrong), "a port that is taken")
    server.stop()


def main():
    tap = Tap()
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    tap.attempt("options", test_options, tap)
    for loop in ("epoll", "io_uring", "ring", "ring-gather"):
        if loop.startswith("ring") and not os.path.exists("/dev/flowfd"):
            tap.skip(loop, "the module is not loaded")
        else:
            tap.attempt(loop, test_loop, tap, loop)
    if os.access(WATCHES, os.W_OK):
        tap.attempt("test_no_watches", test_no_watches, tap)
    else:
        tap.skip("more files than epoll watches", "cannot change its limit")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
