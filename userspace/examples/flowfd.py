#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""flowfd from Python, with its standard library alone.

Counters need only open, read, write and ioctl. A ring is memory that the kernel writes
at the same time, and Python has no atomic operations: see Ring for what is possible
without them, and on which platforms.

This file is both a demonstration and a module to start from.
"""

import array
import collections
import ctypes
import errno
import fcntl
import mmap
import os
import platform
import select
import struct
import sys
import time

DEVICE = "/dev/flowfd"
# What Ring.harvest() needs, see there.
STORES_IN_ORDER = (platform.machine() in ("x86_64", "i686") and
                   platform.python_implementation() == "CPython")


def _request(direction, letter, number, size):
    """The kernel's _IOC(), as on x86, arm64 and most other architectures."""
    return direction << 30 | size << 16 | ord(letter) << 8 | number


_WRITE, _READ = 1, 2

# Structures of <linux/flowfd.h>; "=" is a layout without padding.
_QUERY = struct.Struct("=IIQ")
_COUNTER = struct.Struct("=QQIIII")
_RING = struct.Struct("=6I")
_ENTRY = struct.Struct("=IiIiQ")
_CONTROL = struct.Struct("=QII")
_QOS = struct.Struct("=II")
_FLOW = struct.Struct("=QQQQIIIIQQII")
_TRANSFER = struct.Struct("=QQII")

SET_MAXIMUM = _request(_WRITE, "J", 0, 8)
GET_MAXIMUM = _request(_READ, "J", 1, 8)
SET_QOS = _request(_WRITE, "E", 0, _QOS.size)
QUERY = _request(_READ, "J", 0x10, _QUERY.size)
CREATE_COUNTER = _request(_WRITE, "J", 0x11, _COUNTER.size)
CREATE_RING = _request(_READ | _WRITE, "J", 0x12, _RING.size)
RING_CONTROL = _request(_WRITE, "J", 0x13, _CONTROL.size)
SET_FLOW = _request(_WRITE, "J", 0x1a, _FLOW.size)
GET_FLOW = _request(_READ, "J", 0x1b, _FLOW.size)
COUNTER_WRITE = _request(_WRITE, "J", 0x1c, _TRANSFER.size)
COUNTER_READ = _request(_READ | _WRITE, "J", 0x1d, _TRANSFER.size)

SEMAPHORE, NONBLOCK = 1, 2
URGENT = 1 << 5
WAIT, FAIL, SATURATE, DROP = 0, 1, 2, 3     # what becomes of a write without room
ADD, DEL, MOD, DEL_DATA = 1, 2, 3, 5
RING_VERSION = 1

_NOT_LOADED = ("the flowfd module is not loaded: run 'modprobe flowfd' as root "
               "(package flowfd-dkms)")
_NOT_ALLOWED = (f"this user may not open {DEVICE}: root can change that with a "
                "udev rule")

# Descriptions of errors: opening the device, creating, watching a file.
_OPEN = {errno.ENOENT: _NOT_LOADED, errno.ENXIO: _NOT_LOADED,
         errno.EACCES: _NOT_ALLOWED, errno.EPERM: _NOT_ALLOWED}
_CREATE = {
    errno.EINVAL: "a count not below the maximum, a bucket on a semaphore or "
                  "without capacity, or max_items not between 1 and 1048576",
    errno.ENOMEM: "no memory, or the ring would exceed RLIMIT_MEMLOCK "
                  "(ulimit -l)",
}
_WATCH = {
    errno.EINVAL: "events may be EPOLLIN, EPOLLPRI, EPOLLOUT, EPOLLRDHUP and "
                  "EPOLLONESHOT, not EPOLLEXCLUSIVE or EPOLLWAKEUP",
    errno.EPERM: "this kind of file cannot be watched (regular file, "
                 "directory, signalfd, binder)",
    errno.ELOOP: "an epoll, a ring or an io_uring cannot be watched",
    errno.EOPNOTSUPP: "a file with more than two wait queues cannot be "
                      "watched: use epoll for it",
    errno.EEXIST: "the ring watches this file already: modify() changes that",
    errno.ENOENT: "the ring does not watch this file",
    errno.ENOSPC: "the ring watches max_items files, as many as it was "
                  "created for",
    errno.EBADF: "not a descriptor",
    errno.ENOMEM: "no memory",
}

