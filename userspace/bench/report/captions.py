# SPDX-License-Identifier: GPL-2.0-only
"""Captions of the plots, which depend on the figures."""

from result import find, median


def listed(names):
    """'a', 'a and b', 'a, b and c'."""
    names = list(names)
    if len(names) < 2:
        return "".join(names)
    return ", ".join(names[:-1]) + " and " + names[-1]


# Ratios below this are called even.
EVEN = 1.005


def cost(bench):
    rows = [row for row in bench["rows"] if row.get("ratio")]
    slower = [
        f"“{row['operation']}” ({median(row, 'ratio'):.2f})"
        for row in rows
        if median(row, "ratio") > EVEN
    ]
    if not slower:
        return "Left of the line flowfd is cheaper than eventfd: it is everywhere."
    faster = [f"“{r['operation']}”" for r in rows if median(r, "ratio") <= EVEN]
    text = f"Right of the line flowfd costs more than eventfd: {listed(slower)}. "
    if faster:
        text += f"It costs no more for {listed(faster)}."
    return text


def burst(bench):
    text = ""
    free = bench["rows"][0]
    if free["maximum"] == "unlimited":
        batch = median(free, "writes") / max(median(free, "reads"), 1)
        text = (
            "Without a maximum the writer never rests, for events that the "
            f"reader takes {batch:,.0f} at a time. "
        )
    spin = median(find(bench, writer="O_NONBLOCK+spin", maximum="10"), "wcpu_ms")
    wait = median(find(bench, writer="blocking", maximum="10"), "wcpu_ms")
    if wait is not None:
        text += f"With a maximum of 10 it waits for room ({wait:.0f} ms). "
    if spin is not None:
        text += (
            "Where flowfd does not help: a non-blocking writer that tries "
            f"again at once ({spin:.0f} ms) defeats flow control; it should "
            "poll for POLLOUT."
        )
    return text


def latency(bench):
    text = (
        "The further left a curve ends, the shorter the worst waits. Without "
        "a maximum the queue grows for as long as the writer is faster. "
    )
    if find(bench, maximum="10"):
        text += (
            "With one, the queue stays short because the writer waits: its "
            "own delay is part of the latency shown, and it gets no more "
            "events through than the reader takes."
        )
    return text


def coalesce(bench):
    text = "Each read takes all that was written since the last one. "
    if find(bench, maximum="10"):
        text += (
            "A maximum of N bounds that to N - 1, at the price of more reads "
            "and of a writer that waits."
        )
    return text


def bucket(bench):
    with_bucket = [row for row in bench["rows"] if row["bucket"] != "none"]
    if not with_bucket:
        return "Without a bucket a consumer is woken for nearly every event."
    losses = []
    for row in with_bucket:
        control = find(
            bench,
            consumer=row["consumer"],
            publisher=row["publisher"],
            subject="eventfd",
        )
        before, after = median(control, "consumer_ms"), median(row, "consumer_ms")
        if before and after > 0.9 * before:
            losses.append(
                f"“{row['consumer']}, {row['publisher']}, {row['subject']}” "
                f"({before:.0f} to {after:.0f} ms)"
            )
    text = (
        "The bucket caps how often a sleeping consumer is woken; the events "
        "arrive all the same, in fewer reads. "
    )
    if losses:
        text += f"It saves little or nothing for {listed(losses)}. "
    return text + (
        "It limits wakeups, never data: a consumer that asks with poll(2) "
        "while events keep coming from another CPU finds them and does not "
        "sleep."
    )


def batch(bench):
    marked = [row for row in bench["rows"] if row["mark"] != "none"]
    if not marked:
        return "Without a mark a consumer is woken for nearly every event."
    text = (
        "With a mark of 64 a consumer sleeps until 64 events are there, or 2 ms after "
        "the first. What it gains in wakeups an event pays in waiting: the first of 64 "
        "waits for the last one. Where few events come the delay bounds that. "
    )
    urgent = find(
        bench, subject="flowfd", mark="64, 2 ms, urgent", **{"writes/s": "100000"}
    )
    p99 = median(urgent, "p99_us")
    if p99 is not None:
        text += f"An urgent write does not wait (p99 {p99:,.0f} µs), but wakes. "
    chatty = [row for row in marked if row["subject"] == "mapped"]
    if any((median(row, "calls") or 0) > 0.5 for row in chatty):
        text += (
            "A mark does not suit a mapped counter whose consumer sleeps: each add "
            "below the mark is a system call, as the kernel has to count."
        )
    return text


