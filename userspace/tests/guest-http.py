#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-only
"""Usage: guest-http.py BUILD [PYTEST-ARGUMENT...]

The HTTP server of the examples on each of its event loops, as root in a virtual machine;
http.sh runs what needs no module on the host. Prints TAP.
"""

import atexit
import contextlib
import os
import pathlib
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import pytest
import tap
from tap import settles

SERVER = tap.BUILD + "/examples/http/server"
DOORBELL = "f" * 16  # its data in the epoll of a ring without the module
WATCHES = pathlib.Path("/proc/sys/fs/epoll/max_user_watches")
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
GET_AND_CLOSE = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
# Seconds for each call: slow kernels have more time for the whole file.
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


resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))  # for 1000 connections


class Client:
    """A connection."""

    def __init__(self, port, buffers=None):
        self.socket = socket.socket()
        self.socket.settimeout(TIMEOUT)
        if buffers:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffers)
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffers)
        self.socket.connect(("127.0.0.1", port))
        self.reader = self.socket.makefile("rb")

    def send(self, data):
        # The timeout is for the whole of one sendall().
        for at in range(0, len(data), 1 << 16):
            self.socket.sendall(data[at:at + (1 << 16)])

    def answer(self):
        """The next answer, as (status, Connection); None at the end."""
        status = self.reader.readline()
        if not status:
            return None
        head = dict(line.strip().split(b": ")
                    for line in iter(self.reader.readline, b"\r\n"))
        self.reader.read(int(head[b"Content-Length"]))
        return int(status.split()[1]), head[b"Connection"].decode()

    def answers(self, count):
        return [self.answer() for _ in range(count)]

    def reset(self):
        linger = struct.pack("ii", 1, 0)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.close()

    def close(self):
        self.reader.close()
        self.socket.close()


class Server:
    """The server, with at most @files descriptors. A @loop has a backend behind it."""

    def __init__(self, loop, files=4096):
        self.loop, _, backend = loop.partition(", ")
        self.process = subprocess.Popen(
            ["prlimit", f"--nofile={files}", SERVER, "--loop", self.loop, "--port", "0"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "FLOWFD_BACKEND": backend})
        atexit.register(self.process.kill)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(self.process.stderr.read().decode())
        self.port = int(line.split()[-1])
        self.files_at_start = self.files()

    def client(self):
        return Client(self.port)

    def files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def watches(self):
        """How many files its ring watches, without closed ones and its doorbell."""
        directory = f"/proc/{self.process.pid}/fdinfo"
        texts = [open(f"{directory}/{fd}").read() for fd in os.listdir(directory)]
        return sum(text.count("tfd:") - text.count(f"data: {DOORBELL}") for text in texts)

    def stop(self):
        """Its exit status and its messages."""
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


@pytest.fixture(scope="module", params=[
    "epoll", "io_uring", "ring, module", "ring-gather, module", "ring, fallback",
    "ring-gather, fallback"])
def loop(request):
    if request.param.endswith("module") and not os.path.exists("/dev/flowfd"):
        pytest.skip("the module is not loaded")
    if request.param.endswith("fallback") and os.path.exists("/dev/flowfd"):
        pytest.skip("http.sh has this, on a host without the module")
    return request.param


@pytest.fixture(scope="module")
def server(loop):
    """The server that all tests of a loop use, until the last of them ends it."""
    return Server(loop)


@pytest.fixture
def client(server):
    with contextlib.closing(server.client()) as client:
        yield client


def test_requests(server, client):
    for _ in range(3):
        assert answers_of([client], GET) == [STAYS]
    client.send(GET_AND_CLOSE)
    assert client.answers(2) == [CLOSES, None]


@pytest.mark.parametrize("request_, answers", [
    (b"GET / HTTP/1.0\r\n\r\n", [CLOSES, None]),
    (b"GET / HTTP/1.0\r\nconnection: x, Keep-Alive\r\n\r\n" * 2, [STAYS] * 2),
    (b"GET /a?b HTTP/1.1\nHost:\nContent-Length: 0\n\n", [STAYS]),
    (GET * 500 + GET_AND_CLOSE + GET, [STAYS] * 500 + [CLOSES, None])],
    ids=["HTTP/1.0", "keep-alive", "no carriage return", "pipelined"])
