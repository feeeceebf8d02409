# SPDX-License-Identifier: GPL-2.0-only
"""control.py [NAME...]: CPython's own test_asyncio, with asyncio's loop and with flowfd's.

The loop passes if each test has the result that it has with asyncio's loop. NAMEs are of
test modules, such as test_events; without any, all that make event loops."""

import asyncio
import faulthandler
import subprocess
import sys
import unittest

import flowfd.asyncio

# Others make no loop of a selector, or none.
MODULES = """test_base_events test_buffered_proto test_events test_futures test_locks
    test_queues test_sendfile test_server test_sock_lowlevel test_streams test_subprocess
    test_taskgroups test_tasks test_threads test_timeouts test_unix_events
    test_waitfor""".split()


# More than any of these tests takes.
SECONDS = 120


class Result(unittest.TextTestResult):
    """Prints each test with its result, to be compared."""

    def _say(self, test, result):
        print("result", test.id(), result, file=sys.stdout, flush=True)

    def startTest(self, test):
        super().startTest(test)
        # Where one hangs, its stack is the message.
        faulthandler.dump_traceback_later(SECONDS, exit=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self._say(test, "ok")

    def addError(self, test, error):
        super().addError(test, error)
        self._say(test, "error")

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self._say(test, "failure")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._say(test, "skipped")

    def addExpectedFailure(self, test, error):
        super().addExpectedFailure(test, error)
        self._say(test, "expected failure")


def replace_loop():
    """All that makes a loop makes one of flowfd's. Returns a list that counts them."""
    made = []

    class Counted(flowfd.asyncio.EventLoop):
        def _make_self_pipe(self):
            made.append(1)
            super()._make_self_pipe()

    asyncio.SelectorEventLoop = Counted
    asyncio.unix_events.SelectorEventLoop = Counted
    asyncio.unix_events._UnixDefaultEventLoopPolicy._loop_factory = Counted
    if hasattr(asyncio.unix_events, "EventLoop"):
        asyncio.EventLoop = asyncio.unix_events.EventLoop = Counted
    return made


def work(loop, names):
    """In a process of its own: runs the tests, and prints their results."""
    made = replace_loop() if loop == "flowfd" else None
    suite = unittest.TestSuite(
        unittest.defaultTestLoader.loadTestsFromName(f"test.test_asyncio.{name}")
        for name in names
    )
    unittest.TextTestRunner(resultclass=Result, verbosity=0).run(suite)
    faulthandler.cancel_dump_traceback_later()
    if made is not None:
        print("loops", len(made))


def results(loop, names):
    """The result of each test, and how many loops of flowfd there were."""
    ran = subprocess.run(
        [sys.executable, __file__, "--work", loop, *names],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
    )
    found, loops = {}, 0
    for line in ran.stdout.splitlines():
        words = line.split(maxsplit=2)
        if words[:1] == ["result"]:
            found[words[1]] = words[2]
        elif words[:1] == ["loops"]:
            loops = int(words[1])
    return found, loops, ran.stderr


def main(names):
    try:
        import test.test_asyncio  # noqa: F401
    except ImportError:
        print("1..0 # SKIP this Python has no test suite")
        return 0
    stock, _, _ = results("asyncio", names)
    own, loops, said = results("flowfd", names)
    # What fails now and then fails with either loop: a second look decides.
    other = [name for name in stock.keys() | own.keys() if stock.get(name) != own.get(name)]
    if other:
        modules = sorted({name.split(".")[2] for name in other})
        stock.update(results("asyncio", modules)[0])
        again, _, said = results("flowfd", modules)
        own.update(again)
        other = [name for name in other if stock.get(name) != own.get(name)]
    passed = sum(result == "ok" for result in own.values())
    bad = {n: r for n, r in own.items() if r in ("error", "failure")}
    checks = [
        (len(stock) >= 100 or names != MODULES, f"{len(stock)} tests with asyncio's loop"),
        (loops > 0, f"{loops} loops of flowfd were made"),
        (passed > 0 and not other,
         f"with flowfd's loop {passed} of them pass, and all as with asyncio's"),
    ]
    for number, (is_good, text) in enumerate(checks, 1):
        print("ok" if is_good else "not ok", number, "-", text)
    for name in sorted(other):
        print(f"# {name}: {stock.get(name)} with asyncio's, {own.get(name)} with flowfd's")
    if other:
        print("\n".join("# " + line for line in said.splitlines()[-60:]))
    for name in sorted(bad):
        print(f"# {name}: {bad[name]} with both")
    print(f"1..{len(checks)}")
    return 0 if all(is_good for is_good, _ in checks) else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2], sys.argv[3:])
    else:
        sys.exit(main(sys.argv[1:] or MODULES))