_FLOWS = {
    errno.EINVAL: "the maximum is not above the count and both marks, the delay is more "
                  "than an hour, a rate without a burst, an unknown overflow, or a "
                  "semaphore with a read mark, delay or bucket",
    errno.ENOTTY: "the flowfd module is too old for policies",
}
_TRANSFERS = {
    errno.EINVAL: "a value that can never fit, or an unknown flag",
    errno.ENOTTY: "the flowfd module is too old for reads and writes with a timeout",
}


def _error(number, texts):
    """An OSError that states the cause."""
    return OSError(number, texts.get(number) or os.strerror(number))


def _device(request, args):
    """Makes a request to the device. Only with a bytearray does ioctl() return the
    result of the request, here a descriptor; with bytes it returns changed bytes."""
    try:
        device = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError as error:
        raise _error(error.errno, _OPEN) from None
    try:
        return fcntl.ioctl(device, request, args)
    except OSError as error:
        raise _error(error.errno, _CREATE) from None
    finally:
        os.close(device)


_ioctl = ctypes.CDLL(None, use_errno=True).ioctl
_ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong]     # and one more, of any type


def _interruptible(fd, request, args):
    """As fcntl.ioctl(), which since CPython 3.14 makes the request again after a signal:
    that would begin its timeout again."""
    buffer = ctypes.create_string_buffer(args, len(args))
    outer = ctypes.get_errno()
    try:
        if _ioctl(fd, request, buffer) < 0:
            raise OSError(ctypes.get_errno(), "")
    finally:
        # A signal's handler runs before get_errno(), and can have called this, too.
        ctypes.set_errno(outer)
    return buffer.raw


def query():
    """Returns ABI version, highest token rate per second, and feature bits."""
    return _QUERY.unpack(_device(QUERY, bytes(_QUERY.size)))


class _Closing:
    """Owns a descriptor, and is closed at the end of a with statement."""

    fd = -1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def fileno(self):
        return self.fd

    def close(self):
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


Flow = collections.namedtuple("Flow", (
    "maximum", "read_mark", "write_mark", "max_delay", "burst", "rate", "overflow",
    "flags", "count", "lost"), defaults=(0,) * 10)
Flow.__doc__ = """All settings of a counter, and what they led to.

@maximum: the count stays below it; @read_mark: readers are woken at this count, or
@max_delay seconds after the count left 0; @write_mark: it is writable when so much
fits; @burst and @rate: the bucket; @overflow: WAIT, FAIL, SATURATE or DROP. 0: as an
eventfd. Only read are @flags, @count, and @lost, the sum of what was lost."""


def _nanoseconds(seconds):
    return round(seconds * 1e9)


