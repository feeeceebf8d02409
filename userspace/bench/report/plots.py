# SPDX-License-Identifier: GPL-2.0-only
"""The plots: one function for each benchmark."""

import io
import re

from result import Broken, find, median

# Replaced by the page's text colour, so that plots follow light and dark.
INK = "#010203"
COLOURS = {
    "eventfd": "#e07b39",
    "flowfd": "#3b82c4",
    "maximum": "#2a9d8f",
    "bucket": "#9b6fd8",
    "mapped": "#c4446b",
    "epoll ET": "#e07b39",
    "io_uring": "#2a9d8f",
    "ring": "#3b82c4",
    "ring, array": "#9b6fd8",
    "post": "#2a9d8f",
}
# Of other ways to signal.
OTHER = "#8a8f98"


def plotting():
    """Import matplotlib late: --help must work without it."""
    try:
        import matplotlib
    except ImportError:
        raise Broken("matplotlib is missing (package python3-matplotlib)")
    matplotlib.use("svg")
    matplotlib.rcParams.update(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": "flowfd-bench",
            "font.family": "sans-serif",
            "font.size": 11,
            "text.color": INK,
            "axes.edgecolor": INK,
            "axes.labelcolor": INK,
            "xtick.color": INK,
            "ytick.color": INK,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.axisbelow": True,
            "grid.color": "#808080",
            "grid.alpha": 0.25,
            "legend.frameon": False,
        }
    )
    from matplotlib.figure import Figure

    return Figure


def svg(figure, name):
    """The figure as an SVG element for a page, with unique ids."""
    out = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(out, format="svg", transparent=True, metadata=nothing)
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", text)
    text = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font: \1 sans-serif", text)
    return text.replace(INK, "currentColor").replace(
        "<svg", f'<svg role="img" aria-label="{name}"', 1
    )


def label_bars(axes, bars, values, digits, inside=False):
    """Write each value behind the end of its bar, or at its beginning."""
    texts = ["" if v is None else f"{v:,.{digits}f}" for v in values]
    if not inside:
        axes.bar_label(bars, labels=texts, padding=3, fontsize=9, color=INK)
        return
    for bar, text in zip(bars, texts):
        axes.annotate(
            text,
            (0, bar.get_y() + bar.get_height() / 2),
            xytext=(4, 0),
            textcoords="offset points",
            verticalalignment="center_baseline",
            fontsize=9,
            color="white",
        )


def group_bars(axes, groups, series, digits=0, inside=False):
    """Horizontal bars: series is (name, colour or colours, values or None)."""
    height = 0.8 / len(series)
    for i, (name, colour, values) in enumerate(series):
        places = [n + (i - (len(series) - 1) / 2) * height for n in range(len(groups))]
        bars = axes.barh(
            places,
            [v or 0 for v in values],
            height * 0.92,
            color=colour,
            label=name,
        )
        label_bars(axes, bars, values, digits, inside)
    axes.set_yticks(range(len(groups)), groups)
    axes.invert_yaxis()
    axes.grid(False, axis="y")
    axes.tick_params(axis="y", length=0)


def cost(bench, Figure):
    """Ratios to eventfd."""
    columns = (
        ("flowfd", "ratio", COLOURS["flowfd"]),
        ("with a maximum", "maximum_ratio", COLOURS["maximum"]),
        ("with a bucket", "bucket_ratio", COLOURS["bucket"]),
        ("in memory", "mapped_ratio", COLOURS["mapped"]),
    )
    rows = [row for row in bench["rows"] if row.get("ratio")]
    if not rows:
        return None
    figure = Figure(figsize=(9, 0.55 * len(rows) + 1.2), layout="constrained")
    axes = figure.subplots()
    group_bars(
        axes,
        [row["operation"] for row in rows],
        [(n, c, [median(row, key) for row in rows]) for n, key, c in columns],
        digits=3,
        inside=True,
    )
    axes.axvline(1, color=COLOURS["eventfd"], linewidth=1.5)
    axes.set_xlabel("cost as a ratio to eventfd (the line); shorter is better")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncol=4)
    return figure


