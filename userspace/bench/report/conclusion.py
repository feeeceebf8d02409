# SPDX-License-Identifier: GPL-2.0-only
"""The conclusion: effects and goals in a few sentences, and a caveat on the machine."""

import re

from result import median


def kind(text):
    """The text of a verdict without its figures: the same on every machine."""
    return re.sub(r"-?[0-9][0-9.,]*", "", text)


def effects(result, name, prefix):
    """The verdicts of a benchmark that begin with @prefix: [(value, rest of text)]."""
    found = []
    for bench in result["benchmarks"]:
        for verdict in bench["verdicts"]:
            subject = verdict["text"].split(": ")[0]
            if bench["name"] == name and subject.startswith(prefix):
                found.append((verdict["value"], subject[len(prefix) :]))
    return found


def ratios(result, name, label, **labels):
    """The ratios to the kernel's own, of a benchmark's rows: [(ratio, label)]."""
    return [
        (median(row, "ratio"), row[label])
        for bench in result["benchmarks"]
        if bench["name"] == name
        for row in bench["rows"]
        if median(row, "ratio") and all(row.get(k) == v for k, v in labels.items())
    ]


def spread(found, form):
    """The least and the most with their labels, as text; None if @found is empty."""
    if not found:
        return None
    least, most = min(found), max(found)
    if least == most:
        return f"{form.format(least[0])} ({least[1]})" if least[1] else form.format(least[0])
    return f"{form.format(least[0])} ({least[1]}) to {form.format(most[0])} ({most[1]})"


# Each effect: description, function that finds its figures, format of a figure.
EFFECTS = (
    (
        "CPU that a maximum of 10 saves a writer that never rests",
        lambda r: effects(r, "burst", "writer CPU saved by maximum 10, "),
        "{:.1f} %",
    ),
    (
        "p99.9 of the latency with a maximum of 10, lower by a factor of",
        lambda r: effects(r, "latency", "p99.9 at maximum 10"),
        "{:.0f}",
    ),
    (
        "CPU that a bucket saves a consumer",
        lambda r: effects(r, "bucket", "consumer CPU saved by the bucket, "),
        "{:.1f} %",
    ),
    (
        "wakeups with a mark of 64, fewer by a factor of",
        lambda r: effects(r, "batch", "wakeups with a mark of 64, "),
        "{:.0f}",
    ),
    (
        "a call on a counter, as a ratio to eventfd",
        lambda r: ratios(r, "cost", "operation"),
        "{:.2f}",
    ),
    (
        "a signal in memory and its take, as a ratio to an eventfd",
        lambda r: [
            (ratio, channel)
            for ratio, channel in ratios(r, "signal", "channel")
            if channel in ("mapped", "post")
        ],
        "{:.3f}",
    ),
    (
        "an event of a ring, written and taken, as a ratio to epoll with eventfds",
        lambda r: [
            (ratio, f"{files} files")
            for ratio, files in ratios(
                r, "ring", "files", watcher="ring", source="eventfd"
            )
        ],
        "{:.2f}",
    ),
)


def processors(result):
    """The number of processors, as text."""
    count = result["machine"]["cpus"]
    return "one processor" if count == 1 else f"{count} processors"


def sentences(results):
    """The spread of each effect on each machine: [(what, [(machine, spread)])]."""
    said = []
    for what, figures, form in EFFECTS:
        found = [(processors(r), spread(figures(r), form)) for r in results]
        found = [(machine, text) for machine, text in found if text]
        if found:
            said.append((what, found))
    return said


def goals(result):
    """Returns how many goals were met, how many there are, and those missed."""
    verdicts = [
        (bench["name"], verdict)
        for bench in result["benchmarks"]
        for verdict in bench["verdicts"]
        if "goal" in verdict
    ]
    missed = [(name, v["text"]) for name, v in verdicts if not v["met"]]
    return len(verdicts) - len(missed), len(verdicts), missed


def caveat(result):
    """A warning about figures of an emulated machine, or None."""
    if "QEMU" not in (result["machine"].get("processor") or ""):
        return None
    times = "times are the emulator's"
    if result["settings"].get("unit") == "instructions":
        times = "its clock counts instructions: times are simulated time"
    text = (
        f"The processor is emulated, and {times}: ratios and instruction counts "
        "are what compares, not milliseconds. "
    )
    if result["machine"]["cpus"] == 1:
        text += (
            "Reader and writer share one processor. Where they have one each, "
            "effects are smaller."
        )
    return text