class Counter(_Closing):
    """An eventfd with a maximum and a token bucket.

    @maximum 0: none; @burst and @rate: wakeups at once, and per second; @rate 0: no
    bucket. Any number of threads may read and write it. A signal does not end a wait,
    unless its handler raises an exception."""

    def __init__(self, initial=0, maximum=0, flags=0, burst=0, rate=0):
        self.fd = _device(CREATE_COUNTER, bytearray(_COUNTER.pack(
            initial, maximum, flags, 0, burst, rate)))

    def set_maximum(self, maximum):
        fcntl.ioctl(self.fd, SET_MAXIMUM, struct.pack("=Q", maximum))

    def maximum(self):
        answer = fcntl.ioctl(self.fd, GET_MAXIMUM, bytes(8))
        return struct.unpack("=Q", answer)[0]

    def set_bucket(self, burst, rate):
        fcntl.ioctl(self.fd, SET_QOS, _QOS.pack(burst, rate))

    def set_flow(self, flow):
        """Replaces all settings at once: counter.set_flow(Flow(read_mark=64,
        max_delay=0.002)), or counter.flow()._replace(...) to change some."""
        settings = list(flow)
        settings[3] = _nanoseconds(flow.max_delay)
        try:
            fcntl.ioctl(self.fd, SET_FLOW, _FLOW.pack(*settings, 0, 0))
        except OSError as error:
            raise _error(error.errno, _FLOWS) from None

    def flow(self):
        """Returns the Flow of this moment."""
        try:
            answer = fcntl.ioctl(self.fd, GET_FLOW, bytes(_FLOW.size))
        except OSError as error:
            raise _error(error.errno, _FLOWS) from None
        flow = Flow(*_FLOW.unpack(answer)[:-2])
        return flow._replace(max_delay=flow.max_delay / 1e9)

    def write(self, value=1):
        """Adds to the count. Waits for room, or raises BlockingIOError if NONBLOCK."""
        os.write(self.fd, value.to_bytes(8, sys.byteorder))

    def read(self):
        """Takes the count. Waits until it is above 0, or raises BlockingIOError."""
        return int.from_bytes(os.read(self.fd, 8), sys.byteorder)

    def _transfer(self, request, value, seconds, flags):
        """Returns the value that was written or read. For the module a timeout of 0 is
        none. A signal ends its wait; this goes on if the handler raises nothing."""
        end = None if seconds is None else time.monotonic() + seconds
        left = seconds
        while True:
            if left is not None and left <= 0:
                flags |= NONBLOCK
            timeout = 0 if left is None else max(1, _nanoseconds(left))
            args = _TRANSFER.pack(value, timeout, flags, 0)
            try:
                return _TRANSFER.unpack(_interruptible(self.fd, request, args))[0]
            except InterruptedError:
                if end is not None:
                    left = max(1e-9, end - time.monotonic())
            except OSError as error:
                raise _error(error.errno, _TRANSFERS) from None

    def write_with(self, value=1, seconds=None, flags=0):
        """The same, but waits for @seconds at most, then raises TimeoutError. None: no
        limit; 0: does not wait, as with NONBLOCK (BlockingIOError). @flags: URGENT wakes
        readers at once, NONBLOCK does not wait."""
        self._transfer(COUNTER_WRITE, value, seconds, flags)

    def read_with(self, seconds=None, flags=0):
        """The same, but waits for @seconds at most, then raises TimeoutError. None: no
        limit; 0: does not wait, as with NONBLOCK (BlockingIOError): it takes what is
        there, also below the read mark."""
        return self._transfer(COUNTER_READ, 0, seconds, flags)


