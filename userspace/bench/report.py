#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Make one HTML page from the JSON of flowfd-bench.

Installed as flowfd-bench-report. What the JSON does not have
(benchmarks that did not run, flowfd without its module) is left out.
"""

import argparse
import html
import json
import sys

FORMAT_VERSION = 2

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto;
  padding: 0 1.2rem; }
.bars, dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.25rem 0.8rem;
  font-size: 0.9rem; }
.bars > div { display: flex; align-items: center; gap: 0.4rem; }
.bars i { height: 1rem; min-width: 2px; background: #3b82c4; }
.bars i.stock { background: #e07b39; }
dd { margin: 0; overflow-wrap: anywhere; }
"""


class Broken(Exception):
    """The input is not a result of flowfd-bench."""


def load(path):
    """Read and check the input."""
    try:
        with sys.stdin if path == "-" else open(path, encoding="utf-8") as file:
            result = json.load(file)
    except (OSError, UnicodeDecodeError) as error:
        raise Broken(getattr(error, "strerror", None) or error)
    except json.JSONDecodeError as error:
        raise Broken(f"not JSON: {error}")
    if not isinstance(result, dict) or result.get("format") != "flowfd-bench":
        raise Broken("not a result of flowfd-bench")
    if result.get("version") != FORMAT_VERSION:
        raise Broken(f"format version {result.get('version')} is not known")
    return result


def median(result, name, labels, key):
    """One figure; None: it was not measured."""
    for bench in result["benchmarks"]:
        for row in bench["rows"]:
            if bench["name"] == name and tuple(row[k] for k in bench["labels"]) == labels:
                return row.get(key) and row[key]["median"]
    return None


# What is less is a gain; a few percent are chance.
GAIN = 0.95

# The conclusion. Each sentence: its beginning, for which ratios a clause is true, and
# clauses: (text with the ratio, or what is left or saved in percent; its figure).
CONCLUSION = (
    (
        "What gains",
        lambda ratio: ratio < GAIN,
        ("signalling in memory takes {left:.0f} % of what an eventfd takes",
         "cost", ("write + read", "in memory"), "ratio"),
        ("an event of one of 256 files in a ring takes {left:.0f} % of epoll's",
         "ring", ("eventfd", "256", "ring"), "ratio"),
        ("a maximum of 10 leaves {left:.1f} % of the longest waits in a slow consumer's queue",
         "latency", ("flowfd", "10"), "ratio"),
        ("a token bucket saves {saved:.0f} % of a consumer's CPU time",
         "bucket", ("epoll ET", "flat out", "flowfd", "1000/s, 2"), "ratio"),
    ),
    (
        "What it costs",
        lambda ratio: ratio > 1,
        ("a counter takes {ratio:.2f} of an eventfd to create and close",
         "cost", ("create + close", "flowfd"), "ratio"),
        ("a counter whose device is opened for it takes {ratio:.1f}",
         "cost", ("same, opens it", "flowfd"), "ratio"),
        ("a socket takes {ratio:.2f} of epoll to be watched by a ring",
         "control", ("socketpair", "ring"), "add_ratio"),
    ),
    (
        "What does not gain",
        lambda ratio: ratio >= GAIN,
        ("a thread that sleeps before each signal (in memory it takes {ratio:.2f} of an "
         "eventfd's time)", "pingpong", ("in memory",), "ratio"),
        ("a busy epoll loop that a counter in memory tells of something ({ratio:.2f})",
         "loop", ("busy", "memory, epoll"), "signal_ratio"),
        ("a writer that tries again at once when there is no room ({ratio:.2f} of its CPU)",
         "burst", ("flowfd", "O_NONBLOCK+spin", "10"), "ratio"),
    ),
)


def sentence(result, what, holds, *clauses):
    """One of the conclusion, of the figures that there are and that say so; or nothing."""
    found = []
    for text, *figure in clauses:
        ratio = median(result, *figure)
        if ratio is not None and holds(ratio):
            percent = 100 * ratio
            found.append(text.format(ratio=ratio, left=percent, saved=100 - percent))
    if not found:
        return ""
    text = " and ".join(filter(None, (", ".join(found[:-1]), found[-1])))
    return f"<p>{what}: {html.escape(text)}.</p>"


