#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-only
"""Usage: guest-flowfdctl-top.py BUILD [PYTEST-ARGUMENT...]

flowfdctl top and the statistics that it shows, as root in a virtual machine. Prints TAP.
"""

import bisect
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time

import pytest
import tap
from ctl import (COMMAND, CTL, DEVICE, NONBLOCK, PATIENCE, Counter, Process, Ring, ctl,
                 needs_module, repeated, table, unprintable)

pytestmark = needs_module


def own_rows(text, first):
    """Those of what this process created."""
    return [row for row in table(text, first) if row["PID"] == str(os.getpid())]


def own(result, kind):
    return [o for o in result[kind] if o["pid"] == os.getpid()]


def test_top():
    def work():
        os.write(writer, b"x")
        for _ in ring.harvest():
            os.read(reader, 1)
            times.append(time.monotonic())
        counter.write(10)

    times = []
    reader, writer = os.pipe2(os.O_NONBLOCK)
    with Ring(3) as ring, Counter(maximum=1 << 32) as counter, Counter(initial=1):
        ring.add(reader, select.EPOLLIN)
        with repeated(work):
            start = time.monotonic()
            done = ctl("top", "--interval", "2", "--count", "2")
            spent = time.monotonic() - start
    os.close(reader)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")
    assert 4 <= spent < 10
    assert unprintable(done.stdout) == []
    # The machine may be busy with something else for a part of the time.
    in_a_second = [bisect.bisect(times, start + 1) - i
                   for i, start in enumerate(times) if start + 1 < times[-1]]
    least, most = min(in_a_second), max(in_a_second)
    _, *parts = done.stdout.split("flowfd on this machine\n")
    assert len(parts) == 2
    for part in parts:
        ring, = own_rows(part, "RING")
        first, second = own_rows(part, "COUNTER")
        for value, times in ((ring["PUBLISHED/S"], 1), (ring["TAKEN/S"], 1),
                             (first["PRODUCED/S"], 10), (first["CHANGE/S"], 10),
                             (first["WRITES/S"], 1)):
            assert 0.8 * times * least < float(value) < 1.2 * times * most
        assert (ring["WATCHES"], first["UID"], first["MAXIMUM"]) == (
            "1", "0", str(1 << 32))
        # The busiest first, the idle last.
        assert (second["COUNT"], second["CHANGE/S"]) == ("1", "+0")


def top(*args):
    """The objects that top --json prints."""
    done = ctl("top", "--json", *args)
    assert (done.returncode, done.stderr) == (0, "")
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert {(r["format"], r["version"], r["complete"]) for r in results} == {
        ("flowfdctl-top", 2, True)}
    return results


def added_between(samples, before, after):
    """The least and the most per second that tests/paced can have added between two
    times: it may not have been on time around them."""
    def around(ns):
        i = bisect.bisect(samples, [ns])
        return samples[i - 1][1], samples[i][1]

    seconds = (after - before) / 1e9
    (low0, high0), (low1, high1) = around(before), around(after)
    return (low1 - high0) / seconds, (high1 - low0) / seconds


@pytest.mark.parametrize("way", ["calls", "memory"])
def test_busy_counter(way):
    """A counter that is read as fast as it is written, 100,000 times a second: if the
    machine is too slow for that, as often as it can."""
    busy = subprocess.Popen([tap.BUILD + "/tests/paced", way, "100000", "20"],
                            stdout=subprocess.PIPE, text=True)
    time.sleep(1)
    results = [next(c for c in r["counters"] if c["pid"] == busy.pid)
               for r in top("--interval", "1.5", "--count", "8")]
    out, _ = busy.communicate()
    assert busy.returncode == 0
    samples = [list(map(int, line.split())) for line in out.splitlines()]
    spread = []
    for before, after in zip(results, results[1:]):
        least, most = added_between(samples, before["read_ns"], after["read_ns"])
        rates = after["rates"]
        print(f"# {way}: {rates['produced']:.0f} shown, {least:.0f} to {most:.0f} done")
        spread.append(most / least)
        assert 0.98 * least <= rates["produced"] <= 1.02 * most
        if way == "calls":
            assert 0.98 * least <= rates["writes"] <= 1.02 * most
            assert rates["reads"] > 0
            assert after["stats"]["writes"] <= samples[-1][1]
    # The comparison was one.
    assert min(spread) < 1.05


