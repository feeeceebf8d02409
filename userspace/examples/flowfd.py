#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""flowfd from Python, with nothing but its standard library.

Counters need no more than open, read, write and ioctl. A ring is memory that the
kernel writes at the same time, and Python has no atomic operations: see Ring for
what can be done right without them, and where.

This file is both a program that shows it and a module to start from.
"""

import array
import fcntl
import mmap
import os
import platform
import select
import struct

DEVICE = "/dev/flowfd"


def _request(direction, letter, number, size):
    """_IOC() of the kernel, as x86, arm64 and most others have it."""
    return direction << 30 | size << 16 | ord(letter) << 8 | number


_WRITE, _READ = 1, 2

# From <linux/flowfd.h>; "=" is a layout without padding of Python's own.
_QUERY = struct.Struct("=IIQ")
_COUNTER = struct.Struct("=QQIIII")
_RING = struct.Struct("=6I")
_ENTRY = struct.Struct("=IiIiQ")
_CONTROL = struct.Struct("=QII")
_QOS = struct.Struct("=II")

SET_MAXIMUM = _request(_WRITE, "J", 0, 8)
GET_MAXIMUM = _request(_READ, "J", 1, 8)
SET_QOS = _request(_WRITE, "E", 0, _QOS.size)
QUERY = _request(_READ, "J", 0x10, _QUERY.size)
CREATE_COUNTER = _request(_WRITE, "J", 0x11, _COUNTER.size)
CREATE_RING = _request(_READ | _WRITE, "J", 0x12, _RING.size)
RING_CONTROL = _request(_WRITE, "J", 0x13, _CONTROL.size)

SEMAPHORE, NONBLOCK = 1, 2
ADD, DEL = 1, 2
RING_VERSION = 1


def _device(request, args):
    """A request to the device. Only for a bytearray does ioctl() return what the
    request did, here a descriptor: for bytes it returns those, changed."""
    device = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
    try:
        return fcntl.ioctl(device, request, args)
    finally:
        os.close(device)


def query():
    """What the module can do: ABI version, highest rate, feature bits."""
    return _QUERY.unpack(_device(QUERY, bytes(_QUERY.size)))


class Counter:
    """An eventfd with a maximum and a token bucket."""

    def __init__(self, initial=0, maximum=0, flags=0, burst=0, rate=0):
        self.fd = _device(CREATE_COUNTER, bytearray(_COUNTER.pack(
            initial, maximum, flags, 0, burst, rate)))

    def fileno(self):
        return self.fd

    def set_maximum(self, maximum):
        fcntl.ioctl(self.fd, SET_MAXIMUM, struct.pack("=Q", maximum))

    def maximum(self):
        answer = fcntl.ioctl(self.fd, GET_MAXIMUM, bytes(8))
        return struct.unpack("=Q", answer)[0]

    def set_bucket(self, burst, rate):
        fcntl.ioctl(self.fd, SET_QOS, _QOS.pack(burst, rate))

    def write(self, value=1):
        """Waits for room, or raises BlockingIOError if it must not wait."""
        os.eventfd_write(self.fd, value)

    def read(self):
        return os.eventfd_read(self.fd)

    def close(self):
        os.close(self.fd)


class Ring:
    """Says which of many files to look at, without a system call for each look.

    An event of a ring is an entry in its index, which names an item, which has
    bits in `ready`. To take the bits takes an atomic exchange: what Python could
    do instead, load them and then store 0, would wipe out bits that the kernel
    set between the two. So the bits are left alone for good, and an entry only
    says "look at this file": whoever gets one reads, without blocking, until
    there is nothing left (EAGAIN) or the file has ended, and so learns what the
    bits would have said, and more. An entry without news costs one read.

    Nothing is lost that way. The kernel makes an entry when it finds the item's
    flag, `queued`, cleared; if it finds it set it does nothing. So say that it
    finds it set, although harvest() stores 0 there: that store was not visible
    yet. But it comes before the read that follows, which takes the lock of the
    pipe, socket or counter; that lock was taken, too, to put the news there, and
    before the kernel looked at the flag. If the reader had it first, its store
    was visible when it let go of it, so the kernel finds the flag cleared; if
    the other side had it first, the read finds the news. (In docs/ring.md this
    is barrier b, and the lock is in the place of the exchange.) It does not hold
    for a look that takes no such lock: poll() would not do.

    What else harvest() needs is the order of two stores: the slot, then the flag
    (barrier c). No Python statement promises that. It holds for CPython, which
    makes each of them one store of a machine word by itself when a memoryview has
    the format "I" (struct.pack_into("<I") stores single bytes), on x86, which
    does not let stores overtake each other. So elsewhere this class refuses to
    work: use libflowfd there.

    One thread at a time may call harvest(), and reads from each file as it comes.
    """

    def __init__(self, max_items):
        if (platform.machine() not in ("x86_64", "i686") or
                platform.python_implementation() != "CPython"):
            raise NotImplementedError("rings need CPython on x86")
        args = bytearray(_RING.pack(max_items, 0, 0, 0, 0, 0))
        self.fd = _device(CREATE_RING, args)
        _, _, size, items, index, slots = _RING.unpack(args)
        # This keeps a second descriptor of the ring.
        self.map = mmap.mmap(self.fd, size)
        self.bytes = memoryview(self.map)
        self.words = self.bytes.cast("I")
        if self.words[1] != RING_VERSION:
            raise NotImplementedError("a ring of another version")
        self.items = items // 4     # words of ready, queued, data, data
        self.index = index // 4
        self.mask = slots - 1
        self.head = 0
        self.files = {}

    HEAD = 64 // 4

    def fileno(self):
        return self.fd

    def _control(self, op, fd, events, data):
        # An array, unlike bytes, tells its address.
        entry = array.array("B", _ENTRY.pack(op, fd, events, 0, data))
        address, _ = entry.buffer_info()
        fcntl.ioctl(self.fd, RING_CONTROL, _CONTROL.pack(address, 1, 0))
        result = _ENTRY.unpack(entry)[3]
        if result < 0:
            raise OSError(-result, os.strerror(-result))
        return result

    def add(self, file, events):
        """Watches a file, or any object with a fileno(); it must not block."""
        fd = file if isinstance(file, int) else file.fileno()
        if os.get_blocking(fd):
            raise ValueError("a watched file must not block")
        self._control(ADD, fd, events | select.EPOLLET, fd)
        self.files[fd] = file

    def remove(self, file):
        fd = file if isinstance(file, int) else file.fileno()
        self._control(DEL, fd, 0, 0)
        del self.files[fd]

    def wait(self, seconds=None):
        """Whether there is something to harvest, now or within the time."""
        poll = select.poll()
        poll.register(self.fd, select.POLLIN)
        return bool(poll.poll(None if seconds is None else 1000 * seconds))

    def harvest(self):
        """Each file to look at: read from it until it would block."""
        words = self.words
        while True:
            slot = self.index + (self.head & self.mask)
            entry = words[slot]
            if not entry:
                return
            item = self.items + 4 * (entry - 1)
            words[slot] = 0
            self.head = (self.head + 1) & 0xffffffff
            words[self.HEAD] = self.head
            words[item + 1] = 0
            # Its number was given as data. It can have been removed since.
            file = self.files.get(words[item + 2])
            if file is not None:
                yield file

    def close(self):
        self.words.release()
        self.bytes.release()
        self.map.close()
        os.close(self.fd)


def read_all(fd, size=4096):
    """What there is to read until EAGAIN, and whether that was the end."""
    parts = []
    while True:
        try:
            part = os.read(fd, size)
        except BlockingIOError:
            return b"".join(parts), False
        if not part:
            return b"".join(parts), True
        parts.append(part)


def show_counter():
    # Opening the device gives a counter, too.
    fd = os.open(DEVICE, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(fd, SET_MAXIMUM, struct.pack("=Q", 10))
    written = 0
    try:
        while True:
            os.write(fd, struct.pack("=Q", 1))
            written += 1
    except BlockingIOError:
        print(f"opened: {written} fit below a maximum of 10")
    print(f"opened: read {struct.unpack('=Q', os.read(fd, 8))[0]}")
    os.close(fd)

    counter = Counter(initial=2, maximum=4, flags=NONBLOCK, burst=2, rate=1000)
    counter.write(1)
    try:
        counter.write(1)
    except BlockingIOError:
        print("created: full")
    counter.set_maximum(5)
    counter.write(1)
    print(f"created: read {counter.read()}, maximum {counter.maximum()}")
    counter.close()


def show_ring():
    ring = Ring(2)
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    counter = Counter(flags=NONBLOCK)
    ring.add(reader, select.EPOLLIN)
    ring.add(counter, select.EPOLLIN)
    print(f"ring: anything to harvest? {ring.wait(0)}")

    os.write(writer, b"hello, ")
    os.write(writer, b"world")
    counter.write(3)
    while ring.files:
        ring.wait()
        for file in ring.harvest():
            if file is counter:
                print(f"ring: counter, {counter.read()}")
                ring.remove(counter)
                os.close(writer)
            else:
                data, end = read_all(reader)
                print(f"ring: pipe, {data}{', end' if end else ''}")
                if end:
                    ring.remove(reader)
    os.close(reader)
    counter.close()
    ring.close()


def main():
    version, rate, features = query()
    print(f"ABI version {version}, rate up to {rate}, features {features:#x}")
    show_counter()
    show_ring()


if __name__ == "__main__":
    main()
