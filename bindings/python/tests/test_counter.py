# SPDX-License-Identifier: GPL-2.0-only
"""What Python adds to a counter: with, errors as exceptions, signals, threads, tasks."""

import asyncio
import errno
import gc
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

import flowfd
import flowfd.asyncio

BACKEND = os.environ.get("FLOWFD_BACKEND", "fallback")


def is_open(fd):
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def test_with_closes():
    with flowfd.Counter() as counter:
        fd = counter.fileno()
        assert is_open(fd)
        assert not counter.closed
        assert repr(counter) == f"<flowfd.Counter fd={fd}>"
    assert counter.closed
    assert not is_open(fd)
    counter.close()
    assert "closed" in repr(counter)
    for call in (counter.add, counter.try_add, counter.take, counter.try_take,
                 counter.fileno):
        with pytest.raises(ValueError, match="closed"):
            call()
    for name in ("mapped", "features"):
        with pytest.raises(ValueError, match="closed"):
            getattr(counter, name)


def test_garbage_is_closed_with_a_warning():
    counter = flowfd.Counter()
    fd = counter.fileno()
    with pytest.warns(ResourceWarning, match="unclosed"):
        del counter
        gc.collect()
    assert not is_open(fd)


def test_arguments():
    with flowfd.Counter() as counter:
        for wrong in (-1, 2**64):
            with pytest.raises(OverflowError):
                counter.add(wrong)
            with pytest.raises(OverflowError):
                flowfd.Counter(initial=wrong)
            with pytest.raises(OverflowError):
                flowfd.Counter(maximum=wrong)
        for wrong in ("1", 1.0, None):
            with pytest.raises(TypeError):
                counter.add(wrong)
        for wrong in (-1, float("nan")):
            with pytest.raises(ValueError, match="timeout"):
                counter.take(timeout=wrong)
        with pytest.raises(TypeError):
            counter.take(timeout="1")
        with pytest.raises(TypeError):
            counter.take(1)
        with pytest.raises(TypeError):
            counter.add(1, 2)
        with pytest.raises(TypeError, match="wait"):
            counter.add(1, wait=1)
        with pytest.raises(TypeError, match="timeout"):
            counter.try_add(1, timeout=1)
        with pytest.raises(ValueError, match="is open"):
            counter.__init__()
        assert counter.try_take() is None
        counter.add(2, timeout=1)
        counter.add(timeout=None)
        assert counter.take(timeout=float("inf")) == 3
    for wrong in (5, (1,), (1, 2, 3), ("a", 1)):
        with pytest.raises(TypeError):
            flowfd.Counter(bucket=wrong)
    for wrong in (-1, 2**32, 2**64 + 1):
        with pytest.raises(OverflowError, match="capacity of a bucket must be from 0 to"):
            flowfd.Counter(bucket=(wrong, 1), optional_bucket=True)
        with pytest.raises(OverflowError, match="rate of a bucket must be from 0 to"):
            flowfd.Counter(bucket=(1, wrong), optional_bucket=True)
    flowfd.Counter(bucket=(2**32 - 1, 10**9), optional_bucket=True).close()
    with pytest.raises(ValueError, match="many consumers"):
        flowfd.Counter(semaphore=True, one_consumer=True)


def test_what_was_added_though_nobody_was_told():
    """The errno tells it from what was not added."""
    for name in ("add", "try_add"):
        with flowfd.Counter() as counter, select.epoll() as epoll, open("/dev/null") as other:
            # There is somebody to tell, and the descriptor is another file.
            assert counter.try_take() is None
            epoll.register(counter, select.EPOLLIN)
            os.dup2(other.fileno(), counter.fileno(), inheritable=False)
            with pytest.raises(PermissionError) as caught:
                getattr(counter, name)(2)
            assert caught.value.errno == errno.EPERM
            assert counter.try_take() == 2


def test_arguments_that_open_and_close_it():
    """What they do is seen: the counter is looked at after them."""

    class Closes:
        def __float__(self):
            counter.close()
            return 1.0

    for name in ("add", "take"):
        with flowfd.Counter() as counter:
            with pytest.raises(ValueError, match="closed"):
                getattr(counter, name)(timeout=Closes())

    class Opens:
        def __index__(self):
            counter.__init__()
            return 1

    counter = flowfd.Counter.__new__(flowfd.Counter)
    with pytest.raises(ValueError, match="is open"):
        counter.__init__(bucket=(Opens(), 1), optional_bucket=True)
    fd = counter.fileno()
    counter.close()
    assert not is_open(fd)