def test_rates():
    """Of each statistic, as the totals before and after say."""
    def work():
        with contextlib.suppress(BlockingIOError):
            counter.write(3)
        os.write(writer, b"x")
        os.read(ring.fd, 8)  # waits for an entry
        for _ in ring.harvest():
            os.read(reader, 1)

    reader, writer = os.pipe2(os.O_NONBLOCK)
    with Ring(3) as ring, Counter(maximum=100, flags=NONBLOCK) as counter:
        ring.add(reader, select.EPOLLIN)
        with repeated(work):
            first, second = top("-i", "1", "-n", "2")
    os.close(reader)
    os.close(writer)
    assert abs(second["interval"] - (second["time"] - first["time"])) < 0.5
    for kind, moving in (("counters", {"again"}),
                         ("rings", {"published", "waits"})):
        before, after = own(first, kind)[0], own(second, kind)[0]
        seconds = (after["read_ns"] - before["read_ns"]) / 1e9
        for name, rate in after["rates"].items():
            if name in after["stats"]:
                change = after["stats"][name] - before["stats"][name]
                assert abs(rate - change / seconds) < 0.01
        assert moving <= {name for name, rate in after["rates"].items() if rate > 0}
        # Highest counts have no rate.
        assert "highest" not in after["rates"]


def test_statistics():
    """What the kernel has counted, in both forms."""
    with Counter(maximum=10, flags=NONBLOCK) as counter, Ring(1):
        for value in 3, 5:
            counter.write(value)
        with pytest.raises(BlockingIOError):
            counter.write(2)
        counter.read()
        counter.write(1)
        shown, = own(json.loads(ctl("list", "--json").stdout), "counters")
        assert shown["stats"] == {
            "produced": 9, "writes": 3, "reads": 1, "wakeups": shown["stats"]["wakeups"],
            "held_back": 0, "again": 1, "waits": 0, "wait_ns": 0, "lost": 0,
            "highest": 8}
        text = ctl("list", "--stats").stdout
        row, = own_rows(text[text.index("COUNTER", 1):], "COUNTER")
        del row["WAKEUPS"]
        assert list(row.items())[3:] == [
            ("PRODUCED", "9"), ("WRITES", "3"), ("READS", "1"),
            ("HELD-BACK", "0"), ("AGAIN", "1"), ("WAITS", "0"), ("WAIT", "0ns"),
            ("LOST", "0"), ("HIGHEST", "8"), ("COMMAND", COMMAND)]
        row, = own_rows(text[text.rindex("RING"):], "RING")
        assert list(row.items())[3:] == [
            ("PUBLISHED", "0"), ("COALESCED", "0"), ("WAITS", "0"), ("SLEEPS", "0"),
            ("COMMAND", COMMAND)]


def on_terminal(rows, columns, args):
    """What flowfdctl writes to a terminal of that size."""
    command = f"stty rows {rows} cols {columns}; TERM=vt100 {CTL} {args}"
    done = ctl(before=["script", "-qec", command, "/dev/null"], stdin=subprocess.DEVNULL)
    return done.stdout


def thirty_counters():
    return [os.open(DEVICE, os.O_RDWR) for _ in range(30)]


def test_terminal():
    with Process(thirty_counters):
        small = on_terminal(16, 40, "top -i 0.2 -n 2")
        large = on_terminal(50, 190, "top -i 0.2 -n 1")
    tables = small.split("\x1b[H\x1b[J")
    assert len(tables) == 3
    assert max(len(line) for line in small.split("\n")) <= 40 + len("\x1b[H\x1b[J")
    assert max(part.count("\n") for part in tables) < 16
    assert [part.count("more\n") for part in tables[1:]] == [1, 1]
    assert (large.count("holder"), large.count("more\n")) == (30, 0)


def test_top_ends_with_its_reader():
    done = ctl(before=["bash", "-c", f"{CTL} top -i 0.1 | head -n 1;"
                       " echo ${PIPESTATUS[0]}"], timeout=PATIENCE)
    assert done.stdout.split("\n")[1] == "141"


def test_top_ends_on_ctrl_c():
    with subprocess.Popen([CTL, "top"], stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        child.send_signal(signal.SIGINT)
        assert child.wait(PATIENCE) == -signal.SIGINT


if __name__ == "__main__":
    sys.exit(tap.run())
