# SPDX-License-Identifier: MIT
"""Counters between threads, processes and event loops, in memory.

    with flowfd.Counter(maximum=65) as counter:
        counter.add()           # in memory; sleeps while there is no room
        count = counter.take()  # sleeps while there is no count

A counter is an eventfd(2) that is added to and taken from in memory, and makes system calls
only if somebody sleeps or polls; it can have a maximum, so that a fast producer waits. It
runs with the kernel module of flowfd, and without it. flowfd(7) says more.
"""

from __future__ import annotations

import asyncio as _asyncio
import collections as _collections
import contextlib as _contextlib
import os as _os
from types import TracebackType as _TracebackType
from typing import AsyncIterator as _AsyncIterator, TypeVar as _TypeVar

from . import _flowfd
from ._flowfd import (
    HAS_BUCKET,
    HAS_CALLS,
    HAS_FLOW,
    HAS_MAXIMUM,
    HAS_MEMORY,
    HAS_OVERFLOW,
    HAS_POLL,
    library_version,
)

__all__ = [
    "Counter",
    "HAS_BUCKET",
    "HAS_CALLS",
    "HAS_FLOW",
    "HAS_MAXIMUM",
    "HAS_MEMORY",
    "HAS_OVERFLOW",
    "HAS_POLL",
    "library_version",
]
__version__ = library_version

_Self = _TypeVar("_Self", bound="Counter")


class Counter(_flowfd.Counter):
    """A counter, which any number of threads may use at the same time.

    initial: the count that it begins with.
    maximum: what the count stays below: add() waits for room. None: there is no limit.
    semaphore: take() takes 1. Each call is a system call then.
    nonblock: no call waits; add() and take() raise BlockingIOError instead.
    bucket: (capacity, rate), a limit for wakeups, which only the module has; with
        optional_bucket it is left out where there is none.
    one_consumer: one thread at a time takes, and takes until try_take() returns None
        before the descriptor is polled. Without the module that saves two system calls
        for each take.
    no_poll: nobody polls the descriptor, so threads sleep more cheaply; take_async() polls.
    overflow: what happens to what does not fit: "wait"; "fail" with BlockingIOError;
        "saturate", so that what fits is added and the rest lost; "drop", all is lost.
    fallback: without the module, use an eventfd(2) and memory. False: raise OSError.

    Errors are OSError, with the subclass of their number, and a text that says what to do.
    """

    # Tasks that wait for a count, in their order, and the loop that polls for them.
    _waiting: _collections.deque[_asyncio.Future[None]] = _collections.deque()
    _loop: _asyncio.AbstractEventLoop | None = None

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: _TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return "<flowfd.Counter, closed>"
        return f"<flowfd.Counter fd={self.fileno()}>"

    def __del__(self) -> None:
        # As with files and sockets.
        if not self.closed:
            import warnings

            warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self)

    def close(self) -> None:
        """Close the counter; OSError (EBUSY) if a thread waits in it.

        Tasks that wait in take_async() get ValueError, also if another thread closes it.
        The descriptor is open then until their loop has let go of it."""
        # The loop forgets the descriptor before it is closed: epoll would go on to watch
        # what another process has open as well. _readable() sets _loop before it asks for
        # the descriptor, so after this there is no other loop.
        number = self._detach()
        if number is None:
            return
        loop, self._loop = self._loop, None
        if loop is None or loop.is_closed():
            _os.close(number)
        elif _asyncio._get_running_loop() is loop or not loop.is_running():
            self._let_go(loop, number)
        else:
            try:
                loop.call_soon_threadsafe(self._let_go, loop, number)
            except RuntimeError:
                # Closed meanwhile.
                _os.close(number)

    def _let_go(self, loop: _asyncio.AbstractEventLoop, number: int) -> None:
        """In the thread of the loop."""
        loop.remove_reader(number)
        _os.close(number)
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    async def take_async(self) -> int:
        """Take the count; let other tasks run until there is one.

        A task that is cancelled has taken nothing. With one_consumer one task waits."""
        while (count := self.try_take()) is None:
            await self._readable()
        return count

    async def __aiter__(self) -> _AsyncIterator[int]:
        while True:
            yield await self.take_async()

    async def _readable(self) -> None:
        loop = _asyncio.get_running_loop()
        if self._loop is None:
            self._waiting = _collections.deque()
            self._loop = loop
            try:
                loop.add_reader(self.fileno(), self._wake)
            except BaseException:
                self._loop = None
                raise
        elif self._loop is not loop:
            raise RuntimeError("a task of another event loop waits for this counter")
        elif self.one_consumer:
            raise RuntimeError("another task waits for this counter of one consumer")
        waiting, future = self._waiting, loop.create_future()
        waiting.append(future)
        try:
            await future
        finally:
            # The descriptor stays readable for those that are left.
            waiting.remove(future)
            if not waiting and self._loop is loop:
                # Closed meanwhile by another thread: close() does it.
                with _contextlib.suppress(ValueError):
                    loop.remove_reader(self.fileno())
                    self._loop = None

    def _wake(self) -> None:
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
                break