def test_a_signal_closes_it():
    def handler(number, frame):
        counter.close()

    old = signal.signal(signal.SIGALRM, handler)
    try:
        for full in (False, True):
            with flowfd.Counter(maximum=2, initial=int(full)) as counter:
                signal.setitimer(signal.ITIMER_REAL, 0.05)
                with pytest.raises(ValueError, match="closed"):
                    counter.add() if full else counter.take()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def test_errors_have_their_subclass():
    with flowfd.Counter(nonblock=True) as counter:
        with pytest.raises(BlockingIOError):
            counter.take()
    with flowfd.Counter() as counter:
        with pytest.raises(TimeoutError) as caught:
            counter.take(timeout=0)
        assert caught.value.errno == errno.ETIMEDOUT
    with pytest.raises(OSError) as caught:
        flowfd.Counter.from_descriptors([0])
    assert caught.value.errno == errno.ENOTTY


@pytest.mark.skipif(BACKEND == "module", reason="the module has buckets")
def test_what_only_the_module_has():
    with pytest.raises(OSError) as caught:
        flowfd.Counter(bucket=(1, 10))
    assert caught.value.errno == errno.EOPNOTSUPP
    flowfd.Counter(bucket=(1, 10), optional_bucket=True).close()
    with pytest.raises(OSError) as caught:
        flowfd.Counter(fallback=False).close()
    if not os.path.exists("/dev/flowfd"):
        assert caught.value.errno == errno.ENODEV
        assert "modprobe" in str(caught.value)


CHILD = """
import array, os, socket, sys
import flowfd
link = socket.socket(fileno=int(sys.argv[1]))
_, [(_, _, data)], _, _ = link.recvmsg(1, socket.CMSG_LEN(8), socket.MSG_CMSG_CLOEXEC)
fds = array.array("i", data)
assert not any(map(os.get_inheritable, fds))
with flowfd.Counter.from_descriptors(fds) as counter:
    assert counter.take(timeout=60) == 6
    counter.add(5)
"""


def test_another_program():
    """The descriptors go to a program that has nothing else in common."""
    with flowfd.Counter() as to_child:
        here, there = socket.socketpair()
        with here, there:
            child = subprocess.Popen([sys.executable, "-c", CHILD, str(there.fileno())],
                                     pass_fds=[there.fileno()])
            socket.send_fds(here, [b"x"], to_child.descriptors())
            # It may sleep by then.
            time.sleep(0.2)
            to_child.add(6)
            assert child.wait(60) == 0
        assert to_child.try_take() == 5


def test_wrong_descriptors():
    with flowfd.Counter() as counter, open("/dev/null") as other:
        for wrong in ([], [0, 1, 2], [other.fileno()],
                      [other.fileno(), counter.fileno()]):
            with pytest.raises(OSError) as caught:
                flowfd.Counter.from_descriptors(wrong)
            assert caught.value.errno in (errno.EINVAL, errno.ENOTTY)
        assert not other.closed
        os.fstat(other.fileno())
    for wrong in (5, ["a"], [-1]):
        with pytest.raises((TypeError, ValueError)):
            flowfd.Counter.from_descriptors(wrong)
    with pytest.raises(ValueError, match="unknown overflow 'x'"):
        flowfd.Counter(overflow="x")
    with pytest.raises(ValueError, match="closed"):
        counter.descriptors()


def test_subclasses_whose_new_returns_something_else():
    """A counter of descriptors is a new object, of the class that was asked."""

    class Single(flowfd.Counter):
        one = None

        def __new__(cls, *arguments, **names):
            if cls.one is None:
                cls.one = super().__new__(cls)
            return cls.one

    class Other(flowfd.Counter):
        def __new__(cls, *arguments, **names):
            return object()

    with flowfd.Counter() as made:
        for cls in (Single, Other, flowfd.Counter):
            one = Single() if cls is Single else None
            fds = tuple(map(os.dup, made.descriptors()))
            with cls.from_descriptors(fds) as counter:
                assert type(counter) is cls and counter is not one
                assert counter.fileno() == fds[0]
                counter.add(3)
                assert made.take() == 3
            assert not any(map(is_open, fds))
            if one:
                one.add(2)
                assert one.take() == 2
                one.close()


