#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-only
"""Usage: guest-flowfdctl-prometheus.py BUILD [PYTEST-ARGUMENT...]

flowfdctl --prometheus, read with the parser of Prometheus's Python client, and with its
promtool if that is installed: whatever names processes have, and whatever users do. Runs
as root in a virtual machine. Prints TAP.
"""

import contextlib
import ctypes
import json
import os
import random
import select
import shutil
import subprocess
import sys

import pytest
import tap
from ctl import (COMMAND, DEVICE, NOBODY, NONBLOCK, Counter, Process, Ring, call, ctl, kept,
                 needs_module)

parser = pytest.importorskip("prometheus_client.parser")
pytestmark = needs_module


def families(status=0, **other):
    """The metrics, by name: type, and samples by labels. Checks the format."""
    done = ctl("--prometheus", **other)
    assert (done.returncode, bool(done.stderr)) == (status, bool(status))
    assert done.stdout.isascii() and done.stdout.replace("\n", "").isprintable()
    found = {}
    for family in parser.text_string_to_metric_families(done.stdout):
        assert family.documentation
        names = {sample.name for sample in family.samples}
        # As a counter's are called in this format.
        assert names == {family.name + "_total" * (family.type == "counter")}
        samples = {tuple(sorted(s.labels.items())): s.value for s in family.samples}
        assert len(samples) == len(family.samples)
        found[names.pop()] = family.type, samples
    return found


def of(samples, pid):
    """The value of the only sample of a process, and its other labels."""
    (labels, value), = ((dict(labels), value) for labels, value in samples.items()
                        if dict(labels).get("pid") == str(pid))
    return value, labels


def test_values():
    reader, writer = os.pipe2(os.O_NONBLOCK)
    with Counter(initial=2, maximum=10) as counter, Ring(5) as ring:
        ring.add(reader, select.EPOLLIN)
        os.write(writer, b"x")
        counter.write(5)
        for error, timeout, flags in ((BlockingIOError, 0, NONBLOCK),
                                      (TimeoutError, 200000000, 0)):
            with pytest.raises(error):
                call("write_with", counter.fd, ctypes.c_uint64(9),
                     ctypes.c_uint64(timeout), flags)
        shown = json.loads(ctl("list", "--json").stdout)
        found = families()
    os.close(reader)
    os.close(writer)
    listed = [next(o for o in shown[kind] if o["pid"] == os.getpid())
              for kind in ("counters", "rings")]
    for name, kind, wanted in (
            ("flowfd_value", "gauge", 7),
            ("flowfd_maximum", "gauge", 10),
            ("flowfd_wakeup_deferred", "gauge", 0),
            ("flowfd_produced_total", "counter", 7),
            ("flowfd_writes_total", "counter", 1),
            ("flowfd_reads_total", "counter", 0),
            ("flowfd_again_total", "counter", 1),
            ("flowfd_waits_total", "counter", 1),
            ("flowfd_lost_total", "counter", 0),
            ("flowfd_highest", "gauge", 7),
            ("flowfd_ring_pending", "gauge", 1),
            ("flowfd_ring_items_max", "gauge", 5),
            ("flowfd_ring_watches", "gauge", 1),
            ("flowfd_ring_posts", "gauge", 0),
            ("flowfd_ring_published_total", "counter", 1),
            ("flowfd_ring_sleeps_total", "counter", 0)):
        value, labels = of(found[name][1], os.getpid())
        assert (name, found[name][0], value) == (name, kind, wanted)
        of_kind = listed["_ring_" in name]
        assert labels == {"id": str(of_kind["id"]), "pid": str(os.getpid()),
                          "uid": "0", "comm": COMMAND,
                          "kind": "ring" if "_ring_" in name else "counter"}
    waited, _ = of(found["flowfd_wait_seconds_total"][1], os.getpid())
    assert 0.2 <= waited < 10
    assert abs(waited - listed[0]["stats"]["wait_ns"] / 1e9) < 1e-6
    # Every statistic is a metric.
    for of_kind, prefix in zip(listed, ("flowfd_", "flowfd_ring_")):
        for name in of_kind["stats"]:
            name = name.replace("wait_ns", "wait_seconds")
            assert {prefix + name, f"{prefix}{name}_total"} & set(found)


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")
def test_promtool():
    with Process(a_counter, name=b'a"} 1\n'), Ring(1):
        lint = subprocess.run(["promtool", "check", "metrics"], text=True,
                              input=ctl("--prometheus").stdout, capture_output=True)
    assert (lint.returncode, lint.stdout, lint.stderr) == (0, "", "")


NAMES = [b'"', b"\\", b'"} 1', b'a",comm="b', b"\n# TYPE x y\n", b"#", b"} 2 3\n", b"\r",
         b"\r\nflowfd 1", b"\xff\xfe", b"\xe2\x80\xa8", b"\x85\x1b[2J", b"{", b" ", b"\t",
         b"\\n", b'\\"', b"a\\", b"=,", b"%n%s"]


def a_counter():
    kept.append(Counter())


def test_hostile_names():
    """As they are in the table of list; random ones, too."""
    source = random.Random(4)
    alphabet = b'"\\\n\r{}#=,: aN_1\x00\xff\xc3\xa9'.replace(b"\0", b"\t")
    names = NAMES + [bytes(source.choices(alphabet, k=source.randint(1, 15)))
                     for _ in range(40)]
    with contextlib.ExitStack() as stack:
        pids = [stack.enter_context(Process(a_counter, name=name)).pid for name in names]
        rows = [line.split(None, 9) for line in ctl("list").stdout.splitlines()]
        found = families()
        for metric in "flowfd_value", "flowfd_writes_total":
            _, samples = found[metric]
            assert len(samples) >= len(names)
            for pid in pids:
                value, labels = of(samples, pid)
                command, = (row[9:] for row in rows if row[2:3] == [str(pid)])
                assert (value, labels["comm"].strip()) == (0, "".join(command).strip())
        assert found["flowfd_objects"][1][("kind", "counter"),] >= len(names)


def test_one_line_for_an_object():
    """Whichever processes have it open: sums count nothing twice."""
    with Counter(initial=4) as counter:
        same = os.dup(counter.fd)
        with Process(lambda: None), Process(lambda: None):
            value, _ = of(families()["flowfd_value"][1], os.getpid())
    os.close(same)
    assert value == 4


def test_many_counters():
    """Of one user: there is a limit, and root's are still there."""
    def attack():
        for _ in range(5000):
            os.open(DEVICE, os.O_RDWR)

    with (Process(attack, user=NOBODY) as attacker,
          Process(a_counter, user=NOBODY - 1) as other, Process(a_counter) as own):
        found = families(status=2)
        _, samples = found["flowfd_value"]
        for pid in other.pid, own.pid:
            of(samples, pid)
        assert found["flowfd_scan_complete"][1][()] == 0
        assert 1000 < len([labels for labels in samples
                           if ("pid", str(attacker.pid)) in labels]) <= 1024


def test_without_root():
    done = ctl("--prometheus", user=NOBODY)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("flowfdctl: only root may see all")


if __name__ == "__main__":
    sys.exit(tap.run())
