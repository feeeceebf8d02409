#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Threads wake an asyncio loop through a counter in memory.

Adding and taking need atomic operations, which Python does not have: libflowfd does them.
A thread that adds while the loop is busy makes no system call. The loop sleeps until the
counter's descriptor is readable. Runs without the module, too.
"""

import asyncio
import ctypes
import errno
import threading

_library = ctypes.CDLL("libflowfd.so.1")
_library.flowfd_strerror.restype = ctypes.c_char_p

FALLBACK = 1 << 0
THREADS, ADDS = 4, 10000


class _Settings(ctypes.Structure):
    """struct flowfd_create_counter"""
    _fields_ = [("initial", ctypes.c_uint64), ("maximum", ctypes.c_uint64),
                ("flags", ctypes.c_uint32), ("reserved", ctypes.c_uint32),
                ("token_capacity", ctypes.c_uint32), ("token_rate", ctypes.c_uint32)]


class _Counter(ctypes.Structure):
    """struct flowfd_counter: all but the descriptor is the library's."""
    _fields_ = [("fd", ctypes.c_int), ("private", ctypes.c_uint64 * 9)]


class Counter:
    """A counter that is mapped into this process."""

    def __init__(self, **settings):
        self._counter = _Counter()
        settings = _Settings(**settings)
        self._call("open", ctypes.byref(settings),
                   ctypes.c_size_t(ctypes.sizeof(settings)), FALLBACK,
                   prefix="flowfd_counter_")

    def _call(self, name, *arguments, prefix="flowfd_"):
        error = -_library[prefix + name](ctypes.byref(self._counter), *arguments)
        if error > 0:
            raise OSError(error, _library.flowfd_strerror(-error).decode())

    def fileno(self):
        """Its descriptor, for select, asyncio and others."""
        return self._counter.fd

    def add(self, value=1):
        """Waits while there is no room. Other threads run meanwhile."""
        self._call("add", ctypes.c_uint64(value))

    def take(self):
        """What was added since the last time; 0 if nothing was."""
        value = ctypes.c_uint64()
        try:
            self._call("try_take", ctypes.byref(value))
        except OSError as error:
            if error.errno != errno.EAGAIN:
                raise
        return value.value

    def close(self):
        """No thread may use it any more."""
        _library.flowfd_counter_close(ctypes.byref(self._counter))


async def main():
    """Counts what the threads add."""
    loop = asyncio.get_running_loop()
    counter = Counter(maximum=1000)
    readable = asyncio.Event()
    loop.add_reader(counter.fileno(), readable.set)

    def produce():
        for _ in range(ADDS):
            counter.add()

    threads = [threading.Thread(target=produce) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    total = wakeups = 0
    while total < THREADS * ADDS:
        await readable.wait()
        wakeups += 1
        readable.clear()
        total += counter.take()
    for thread in threads:
        thread.join()
    loop.remove_reader(counter.fileno())
    counter.close()
    print(f"{total} adds, {'fewer' if wakeups < total else 'as many'} wakeups")


if __name__ == "__main__":
    asyncio.run(main())