# Each plot: title, sentence, digits, and its bars: (text, benchmark, labels, key).
PLOTS = (
    (
        "A signal and its take, as a ratio to an eventfd",
        "In memory there is no system call while nobody sleeps. A semaphore on a futex costs "
        "less still, but no event loop can wait for it beside files.",
        3,
        [
            (name, "cost", ("write + read", name), "ratio")
            for name in ("eventfd", "flowfd", "in memory", "post", "futex")
        ],
    ),
    (
        "An event of watched files, written and taken, as a ratio to epoll",
        "A ring takes events without a system call: the fewer there are at a time, the more "
        "that gains.",
        2,
        [("epoll, of 256", "ring", ("eventfd", "256", "epoll ET"), "ratio")]
        + [
            (f"ring, of {count}", "ring", ("eventfd", count, "ring"), "ratio")
            for count in ("1", "16", "256", "4096")
        ],
    ),
    (
        "How long 999 of 1000 events wait at most, µs",
        "The consumer is slower than the producer. Without a maximum the queue grows for as "
        "long as that lasts; with one the producer waits.",
        0,
        [
            ("eventfd", "latency", ("eventfd", "unlimited"), "p999_us"),
            ("flowfd, no maximum", "latency", ("flowfd", "unlimited"), "p999_us"),
            ("maximum 100", "latency", ("flowfd", "100"), "p999_us"),
            ("maximum 10", "latency", ("flowfd", "10"), "p999_us"),
        ],
    ),
    (
        "CPU time of a consumer with a bucket, as a ratio to an eventfd's",
        "A bucket of 1000 wakeups a second limits wakeups, never data: a loop of poll(2) that "
        "finds events does not sleep, and then saves less.",
        2,
        [("eventfd", "bucket", ("epoll ET", "flat out", "eventfd", "none"), "ratio")]
        + [
            (text, "bucket", (consumer, publisher, "flowfd", "1000/s, 2"), "ratio")
            for text, consumer, publisher in (
                ("epoll, writer never rests", "epoll ET", "flat out"),
                ("poll, writer never rests", "poll", "flat out"),
                ("epoll, a write in 50 µs", "epoll ET", "one in 50 us"),
                ("poll, a write in 50 µs", "poll", "one in 50 us"),
            )
        ],
    ),
    (
        "A call on a counter, as a ratio to eventfd",
        "Each is a system call, as with an eventfd. A new counter also has a timer and a place "
        "in the list of all.",
        2,
        [("eventfd", "cost", ("write + read", "eventfd"), "ratio")]
        + [
            (name.replace("opens it", "opening it"), "cost", (name, "flowfd"), "ratio")
            for name in ("write + read", "write", "read", "write, full", "read, empty",
                         "poll, ready", "create + close", "same, opens it")
        ],
    ),
    (
        "Where a thread or a loop must be woken, as a ratio to an eventfd",
        "Waking a thread takes a system call in any case. A post tells only a loop that "
        "sleeps.",
        2,
        [
            ("eventfd", "pingpong", ("eventfd",), "ratio"),
            ("threads in turn, flowfd", "pingpong", ("flowfd",), "ratio"),
            ("threads in turn, in memory", "pingpong", ("in memory",), "ratio"),
            ("threads in turn, post", "pingpong", ("post",), "ratio"),
            ("busy loop, in memory", "loop", ("busy", "memory, epoll"), "signal_ratio"),
            ("busy loop, post", "loop", ("busy", "post"), "signal_ratio"),
            ("idle loop, in memory", "loop", ("idle", "memory, epoll"), "taken_ratio"),
            ("idle loop, post", "loop", ("idle", "post"), "taken_ratio"),
        ],
    ),
)


# Bars of what is not of flowfd.
STOCK = ("eventfd", "epoll, of 256", "futex")


def plot(result, title, text, digits, bars):
    """Horizontal bars, or nothing if only one was measured."""
    found = [(text, median(result, *figure)) for text, *figure in bars]
    found = [bar for bar in found if bar[1] is not None]
    if len(found) < 2:
        return ""
    most = max(value for _, value in found)
    out = [f"<h2>{html.escape(title)}</h2><p>{html.escape(text)}</p>", '<div class="bars">']
    for name, value in found:
        stock = " class=stock" if name in STOCK else ""
        out.append(
            f"<span>{html.escape(name)}</span>"
            f'<div><i{stock} style="width: {85 * value / most:.2f}%"></i>'
            f"{value:,.{digits}f}</div>"
        )
    return "".join(out) + "</div>"


def machine(result):
    """Where and how it was measured."""
    facts, settings = result["machine"], result["settings"]
    pairs = {
        "date": result["date"],
        "kernel": f"{facts['kernel']} ({facts['build']})",
        "processors": f"{facts['cpus']} × {facts['processor'] or facts['architecture']}",
        "flowfd": facts["module"] or "without the module",
        "command": " ".join(result["command"]),
        "rounds": f"{settings['rounds']}; figures are medians, of {settings['ms']} ms each",
    }
    out = [f"<dt>{html.escape(k)}</dt><dd>{html.escape(v)}</dd>" for k, v in pairs.items()]
    return f"<h2>Machine</h2><dl>{''.join(out)}</dl>"


def caveat(result):
    """One sentence on the times of an emulated machine, or none."""
    if result["settings"]["unit"] == "instructions":
        return "The clock of this machine counts instructions: compare ratios, not times."
    if "QEMU" in (result["machine"]["processor"] or ""):
        return "The processor is emulated: compare ratios, not times."
    return ""


def page(result):
    """The whole document."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>flowfd-bench</title><style>{STYLE}</style></head><body>"
        "<h1>flowfd against eventfd and epoll</h1>"
        + "".join(sentence(result, *each) for each in CONCLUSION)
        + f"<p>{caveat(result)}</p>"
        + "".join(plot(result, *each) for each in PLOTS)
        + machine(result)
        + "</body></html>\n"
    )


def main():
    parser = argparse.ArgumentParser(
        prog="flowfd-bench-report",
        description="Make one HTML page from the JSON of flowfd-bench.",
    )
    parser.add_argument("result", help="file from flowfd-bench --json; -: standard input")
    parser.add_argument("-o", "--output", required=True, help="page to write")
    arguments = parser.parse_args()
    subject = arguments.result
    try:
        text = page(load(subject))
        subject = arguments.output
        with open(subject, "w", encoding="utf-8") as file:
            file.write(text)
    except (Broken, OSError) as error:
        why = getattr(error, "strerror", None) or error
    except (ArithmeticError, AttributeError, KeyError, RecursionError, TypeError,
            ValueError) as error:
        why = f"not a result of flowfd-bench: {error!r}"
    else:
        return 0
    print(f"flowfd-bench-report: {subject}: {why}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