def burst(bench, Figure):
    """CPU of writer and reader."""
    rows = bench["rows"]
    figure = Figure(figsize=(9, 0.7 * len(rows) + 1), layout="constrained")
    axes = figure.subplots()
    group_bars(
        axes,
        [f"{r['subject']}, {r['writer']},\nmaximum {r['maximum']}" for r in rows],
        [
            ("writer", COLOURS["flowfd"], [median(r, "wcpu_ms") for r in rows]),
            ("reader", COLOURS["maximum"], [median(r, "rcpu_ms") for r in rows]),
        ],
    )
    axes.set_xlabel("CPU time, ms")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncol=2)
    return figure


def latency(bench, Figure):
    """Share of events that waited longer."""
    figure = Figure(figsize=(9, 4.6), layout="constrained")
    axes = figure.subplots()
    styles = {
        "eventfd unlimited": (COLOURS["eventfd"], "-"),
        "flowfd unlimited": (COLOURS["flowfd"], "--"),
        "flowfd 100": (COLOURS["maximum"], "-"),
        "flowfd 10": (COLOURS["bucket"], "-"),
    }
    for row in bench["rows"]:
        spread = row.get("distribution")
        if not spread:
            continue
        colour, line = styles.get(f"{row['subject']} {row['maximum']}", (INK, "-"))
        axes.plot(
            [max(us, 1) for us in spread["us"]],
            spread["share_longer"],
            line,
            color=colour,
            linewidth=2,
            label=f"{row['subject']}, maximum {row['maximum']}",
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("latency, µs")
    axes.set_ylabel("share of events that waited longer")
    axes.legend(loc="lower left")
    return figure


def coalesce(bench, Figure):
    """Average batch."""
    rows = bench["rows"]
    figure = Figure(figsize=(9, 0.45 * len(rows) + 0.8), layout="constrained")
    axes = figure.subplots()
    colours = [COLOURS[row["subject"]] for row in rows]
    group_bars(
        axes,
        [f"{row['subject']}, maximum {row['maximum']}" for row in rows],
        [(None, colours, [median(row, "batch") for row in rows])],
        digits=1,
    )
    axes.set_xscale("log")
    axes.set_xlim(left=1)
    axes.set_xlabel("writes that one read takes, on average (logarithmic)")
    return figure


def channel_bars(bench, key, title, Figure, digits=3):
    """A bar for each way to signal."""
    rows = bench["rows"]
    figure = Figure(figsize=(9, 0.4 * len(rows) + 0.8), layout="constrained")
    axes = figure.subplots()
    colours = [COLOURS.get(row["channel"], OTHER) for row in rows]
    group_bars(
        axes,
        [row["channel"] for row in rows],
        [(None, colours, [median(row, key) for row in rows])],
        digits,
    )
    axes.margins(x=0.12)
    axes.set_xlabel(title)
    return figure


def signal(bench, Figure):
    """Cost of a signal and its take, as a ratio."""
    return channel_bars(
        bench, "ratio", "a signal and its take, as a ratio to an eventfd", Figure
    )


def contend(bench, Figure):
    """Cost of a signal while another thread takes, as a ratio."""
    title = "a signal while another CPU takes, as a ratio to an eventfd"
    return channel_bars(bench, "ratio", title, Figure)


def pingpong(bench, Figure):
    """Cost of a round of two threads, as a ratio."""
    title = "two threads that wake each other, as a ratio to an eventfd"
    return channel_bars(bench, "ratio", title, Figure)


def fanin(bench, Figure):
    """Cost of a signal of eight threads, as a ratio."""
    title = "a signal of eight threads, as a ratio to an eventfd"
    return channel_bars(bench, "ratio", title, Figure)


def loop(bench, Figure):
    """What a signal to an event loop costs, and a look of a busy loop."""
    channels = distinct(bench, "channel")
    figure = Figure(figsize=(9, 0.6 * len(channels) + 1.1), layout="constrained")
    axes = figure.subplots()
    series = [
        (
            name,
            colour,
            [median(find(bench, loop=which, channel=c), key) for c in channels],
        )
        for name, colour, which, key in (
            ("signal, idle loop", COLOURS["eventfd"], "idle", "signal"),
            ("signal, busy loop", COLOURS["flowfd"], "busy", "signal"),
            ("a look of the busy loop", COLOURS["maximum"], "busy", "look"),
        )
    ]
    group_bars(axes, channels, series)
    axes.margins(x=0.12)
    axes.set_xlabel(unit(bench))
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncol=3)
    return figure