OPENER = """
import sys
import flowfd
with flowfd.Counter.open_shared(bytes.fromhex(sys.argv[1])) as counter:
    assert counter.take(timeout=60) == 6
    counter.add(5)
"""


@pytest.mark.skipif(BACKEND == "fallback", reason="only the module has keys")
def test_a_key():
    with flowfd.Counter() as counter:
        key = counter.share()
        assert len(key) == 24 and counter.share() == key
        child = subprocess.Popen([sys.executable, "-c", OPENER, key.hex()])
        counter.add(6)
        assert child.wait(60) == 0
        assert counter.try_take() == 5
        with pytest.raises(FileNotFoundError):
            flowfd.Counter.open_shared(key[:-1] + bytes([key[-1] ^ 1]))
    with pytest.raises(FileNotFoundError):
        flowfd.Counter.open_shared(key)
    with pytest.raises(ValueError, match="closed"):
        counter.share()


@pytest.mark.skipif(BACKEND == "module", reason="the module has keys")
def test_no_keys():
    with flowfd.Counter() as counter, pytest.raises(OSError) as caught:
        counter.share()
    assert caught.value.errno == errno.ENOTTY
    assert "flowfd module" in str(caught.value)
    if not os.path.exists("/dev/flowfd"):
        with pytest.raises(OSError) as caught:
            flowfd.Counter.open_shared(bytes(24))
        assert caught.value.errno == errno.ENODEV
        assert "modprobe" in str(caught.value)


def test_no_key():
    for wrong in (b"", bytes(23), bytes(25)):
        with pytest.raises(ValueError, match="24 bytes"):
            flowfd.Counter.open_shared(wrong)
    with pytest.raises(TypeError):
        flowfd.Counter.open_shared("x" * 24)


def test_a_signal_runs_while_it_waits():
    seen = []

    def handler(number, frame):
        seen.append(number)
        if len(seen) == 2:
            raise KeyError("from the handler")

    old = signal.signal(signal.SIGALRM, handler)
    try:
        with flowfd.Counter(maximum=2) as counter:
            signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
            with pytest.raises(KeyError):
                counter.take()
            assert seen == [signal.SIGALRM] * 2
            # It goes on to wait, for what is left of the time.
            begin = time.monotonic()
            with pytest.raises(TimeoutError):
                counter.take(timeout=0.2)
            assert 0.2 <= time.monotonic() - begin < 30
            assert len(seen) > 3
            counter.add()
            del seen[:]
            with pytest.raises(KeyError):
                counter.add()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def test_close_while_a_thread_waits():
    with flowfd.Counter() as counter:
        thread = threading.Thread(target=counter.take)
        thread.start()
        time.sleep(0.1)
        with pytest.raises(OSError) as caught:
            counter.close()
        assert caught.value.errno == errno.EBUSY
        counter.add()
        thread.join()


def test_threads_run_while_one_waits():
    items, slots, taken = 20000, [None] * 129, 0
    with flowfd.Counter(maximum=65) as counter:

        def produce():
            for item in range(items):
                slots[item % len(slots)] = item
                counter.add()

        producer = threading.Thread(target=produce)
        producer.start()
        while taken < items:
            for _ in range(counter.take(timeout=60)):
                assert slots[taken % len(slots)] == taken
                taken += 1
        producer.join()
        assert counter.try_take() is None


def test_children_share_it():
    with flowfd.Counter() as counter:
        child = os.fork()
        if not child:
            counter.add(7)
            os._exit(0)
        assert counter.take(timeout=60) == 7
        os.waitpid(child, 0)


def test_select():
    with flowfd.Counter() as counter:
        assert select.select([counter], [], [], 0) == ([], [], [])
        counter.add()
        assert select.select([counter], [], [], 0) == ([counter], [], [])


def test_async_take():
    async def main():
        with flowfd.Counter() as counter:
            loop = asyncio.get_running_loop()
            loop.call_later(0.02, counter.add, 3)
            assert await counter.take_async() == 3
            counter.add(4)
            assert await counter.take_async() == 4
            thread = threading.Timer(0.02, counter.add, [5])
            thread.start()
            assert await counter.take_async() == 5
            thread.join()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(counter.take_async(), 0.02)
            assert counter._loop is None
            total = 0
            counter.add(1)
            async for count in counter:
                total += count
                if total >= 3:
                    break
                counter.add(1)
            assert total == 3

    asyncio.run(main())