def test_answers(client, request_, answers):
    client.send(request_)
    assert client.answers(len(answers)) == answers


def test_byte_by_byte(client):
    for byte in GET + GET_AND_CLOSE:
        client.send(bytes([byte]))
        time.sleep(0.001)
    assert client.answers(3) == [STAYS, CLOSES, None]


@pytest.mark.parametrize("rest", [GET_AND_CLOSE[:-1], b""], ids=["half-way", "complete"])
def test_client_stops_sending(client, rest):
    client.send(GET + rest)
    client.socket.shutdown(socket.SHUT_WR)
    assert client.answers(2) == [STAYS, None]


def test_slow_reader(server):
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
    backpressure = sent < len(unsent)
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
    assert backpressure
    assert bytes(received) == answer * count


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_bad(client, bad):
    client.send(GET + bad)
    assert client.answers(3) == [STAYS, BAD_REQUEST, None]


def test_disconnects(server):
    for i in range(300):
        client = server.client()
        client.send((b"", GET[:10], GET, GET * 200)[i % 4])
        if i % 3:
            client.reset()
        else:
            client.close()
    assert answers_of([server.client()], GET) == [STAYS]


def test_cut_off(server):
    """A client still sends after its last answer: data arrive during the close."""
    for _ in range(200):
        client = server.client()
        with contextlib.suppress(ConnectionError):
            client.send(GET_AND_CLOSE + bytes(300000))
            client.answers(2)
        client.close()


def answers_of(clients, request):
    for client in clients:
        client.send(request)
    return [client.answer() for client in clients]


def test_1000_connections(server):
    clients = [server.client() for _ in range(1000)]
    for _ in range(2):
        assert answers_of(clients, GET) == [STAYS] * 1000
    assert answers_of(clients[::2], GET_AND_CLOSE) == [CLOSES] * 500
    for client in clients:
        client.close()


def test_nothing_leaks(server):
    assert settles(server.files, server.files_at_start, TIMEOUT)
    if server.loop.startswith("ring"):
        assert settles(server.watches, 2, TIMEOUT)


def test_sigterm_ends_connections(server):
    """The last test of a loop's server."""
    clients = [server.client() for _ in range(10)]
    answers_of(clients, GET)
    assert server.stop() == (0, "")
    assert [c.answer() for c in clients] == [None] * 10


def test_more_connections_than_descriptors(loop):
    server = Server(loop, files=32)
    clients = [server.client() for _ in range(100)]
    for client in clients:
        client.send(GET)
    for client in clients:
        assert client.answer() == STAYS
        client.close()
    assert server.stop() == (0, "")


@pytest.mark.skipif(not os.access(WATCHES, os.W_OK), reason="the limit cannot be changed")
def test_more_files_than_epoll_watches():
    """epoll limits how many files a user watches."""
    server = Server("epoll")
    client = server.client()
    assert answers_of([client], GET) == [STAYS]
    before = WATCHES.read_text()
    try:
        WATCHES.write_text("1")
        assert server.client().answer() is None
    finally:
        WATCHES.write_text(before)
    assert answers_of([client], GET) == [STAYS]
    status, error = server.stop()
    assert status == 0
    assert "epoll: No space left on device" in error


def complaint(*arguments):
    """Exit status and the first line of the complaint."""
    result = subprocess.run([SERVER, *arguments], capture_output=True, text=True,
                            timeout=TIMEOUT)
    return result.returncode, result.stderr.partition("\n")[0].partition(": ")[2]


@pytest.mark.parametrize("option, value, error", [
    ("--loop", "select", "not built, or unknown"),
    *(("--port", value, "not a port") for value in ("", "x", "65536", "8x"))])
def test_bad_option(option, value, error):
    assert complaint(option, value) == (64, f"{option} {value}: {error}")


def test_port_in_use():
    server = Server("epoll")
    assert complaint("--port", str(server.port)) == (
        1, "listening socket: Address already in use")
    server.stop()


if __name__ == "__main__":
    sys.exit(tap.run())
