# SPDX-License-Identifier: GPL-2.0-only
"""The event loop: what it does otherwise than asyncio's. tests/control.py has the rest."""

import asyncio
import errno
import gc
import os
import resource
import selectors
import signal
import threading
import time

import pytest

import flowfd.asyncio

BACKEND = os.environ.get("FLOWFD_BACKEND", "fallback")


def test_run():
    async def main():
        assert type(asyncio.get_running_loop()) is flowfd.asyncio.EventLoop
        await asyncio.sleep(0.01)
        return 5

    assert flowfd.asyncio.run(main()) == 5


def test_own_selector():
    loop = flowfd.asyncio.EventLoop(selectors.PollSelector())
    loop.run_until_complete(loop.run_in_executor(None, time.sleep, 0.01))
    loop.close()


def test_handles_are_as_asyncios():
    """From Python 3.14 on those of another thread are of another class."""
    kinds = []
    for new_loop in (asyncio.SelectorEventLoop, flowfd.asyncio.EventLoop):
        loop = new_loop()
        kinds.append(type(loop.call_soon_threadsafe(print)))
        loop.close()
    assert kinds[0] is kinds[1]


def test_descriptors_are_closed():
    before = os.listdir("/proc/self/fd")
    for _ in range(10):
        flowfd.asyncio.new_event_loop().close()
    assert len(os.listdir("/proc/self/fd")) == len(before)


@pytest.mark.parametrize("left", range(1, 6))
def test_without_descriptors(left):
    """A loop that cannot be made leaves no descriptor and no warning."""
    gc.collect()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = os.listdir("/proc/self/fd")
    top = open("/dev/null")
    # The lowest numbers are filled, so that the limit is exact.
    fill = [os.dup(top.fileno()) for _ in range(64)]
    for fd in fill[-left:]:
        os.close(fd)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (fill[-1] + 1, limits[1]))
        try:
            flowfd.asyncio.new_event_loop().close()
        except OSError as error:
            assert error.errno == errno.EMFILE
        else:
            assert left >= 4
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for fd in fill[:-left]:
            os.close(fd)
        top.close()
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == len(before)


@pytest.mark.parametrize("pause", [0, 0.001])
def test_callbacks_of_threads(pause):
    """Each is called, in its order, whether or not the loop sleeps before it."""
    calls, threads = 5000 if not pause else 200, 3

    async def main():
        loop = asyncio.get_running_loop()
        seen = [[] for _ in range(threads)]
        done = asyncio.Event()

        def callback(thread, number):
            seen[thread].append(number)
            if sum(map(len, seen)) == calls * threads:
                done.set()

        def produce(thread):
            for number in range(calls):
                loop.call_soon_threadsafe(callback, thread, number)
                if pause:
                    time.sleep(pause)

        workers = [threading.Thread(target=produce, args=[n]) for n in range(threads)]
        for worker in workers:
            worker.start()
        await asyncio.wait_for(done.wait(), 60)
        for worker in workers:
            worker.join()
        assert seen == [list(range(calls))] * threads

    flowfd.asyncio.run(main())


def test_wakes_from_sleep_each_time():
    """A loop that sleeps without a timeout is woken: no wakeup is lost in 2,000."""
    loop = flowfd.asyncio.new_event_loop()
    go, rounds = threading.Semaphore(0), 2000

    def produce():
        for _ in range(rounds):
            go.acquire()
            loop.call_soon_threadsafe(futures.pop().set_result, None)

    futures = []
    thread = threading.Thread(target=produce)
    thread.start()

    async def main():
        for _ in range(rounds):
            future = loop.create_future()
            futures.append(future)
            go.release()
            await asyncio.wait_for(future, 60)

    loop.run_until_complete(main())
    thread.join()
    loop.close()


def test_signals():
    seen = []

    async def main():
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGUSR1, seen.append, 1)
        done = asyncio.Event()
        loop.add_signal_handler(signal.SIGUSR2, done.set)
        os.kill(os.getpid(), signal.SIGUSR1)
        threading.Timer(0.02, os.kill, [os.getpid(), signal.SIGUSR2]).start()
        await asyncio.wait_for(done.wait(), 60)

    flowfd.asyncio.run(main())
    assert seen == [1]


def test_call_after_close():
    loop = flowfd.asyncio.new_event_loop()
    loop.close()
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_soon_threadsafe(print)
    # One that had looked before it was closed.
    loop._write_to_self()


def test_callback_that_the_loop_is_not_told_of():
    """It is queued, as what an add with EPERM adds is added."""
    loop = flowfd.asyncio.new_event_loop()
    calls = []
    assert loop._counter.try_take() is None
    # Its number is another file's.
    with open("/dev/null") as other:
        os.dup2(other.fileno(), loop._counter.fileno(), inheritable=False)
    with pytest.raises(PermissionError) as caught:
        loop.call_soon_threadsafe(calls.append, 1)
    assert caught.value.errno == errno.EPERM
    loop.call_soon(loop.stop)
    loop.run_forever()
    assert calls == [1]
    loop.close()


@pytest.mark.skipif(BACKEND == "module", reason="there is no eventfd to look at")
def test_awake_loop_is_not_rung():
    """While the loop is awake, a thread's callbacks leave the eventfd as it is."""
    loop = flowfd.asyncio.new_event_loop()

    def count():
        with open(f"/proc/self/fdinfo/{loop._counter.fileno()}") as info:
            return [int(line.split()[1], 16) for line in info if "eventfd-count" in line]

    async def main():
        # What wakes the loop rings, and is taken before its callback is called.
        future = loop.create_future()
        threading.Timer(0.02, loop.call_soon_threadsafe, [future.set_result, 1]).start()
        await future
        for _ in range(100):
            loop.call_soon_threadsafe(int)
        assert count() == [0]
        await asyncio.sleep(0)
        # Not armed: the loop has not slept since.
        loop.call_soon_threadsafe(int)
        assert count() == [0]

    loop.run_until_complete(main())
    # Armed by the sleep, so this one rings.
    loop.call_later(0.01, loop.stop)
    loop.run_forever()
    loop._counter.try_take()
    loop._counter.add()
    assert count() == [1]
    loop.close()