def test_async_tasks_that_wait_and_are_cancelled():
    async def main():
        with flowfd.Counter() as counter:
            tasks = [asyncio.create_task(counter.take_async()) for _ in range(5)]
            await asyncio.sleep(0)
            tasks[0].cancel()
            counter.add(1)
            # The one that is to be woken first is cancelled at the same time.
            tasks[1].cancel()
            done, left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            while not any(not t.cancelled() for t in done):
                more, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
                done |= more
            total = sum(t.result() for t in done if not t.cancelled())
            for _ in range(len(left)):
                counter.add(1)
                more, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
                total += sum(t.result() for t in more)
            assert total + (counter.try_take() or 0) == 3

    asyncio.run(asyncio.wait_for(main(), 60))


def test_async_close():
    async def main():
        counter = flowfd.Counter()
        task = asyncio.create_task(counter.take_async())
        await asyncio.sleep(0)
        counter.close()
        with pytest.raises(ValueError, match="closed"):
            await task

    asyncio.run(main())


LOOPS = [asyncio.SelectorEventLoop, flowfd.asyncio.EventLoop]


@pytest.mark.parametrize("new_loop", LOOPS)
def test_async_close_of_what_another_process_has(new_loop):
    """Its open file lives on, readable: the loop does not watch it any more."""

    async def main():
        loop = asyncio.get_running_loop()
        counter = flowfd.Counter()
        task = asyncio.create_task(counter.take_async())
        await asyncio.sleep(0)
        fds = tuple(map(os.dup, counter.descriptors()))
        try:
            counter.close()
            with pytest.raises(ValueError, match="closed"):
                await task
            with flowfd.Counter.from_descriptors(fds) as other:
                fds = ()
                other.add()
                with select.epoll.fromfd(os.dup(loop._selector.fileno())) as epoll:
                    assert other.fileno() >= 0
                    assert epoll.poll(0) == []
        finally:
            for fd in fds:
                os.close(fd)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main())


@pytest.mark.parametrize("new_loop", LOOPS)
def test_async_close_in_another_thread(new_loop):
    """The task is told at once, though the loop sleeps; all else is in the loop's thread."""

    async def main():
        loop, threads = asyncio.get_running_loop(), []
        remove_reader = loop.remove_reader

        def remove(fd):
            threads.append(threading.get_ident())
            # It is still open.
            os.fstat(fd)
            return remove_reader(fd)

        loop.remove_reader = remove
        for _ in range(50):
            counter = flowfd.Counter()
            fd = counter.fileno()
            tasks = [asyncio.create_task(counter.take_async()) for _ in range(3)]
            await asyncio.sleep(0)
            closed = []

            def close():
                counter.close()
                closed.append(counter.closed)

            thread = threading.Thread(target=close)
            thread.start()
            for task in tasks:
                with pytest.raises(ValueError, match="closed"):
                    await asyncio.wait_for(task, 10)
            thread.join()
            assert closed == [True]
            assert not is_open(fd)
        assert set(threads) == {threading.get_ident()}

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main())


def test_async_close_while_a_thread_waits():
    """It is refused, and the task goes on to wait."""

    async def main():
        with flowfd.Counter() as counter:
            task = asyncio.create_task(counter.take_async())
            thread = threading.Thread(target=counter.take)
            thread.start()
            await asyncio.sleep(0.1)
            with pytest.raises(OSError) as caught:
                counter.close()
            assert caught.value.errno == errno.EBUSY
            while thread.is_alive() or not task.done():
                counter.add()
                await asyncio.sleep(0.01)
            thread.join()
            assert await task > 0

    asyncio.run(asyncio.wait_for(main(), 60))


def test_async_one_consumer():
    async def main():
        with flowfd.Counter(one_consumer=True) as counter:
            for item in range(1, 100):
                asyncio.get_running_loop().call_soon(counter.add, item)
                assert await counter.take_async() == item
            task = asyncio.create_task(counter.take_async())
            await asyncio.sleep(0)
            with pytest.raises(RuntimeError, match="another task"):
                await counter.take_async()
            counter.add()
            assert await task == 1

    asyncio.run(main())


