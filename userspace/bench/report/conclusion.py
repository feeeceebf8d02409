# SPDX-License-Identifier: GPL-2.0-only
"""What comes out, in a few sentences, and on what kind of machine that was."""

import re

from result import median


def kind(text):
    """What a verdict is of, without its figures: the same on every machine."""
    return re.sub(r"-?[0-9][0-9.,]*", "", text)


def effects(result, name, prefix):
    """The verdicts of a benchmark that begin so: [(value, of what)]."""
    found = []
    for bench in result["benchmarks"]:
        for verdict in bench["verdicts"]:
            subject = verdict["text"].split(": ")[0]
            if bench["name"] == name and subject.startswith(prefix):
                found.append((verdict["value"], subject[len(prefix) :]))
    return found


def ratios(result, name, label, **labels):
    """The ratios of a benchmark's rows to what the kernel has."""
    return [
        (median(row, "ratio"), row[label])
        for bench in result["benchmarks"]
        if bench["name"] == name
        for row in bench["rows"]
        if median(row, "ratio") and all(row.get(k) == v for k, v in labels.items())
    ]


def spread(found, form):
    """From the least to the most, each with what it is of; None if there is none."""
    if not found:
        return None
    least, most = min(found), max(found)
    if least == most:
        return f"{form.format(least[0])} ({least[1]})" if least[1] else form.format(least[0])
    return f"{form.format(least[0])} ({least[1]}) to {form.format(most[0])} ({most[1]})"


# What is said, of which figures, and how one is written.
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
        "a call on a counter, as a ratio to eventfd",
        lambda r: ratios(r, "cost", "operation"),
        "{:.2f}",
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
    """On how many, in words."""
    count = result["machine"]["cpus"]
    return "one processor" if count == 1 else f"{count} processors"


def sentences(results):
    """Each effect on each machine, worst and best: [(what, [(machine, spread)])]."""
    said = []
    for what, figures, form in EFFECTS:
        found = [(processors(r), spread(figures(r), form)) for r in results]
        found = [(machine, text) for machine, text in found if text]
        if found:
            said.append((what, found))
    return said


def goals(result):
    """How many were met, and the verdicts of those that were missed."""
    verdicts = [
        (bench["name"], verdict)
        for bench in result["benchmarks"]
        for verdict in bench["verdicts"]
        if "goal" in verdict
    ]
    missed = [(name, v["text"]) for name, v in verdicts if not v["met"]]
    return len(verdicts) - len(missed), len(verdicts), missed


def caveat(result):
    """What its figures are no measure of, or None."""
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