def overflow(bench):
    text = (
        "The writer is twice as fast as the reader. Somebody must pay: the queue that "
        "grows, the writer that waits, or the values that are lost. "
    )
    lost = [
        f"{median(row, 'lost'):.0f} % with “{row['overflow']}”"
        for row in bench["rows"]
        if median(row, "lost")
    ]
    if lost:
        text += f"The counter says how much that is: {listed(lost)}."
    return text


def ring(bench):
    text = (
        "One thread writes to all files and then takes all events. The fewer "
        "events there are at a time, the more a system call for taking them "
        "weighs: the ring has none."
    )
    lost = [
        f"{row['files']} files of {row['source']} ({median(row, 'ratio'):.2f})"
        for row in bench["rows"]
        if row["watcher"] == "ring" and (median(row, "ratio") or 0) > EVEN
    ]
    if lost:
        text += f" It costs more than epoll with {listed(lost)}."
    return text


def control(bench):
    text = "A ring and io_uring take a thousand files in one system call. "
    lost = [
        f"{row['source']} ({median(row, 'add_ratio'):.2f}, "
        f"{median(row, 'remove_ratio'):.2f})"
        for row in bench["rows"]
        if row["watcher"] == "ring"
        and max(median(row, "add_ratio") or 0, median(row, "remove_ratio") or 0) > EVEN
    ]
    if lost:
        text += (
            "Adding or removing costs the ring more than epoll with "
            f"{listed(lost)}: it asks the kernel to be told of the close, and "
            "does not keep the file open."
        )
    return text


def mark(bench):
    return (
        "As soon as a ring watches one socket, each read and write of every "
        "socket looks whether somebody wants to know of it; the same with pipes. "
        "That is what “ring, another” costs."
    )


def memory(bench):
    return (
        "What the kernel's slab caches grow by for each watched file; a socket "
        "also has a mark, by which its close is noticed. A ring's mapping and its "
        "tables come on top: some 33 bytes for each file that it can watch."
    )


def wakeup(bench):
    return "The further left a curve is, the sooner a sleeping consumer has its event."


def producers(bench):
    return (
        "Each thread writes to 32 files of its own. With more threads than "
        "processors the scheduler decides, and the differences are small."
    )


def beaten(bench, **labels):
    """Ways of flowfd that cost more than an eventfd, as text."""
    return listed(
        f"{row['channel']} ({median(row, 'ratio'):.2f})"
        for row in bench["rows"]
        if row["channel"] in ("flowfd", "mapped", "post")
        and (median(row, "ratio") or 0) > EVEN
        and all(row[key] == value for key, value in labels.items())
    )


def signal(bench):
    return (
        "One thread signals and takes that, so nobody sleeps: what is left are "
        "system calls, where there are any. A futex and a condition variable "
        "cannot be polled, and no event loop can wait for them beside files."
    )


def contend(bench):
    return (
        "Signaller and taker have a CPU each, and compete for the cache lines or "
        "for the lock of the channel."
    )


def pingpong(bench):
    text = "Each signal wakes a thread, so each way enters the kernel twice."
    lost = beaten(bench)
    if lost:
        text += f" It costs more than with an eventfd by {lost}."
    return text


def fanin(bench):
    return (
        "The taker sleeps when there is nothing. In memory only the signal that "
        "wakes it is a system call."
    )


def loop(bench):
    return (
        "A busy loop looks for events between its other work. A mapped counter "
        "that an epoll watches gains nothing there: the epoll must be told each "
        "time the counter becomes ready. A post tells only a loop that sleeps."
    )