def test_async_one_consumer_of_another_process():
    async def main():
        with flowfd.Counter(one_consumer=True) as made:
            with flowfd.Counter.from_descriptors(list(map(os.dup, made.descriptors())),
                                                 one_consumer=True) as counter:
                assert counter.one_consumer
                task = asyncio.create_task(counter.take_async())
                await asyncio.sleep(0)
                with pytest.raises(RuntimeError, match="another task"):
                    await counter.take_async()
                made.add()
                assert await task == 1
        with flowfd.Counter() as made:
            with flowfd.Counter.from_descriptors(list(map(os.dup, made.descriptors()))) as other:
                assert not other.one_consumer
                with pytest.raises(TypeError):
                    flowfd.Counter.from_descriptors([], True)

    asyncio.run(main())


def test_async_two_loops():
    with flowfd.Counter() as counter:
        first, second = asyncio.new_event_loop(), asyncio.new_event_loop()
        task = first.create_task(counter.take_async())
        first.run_until_complete(asyncio.sleep(0))
        with pytest.raises(RuntimeError, match="another event loop"):
            second.run_until_complete(counter.take_async())
        counter.add(2)
        assert first.run_until_complete(task) == 2
        counter.add(3)
        assert second.run_until_complete(counter.take_async()) == 3
        first.close()
        second.close()


# The first call that the library makes after arm() is interrupted.
INTERRUPT = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <unistd.h>
static int armed;
/* 2: and it takes its time, and there is a signal. */
void arm(int how) { armed = how; }
int fired(void) { return !armed; }
static int fires(void)
{
	int how = armed;
	armed = 0;
	if (how == 2) {
		usleep(300000);
		raise(SIGUSR1);
	}
	errno = EINTR;
	return how != 0;
}
ssize_t write(int fd, const void *data, size_t size)
{
	ssize_t (*next)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
	return fires() ? -1 : next(fd, data, size);
}
int ioctl(int fd, unsigned long request, ...)
{
	int (*next)(int, unsigned long, ...) = dlsym(RTLD_NEXT, "ioctl");
	va_list list;
	void *argument;
	va_start(list, request);
	argument = va_arg(list, void *);
	va_end(list);
	return fires() ? -1 : next(fd, request, argument);
}
long syscall(long number, ...)
{
	long (*next)(long, ...) = dlsym(RTLD_NEXT, "syscall");
	va_list list;
	long a[6];
	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	return fires() ? -1 : next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
"""

INTERRUPTED = """
import ctypes, errno, signal, threading, time
import flowfd
shim = ctypes.PyDLL(None)
with flowfd.Counter(semaphore=True, nonblock=True) as counter:
    for call, result in ((counter.add, None), (counter.try_add, True),
                         (counter.take, 1), (counter.try_take, 1)):
        shim.arm(1)
        assert call() == result, call
        assert shim.fired(), call
    assert counter.try_take() is None
    shim.arm(1)
    try:
        counter.share()
    except OSError as error:
        assert error.errno == errno.ENOTTY
    assert shim.fired()

# It can wait, and does so without the GIL; a signal that closes the counter is seen.
ticks, over = 0, threading.Event()
def tick():
    global ticks
    while not over.wait(0.01):
        ticks += 1
counter = flowfd.Counter()
signal.signal(signal.SIGUSR1, lambda number, frame: counter.close())
thread = threading.Thread(target=tick)
thread.start()
before = ticks
shim.arm(2)
try:
    counter.share()
except ValueError as error:
    assert "closed" in str(error)
else:
    raise AssertionError("shared")
finally:
    over.set()
assert ticks > before + 2, ticks
"""


@pytest.mark.skipif(BACKEND == "module" or not shutil.which("cc"),
                    reason="interrupts calls of an eventfd; needs a C compiler")
def test_what_does_not_wait_is_repeated_if_interrupted(tmp_path):
    (tmp_path / "shim.c").write_text(INTERRUPT)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "shim.so",
                    tmp_path / "shim.c", "-ldl"], check=True)
    subprocess.run([sys.executable, "-c", INTERRUPTED], check=True, timeout=60,
                   cwd=tmp_path, env={**os.environ, "LD_PRELOAD": str(tmp_path / "shim.so")})