class Ring(_Closing):
    """Tells which of many files to read, without a system call to learn of each.

    An event of a ring is an entry in its index, which names an item, which has bits in
    `ready`. Taking the bits needs an atomic exchange: a load and then a store of 0,
    which Python could do, would lose bits that the kernel sets between the two. So the
    bits are never taken, and an entry only says "read this file". The consumer must
    then read, without blocking, until nothing is left (EAGAIN) or the file has ended,
    and so learns everything that the bits would say. An entry without new data costs
    one read.

    Nothing is lost that way. The kernel makes an entry if it finds the item's flag,
    `queued`, cleared, and does nothing if it finds the flag set. Assume that it finds
    the flag set although harvest() stores 0 there, because that store is not visible
    yet. The store comes before the read that follows, which takes the lock of the pipe,
    socket or counter; the writer took the same lock to add the data, before the kernel
    tested the flag. If the reader had the lock first, its store was visible when it
    released the lock, so the kernel finds the flag cleared; if the writer had it first,
    the read finds the data. (This is barrier b of docs/ring.md, with the lock in the
    place of the exchange.) It does not hold for a call that takes no such lock: poll()
    would not do.

    harvest() also needs the order of two stores: the slot, then the flag (barrier c).
    No Python statement guarantees that. It holds for CPython on x86: with a memoryview
    of format "I", CPython makes each of them a single store of a machine word
    (struct.pack_into("<I") stores single bytes), and x86 does not reorder stores. On
    other platforms harvest() raises NotImplementedError: use libflowfd there.

    Only one thread at a time may call harvest() and wait(), and it must read from each
    file as it comes. Any thread may call the other methods at any time.

    Eventfds, timers, FIFOs, terminals and most other files are pinned: the watch keeps
    them open until remove(), even if they are closed.
    """

    def __init__(self, max_items):
        args = bytearray(_RING.pack(max_items, 0, 0, 0, 0, 0))
        self.fd = _device(CREATE_RING, args)
        _, _, size, items, index, slots = _RING.unpack(args)
        try:
            # mmap keeps a second descriptor of the ring.
            self.map = mmap.mmap(self.fd, size)
        except (OSError, ValueError):
            super().close()
            raise
        self.bytes = memoryview(self.map)
        self.words = self.bytes.cast("I")
        if self.words[1] != RING_VERSION:
            self.close()
            raise NotImplementedError("a ring of another version")
        self.items = items // 4     # words of ready, queued, data, data
        self.index = index // 4
        self.mask = slots - 1
        self.head = 0
        self.last_number = 0
        self.numbers = {}           # by file: the data of its watch
        self.files = {}             # by data
        self.watched = {}           # by descriptor: the data of its latest watch

    # Positions of words: of the consumer's count in the ring, of data's low half in an item.
    HEAD = 64 // 4
    DATA = 2 if sys.byteorder == "little" else 3

    def _control(self, op, fd, events, data):
        # An array, unlike bytes, has a method for its address.
        entry = array.array("B", _ENTRY.pack(op, fd, events, 0, data))
        address, _ = entry.buffer_info()
        fcntl.ioctl(self.fd, RING_CONTROL, _CONTROL.pack(address, 1, 0))
        result = _ENTRY.unpack(entry)[3]
        if result < 0:
            raise _error(-result, _WATCH)
        return result

    def _remove_number(self, number):
        """Ends a watch by its data, as its file may be closed. The kernel examines all
        watches for that."""
        del self.files[number]
        try:
            self._control(DEL_DATA, -1, 0, number)
        except FileNotFoundError:
            pass

    def add(self, file, events):
        """Watches a file, or an object with a fileno(), which must be non-blocking.

        @events: EPOLL* bits of select. With EPOLLONESHOT it is harvested only once
        until modify()."""
        fd = _number(file)
        if os.get_blocking(fd):
            raise ValueError("a watched file must not block")
        number = self.last_number = self.last_number % 0xffffffff + 1
        self.files[number] = file
        try:
            self._control(ADD, fd, events | select.EPOLLET, number)
        except OSError:
            del self.files[number]
            raise
        if file in self.numbers:    # it was closed, and its number used again
            self._remove_number(self.numbers[file])
        self.numbers[file] = number
        self.watched[fd] = number

    def modify(self, file, events):
        """Changes events, and rearms a one-shot watch.

        @file: the same object as in add(), not another one of the same descriptor."""
        fd = _number(file)
        number = self.numbers.get(file)
        if number is None or self.watched.get(fd) != number:
            raise _error(errno.ENOENT, _WATCH)
        self._control(MOD, fd, events | select.EPOLLET, number)

    def remove(self, file):
        """Ends the watch of a file, even if the file was closed already."""
        if file not in self.numbers:
            raise _error(errno.ENOENT, _WATCH)
        number = self.numbers.pop(file)
        try:
            fd = _number(file)
            # Another file can have the descriptor by now.
            if self.watched.get(fd) != number:
                raise _error(errno.ENOENT, _WATCH)
            del self.watched[fd]
            self._control(DEL, fd, 0, 0)
        except (OSError, ValueError):
            self._remove_number(number)
        else:
            del self.files[number]

    def wait(self, seconds=None):
        """Waits at most @seconds; returns whether there is something to harvest."""
        poll = select.poll()
        poll.register(self.fd, select.POLLIN)
        return bool(poll.poll(None if seconds is None else 1000 * seconds))

    def harvest(self):
        """Yields each file to read: read from it until it would block."""
        if not STORES_IN_ORDER:
            raise NotImplementedError("to harvest a ring needs CPython on x86")
        return self._harvest()

    def _harvest(self):
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
            # The item's data is the number from add(). The file may be removed.
            file = self.files.get(words[item + self.DATA])
            if file is not None:
                yield file

    def close(self):
        if self.fd >= 0:
            self.words.release()
            self.bytes.release()
            self.map.close()
        super().close()


