# SPDX-License-Identifier: GPL-2.0-only
"""threadsafe.py [CALLS [ROUNDS]]: call_soon_threadsafe() from a thread, with asyncio's loop
and with flowfd's, in alternating rounds, each in a process of its own.

Medians: processor time, wall time, and how often the process slept and was woken. With a
priority of real time, if this user may have that, as on a machine that does nothing else; and
with the normal one, where other processes may take the processors meanwhile."""

import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import threading
import time

import flowfd.asyncio

LOOPS = {"asyncio": asyncio.SelectorEventLoop, "flowfd": flowfd.asyncio.EventLoop}


async def calls(count, pause):
    loop, seen = asyncio.get_running_loop(), 0
    done = asyncio.Event()

    def callback():
        nonlocal seen
        seen += 1
        if seen == count:
            done.set()

    def produce():
        for _ in range(count):
            loop.call_soon_threadsafe(callback)
            if pause:
                time.sleep(pause)

    thread = threading.Thread(target=produce)
    thread.start()
    await done.wait()
    thread.join()


def work(name, count, pause, is_urgent):
    """In a process of its own."""
    if is_urgent:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    else:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    with asyncio.Runner(loop_factory=LOOPS[name]) as runner:
        runner.get_loop()
        before, begin = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
        runner.run(calls(count, pause))
        after, end = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    print(json.dumps({
        "processor s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "in the kernel s": after.ru_stime - before.ru_stime,
        "wall s": end - begin,
        "sleeps": after.ru_nvcsw - before.ru_nvcsw,
        "preempted": after.ru_nivcsw - before.ru_nivcsw,
    }))


def may_be_urgent():
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        return False
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return True


def measure(count, rounds, pause, is_urgent):
    found = {name: [] for name in LOOPS}
    for _ in range(rounds):
        for name in LOOPS:
            said = subprocess.run([sys.executable, __file__, "--work", name, str(count),
                                   str(pause), str(int(is_urgent))], stdout=subprocess.PIPE, check=True).stdout
            found[name].append(json.loads(said))
    print(f"{count} calls, {pause * 1e6:.0f} us between two, "
          f"{'real time' if is_urgent else 'normal priority'}; "
          f"medians of {rounds}, and range")
    print(f"{'':16} {'asyncio':>26} {'flowfd':>26} {'ratio':>7}")
    ratios = {}
    for key in found["asyncio"][0]:
        cells = []
        for name in LOOPS:
            values = sorted(entry[key] for entry in found[name])
            middle = statistics.median(values)
            cells.append((middle, f"{middle:.4g} ({values[0]:.4g} to {values[-1]:.4g})"))
        ratios[key] = cells[1][0] / cells[0][0] if cells[0][0] else float("nan")
        print(f"{key:16} {cells[0][1]:>26} {cells[1][1]:>26} {ratios[key]:7.3f}")
    return ratios


def main(count, rounds):
    ratio = measure(count, rounds, 0, False)["processor s"]
    if may_be_urgent():
        ratio = measure(count, rounds, 0, True)["processor s"]
    measure(max(count // 50, 1), rounds, 200e-6, may_be_urgent())
    good = ratio <= 0.25
    print(f"goal: processor time of {count} calls at most 0.25 of asyncio's: "
          f"{ratio:.3f}, {'reached' if good else 'missed'}")
    return 0 if good else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]),
             sys.argv[5] == "1")
    else:
        sys.exit(main(*map(int, sys.argv[1:] or [100000]),
                      *([] if len(sys.argv) > 2 else [7])))