def common_legend(figure, axes):
    """A legend above all panels: in the left one it would take that one's width."""
    figure.get_layout_engine().set(rect=(0, 0, 1, 0.93))
    handles, names = axes.get_legend_handles_labels()
    figure.legend(handles, names, loc="upper left", ncol=len(names))


def bucket(bench, Figure):
    """CPU of the consumer, and how often it read."""
    cases = []
    for row in bench["rows"]:
        case = (row["consumer"], row["publisher"])
        if case not in cases:
            cases.append(case)
    subjects = {}
    for row in bench["rows"]:
        name = row["subject"]
        if row["bucket"] != "none":
            name += f", bucket {row['bucket']}"
        subjects.setdefault(name, {"subject": row["subject"], "bucket": row["bucket"]})
    figure = Figure(figsize=(9, 0.95 * len(cases) + 1.1), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, key, title in (
        (left, "consumer_ms", "consumer CPU, ms"),
        (right, "reads_per_s", "reads per second (logarithmic)"),
    ):
        series = []
        for name, labels in subjects.items():
            rows = [find(bench, consumer=c, publisher=p, **labels) for c, p in cases]
            limited = labels["subject"] == "flowfd" and "bucket" in name
            colour = COLOURS["bucket" if limited else labels["subject"]]
            series.append((name, colour, [median(row, key) for row in rows]))
        group_bars(axes, [f"{c},\n{p}" for c, p in cases], series)
        axes.set_xlabel(title)
        axes.margins(x=0.18)
    # Both panels share the axis, and each of them turned it round.
    left.invert_yaxis()
    right.set_xscale("log")
    right.set_xlim(left=100)
    right.margins(x=0.25)
    common_legend(figure, left)
    return figure


def batch(bench, Figure):
    """How often the consumer is woken, and how long events wait."""
    rows = bench["rows"]
    figure = Figure(figsize=(9, 0.55 * len(rows) + 1.1), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    groups = [
        f"{r['subject']}, mark {r['mark']},\n{int(r['writes/s']):,} writes/s"
        for r in rows
    ]
    colours = [
        COLOURS["bucket" if r["mark"] != "none" and r["subject"] == "flowfd" else r["subject"]]
        for r in rows
    ]
    values = [median(r, "wakeups") for r in rows]
    group_bars(left, groups, [(None, colours, values)], 3)
    left.set_xlabel("wakeups for each write")
    left.margins(x=0.2)
    group_bars(
        right,
        groups,
        [
            ("p50", COLOURS["maximum"], [median(r, "p50_us") for r in rows]),
            ("p99", COLOURS["flowfd"], [median(r, "p99_us") for r in rows]),
        ],
    )
    # Both panels share the axis, and each of them turned it round.
    left.invert_yaxis()
    right.set_xscale("log")
    right.set_xlim(left=1)
    right.margins(x=0.25)
    right.set_xlabel("wait of an event, µs (logarithmic)")
    right.legend(loc="lower left", bbox_to_anchor=(0, 1), ncol=2)
    return figure


def overflow(bench, Figure):
    """How long a write takes, and what becomes of what was written."""
    rows = bench["rows"]
    figure = Figure(figsize=(9, 0.8 * len(rows) + 1.1), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    groups = [f"{r['subject']},\noverflow {r['overflow']}" for r in rows]
    for axes, title, series in (
        (
            left,
            "time of a write, µs (logarithmic)",
            (
                ("p50", COLOURS["maximum"], "p50_us"),
                ("p99", COLOURS["flowfd"], "p99_us"),
            ),
        ),
        (
            right,
            "of what was written, %",
            (
                ("read", COLOURS["maximum"], "read"),
                ("refused", COLOURS["eventfd"], "refused"),
                ("lost", COLOURS["bucket"], "lost"),
            ),
        ),
    ):
        bars = [(name, c, [median(r, key) for r in rows]) for name, c, key in series]
        group_bars(axes, groups, bars, 1)
        axes.set_xlabel(title)
        axes.margins(x=0.2)
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncol=3)
    # Both panels share the axis, and each of them turned it round.
    left.invert_yaxis()
    left.set_xscale("log")
    left.set_xlim(left=0.1)
    left.margins(x=0.25)
    return figure


def distinct(bench, label):
    """The values of a label, in the order of the table."""
    return list(dict.fromkeys(row[label] for row in bench["rows"]))


def watcher_bars(axes, bench, key, digits=0, **labels):
    """A group for each value of the first label, a bar for each watcher."""
    groups = distinct(bench, bench["labels"][0])
    first = bench["labels"][0]
    series = []
    for watcher in distinct(bench, "watcher"):
        rows = [find(bench, watcher=watcher, **{first: g}, **labels) for g in groups]
        series.append((watcher, COLOURS[watcher], [median(row, key) for row in rows]))
    group_bars(axes, groups, series, digits)
    axes.margins(x=0.18)


def ring(bench, Figure):
    """Cost of an event, by how many files are watched."""
    counts = distinct(bench, "files")
    watchers = distinct(bench, "watcher")
    figure = Figure(figsize=(9, 1.1 * len(counts) + 1.1), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, source in zip(panels, ("eventfd", "flowfd")):
        series = []
        for watcher in watchers:
            rows = [
                find(bench, source=source, files=count, watcher=watcher)
                for count in counts
            ]
            figures = [median(row, "total") for row in rows]
            series.append((watcher, COLOURS[watcher], figures))
        group_bars(axes, [f"{count} watched" for count in counts], series)
        axes.set_xlabel(f"an event of {source}, {unit(bench)}")
        axes.margins(x=0.2)
    panels[0].invert_yaxis()
    common_legend(figure, panels[0])
    return figure


def unit(bench):
    """Instructions or nanoseconds, from the note of the table."""
    return (bench.get("note") or "").split(" ")[0].rstrip(",;")


def control(bench, Figure):
    """Cost of adding and removing a file."""
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    watcher_bars(left, bench, "add")
    watcher_bars(right, bench, "remove")
    left.set_xlabel(f"adding a file, {unit(bench)}")
    right.set_xlabel(f"removing a file, {unit(bench)}")
    left.invert_yaxis()
    common_legend(figure, left)
    return figure


def mark(bench, Figure):
    """Cost of a write and a read, as a ratio."""
    rows = bench["rows"]
    figure = Figure(figsize=(9, 0.4 * len(rows) + 0.9), layout="constrained")
    axes = figure.subplots()
    colours = [COLOURS["ring" if "ring" in r["watched by"] else "eventfd"] for r in rows]
    group_bars(
        axes,
        [f"{row['source']}, watched by: {row['watched by']}" for row in rows],
        [(None, colours, [median(row, "ratio") for row in rows])],
        digits=3,
        inside=True,
    )
    axes.set_xlabel("a write and a read, as a ratio to a file that nobody watches")
    return figure


def memory(bench, Figure):
    """Slab bytes of a watched file."""
    figure = Figure(figsize=(9, 2.8), layout="constrained")
    axes = figure.subplots()
    watcher_bars(axes, bench, "slab")
    axes.set_xlabel("bytes in slabs for a watched file")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncol=2)
    return figure


def wakeup(bench, Figure):
    """Share of wakeups that took longer."""
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    axes = figure.subplots()
    for row in bench["rows"]:
        spread = row.get("distribution")
        if spread:
            axes.plot(
                spread["us"],
                spread["share_longer"],
                color=COLOURS[row["watcher"]],
                linewidth=2,
                label=row["watcher"],
            )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("from the write until the event is taken, µs")
    axes.set_ylabel("share of events that took longer")
    axes.legend(loc="lower left")
    return figure


def producers(bench, Figure):
    """Time per write, by threads."""
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    axes = figure.subplots()
    threads = distinct(bench, "threads")
    for watcher in distinct(bench, "watcher"):
        rows = [find(bench, threads=count, watcher=watcher) for count in threads]
        axes.plot(
            threads,
            [median(row, "ns_per_write") for row in rows],
            "o-",
            color=COLOURS[watcher],
            linewidth=2,
            label=watcher,
        )
    axes.set_ylim(bottom=0)
    axes.set_xlabel("threads that write")
    axes.set_ylabel("ns per write, all threads together")
    axes.legend(loc="lower left")
    return figure