def _number(file):
    return file if isinstance(file, int) else file.fileno()


def read_all(fd, size=4096):
    """Reads until EAGAIN; returns the data, and whether the file has ended."""
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
    # Opening the device also gives a counter.
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

    with Counter(initial=2, maximum=4, flags=NONBLOCK, burst=2,
                 rate=1000) as counter:
        counter.write(1)
        try:
            counter.write(1)
        except BlockingIOError:
            print("created: full")
        counter.set_maximum(5)
        counter.write(1)
        print(f"created: read {counter.read()}, maximum {counter.maximum()}")


def show_policies():
    with Counter() as counter:
        counter.set_flow(Flow(maximum=100, read_mark=64, max_delay=0.05,
                              overflow=DROP))
        counter.write(10)
        try:
            counter.read_with(seconds=0.001)
        except TimeoutError:
            print("policies: 10 are too few")
        print(f"policies: {counter.read()} after the delay")
        counter.write_with(1, flags=URGENT)
        print(f"policies: {counter.read()} that is urgent")
        counter.write(60)
        counter.write(50)
        flow = counter.flow()
        print(f"policies: {flow.count} there, {flow.lost} lost")
        counter.read_with(seconds=0)
        try:
            counter.read_with(seconds=0)
        except BlockingIOError:
            print("policies: nothing left, without waiting")
        try:
            counter.set_flow(flow._replace(read_mark=100))
        except OSError as error:
            print("policies:", error.strerror.split(",")[0])


def show_events(ring, counter, reader, writer):
    """An event loop: reads each file until nothing is left."""
    while ring.files:
        ring.wait()
        for file in ring.harvest():
            if file is counter:
                try:
                    print(f"ring: counter, {counter.read()}")
                except BlockingIOError:
                    continue        # an event without anything to read
                ring.remove(counter)
                os.close(writer)
            else:
                data, end = read_all(reader)
                print(f"ring: pipe, {data}{', end' if end else ''}")
                if end:
                    ring.remove(reader)


def show_one_shot(ring, counter):
    ring.add(counter, select.EPOLLIN | select.EPOLLONESHOT)
    counter.write(1)
    print(f"one shot: {len(list(ring.harvest()))} harvested")
    counter.write(1)
    print(f"one shot: {len(list(ring.harvest()))} more")
    ring.modify(counter, select.EPOLLIN | select.EPOLLONESHOT)
    print(f"one shot: {len(list(ring.harvest()))} when armed again")
    ring.remove(counter)


def show_ring():
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    with Ring(2) as ring, Counter(flags=NONBLOCK) as counter:
        ring.add(reader, select.EPOLLIN)
        ring.add(counter, select.EPOLLIN)
        print(f"ring: anything to harvest? {ring.wait(0)}")
        if STORES_IN_ORDER:
            os.write(writer, b"hello, ")
            os.write(writer, b"world")
            counter.write(3)
            show_events(ring, counter, reader, writer)
            show_one_shot(ring, counter)
        else:
            print("ring: not to be harvested on this platform")
            os.close(writer)
    os.close(reader)


def main():
    version, rate, features = query()
    print(f"ABI version {version}, rate up to {rate}, features {features:#x}")
    show_counter()
    show_policies()
    show_ring()


if __name__ == "__main__":
    try:
        main()
    except OSError as problem:
        sys.exit(f"flowfd.py: {problem.strerror}")
