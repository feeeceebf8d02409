# SPDX-License-Identifier: MIT
"""An asyncio event loop whose call_soon_threadsafe() is an add in memory.

    flowfd.asyncio.run(main())

or, with asyncio's own functions, asyncio.Runner(loop_factory=flowfd.asyncio.EventLoop).

asyncio's loop is woken through a socket: a system call for each call_soon_threadsafe(), and
more to read what was sent. Here it is a counter: while the loop is awake, other threads tell
it of a callback without a system call. Its other parts are asyncio's. Signals still come
through the socket, because the interpreter itself writes to it.

A thread that calls call_soon_threadsafe() no longer releases the GIL each time. A producer
that never waits keeps it for as long as sys.getswitchinterval() says, 5 ms, before the loop
runs: with asyncio's loop that is shorter, by accident, and costs the producer its time.
"""

from __future__ import annotations

import asyncio as _asyncio
import contextvars as _contextvars
import selectors as _selectors
from typing import (
    Any as _Any,
    Callable as _Callable,
    Coroutine as _Coroutine,
    TypeVar as _TypeVar,
)

from . import Counter as _Counter

__all__ = ["EventLoop", "new_event_loop", "run"]

_T = _TypeVar("_T")

# As asyncio's call_soon_threadsafe() returns it: from Python 3.14 on a thread may cancel it
# while the loop runs it.
_Handle: type[_asyncio.Handle] = getattr(
    _asyncio.events, "_ThreadSafeHandle", _asyncio.Handle
)


class _Selector:
    """A selector that arms the counter before it sleeps.

    A take that finds nothing has the next add make the descriptor readable. While it has
    not, adds make no system call. One that finds something finds callbacks of the loop, so
    it must not sleep."""

    def __init__(self, selector: _Any, counter: _Counter) -> None:
        self._selector = selector
        self._select = selector.select
        self._try_take = counter.try_take

    def __getattr__(self, name: str) -> _Any:
        return getattr(self._selector, name)

    def select(self, timeout: float | None = None) -> _Any:
        if (timeout is None or timeout > 0) and self._try_take() is not None:
            timeout = 0
        return self._select(timeout)


class EventLoop(_asyncio.SelectorEventLoop):
    """asyncio.SelectorEventLoop, with a counter to wake it from other threads."""

    _counter: _Counter
    _selector: _Any

    def __init__(self, selector: _selectors.BaseSelector | None = None) -> None:
        super().__init__(selector)

    def _make_self_pipe(self) -> None:
        try:
            # First, so that there is no pair of sockets without it.
            self._counter = _Counter(one_consumer=True)
            try:
                super()._make_self_pipe()  # type: ignore[misc]
            except BaseException:
                self._counter.close()
                raise
        except BaseException:
            # There is nothing for __del__() to close.
            self._closed = True
            raise
        self._add = self._counter.add
        self._add_reader(self._counter.fileno(), self._counter.try_take)  # type: ignore
        self._selector = _Selector(self._selector, self._counter)

    def _close_self_pipe(self) -> None:
        self._remove_reader(self._counter.fileno())  # type: ignore[attr-defined]
        self._counter.close()
        super()._close_self_pipe()  # type: ignore[misc]

    def call_soon_threadsafe(  # type: ignore[override]
        self,
        callback: _Callable[..., object],
        *args: _Any,
        context: _contextvars.Context | None = None,
    ) -> _asyncio.Handle:
        """As asyncio's. OSError (EPERM) says that the callback is queued, but the loop could
        not be woken: it is called when something else wakes that."""
        if self._debug or self._closed:  # type: ignore[attr-defined]
            handle = super().call_soon_threadsafe(callback, *args, context=context)
            # It ends with the caller, not with this function.
            if handle._source_traceback:  # type: ignore[attr-defined]
                del handle._source_traceback[-1]  # type: ignore[attr-defined]
            return handle
        # As asyncio does, in fewer calls.
        handle = _Handle(callback, args, self, context)
        self._ready.append(handle)  # type: ignore[attr-defined]
        try:
            self._add()
        except ValueError:
            # Closed meanwhile, which is no error of the caller's.
            pass
        return handle

    def _write_to_self(self) -> None:
        try:
            self._add()
        except ValueError:
            pass


def new_event_loop() -> EventLoop:
    """A new loop, as asyncio.new_event_loop() has it."""
    return EventLoop()


def run(main: _Coroutine[_Any, _Any, _T], *, debug: bool | None = None) -> _T:
    """Run a coroutine, as asyncio.run() does."""
    with _asyncio.Runner(debug=debug, loop_factory=EventLoop) as runner:
        return runner.run(main)
