#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Make one HTML page with tables and plots from the JSON of flowfd-bench.

Installed as flowfd-bench-report; flowfd-bench --html runs it. Whatever the
JSON lacks (benchmarks that did not run, flowfd without its module) is left out.
"""

import argparse
import html
import io
import json
import re
import sys

FORMAT_VERSION = 1

# Replaced by the page's text colour, so that plots follow light and dark.
INK = "#010203"
COLOURS = {
    "eventfd": "#e07b39",
    "flowfd": "#3b82c4",
    "maximum": "#2a9d8f",
    "bucket": "#9b6fd8",
}

STYLE = """
:root { color-scheme: light dark; --ink: #1d2430; --paper: #ffffff;
  --faint: #667085; --line: #d5dae1; --good: #1a7f4b; --bad: #c0362c; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ee;
  --paper: #14181f; --faint: #98a2b3; --line: #343b47; --good: #4cc38a;
  --bad: #f2776c; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); max-width: 62rem; margin: 2rem auto;
  padding: 0 1.2rem; }
h1 { font-size: 1.7rem; margin-bottom: 0.2rem; }
h2 { font-size: 1.25rem; margin: 2.6rem 0 0.2rem; padding-top: 0.8rem;
  border-top: 1px solid var(--line); }
p { margin: 0.4rem 0 0.8rem; }
.faint { color: var(--faint); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.9rem; margin: 0.8rem 0;
  font-variant-numeric: tabular-nums; }
th, td { padding: 0.25rem 0.8rem 0.25rem 0; text-align: left;
  border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; white-space: nowrap; }
td.figure, th.figure { text-align: right; white-space: nowrap; }
td small { color: var(--faint); }
.goal { white-space: nowrap; }
.met { color: var(--good); white-space: nowrap; }
.missed { color: var(--bad); font-weight: 600; white-space: nowrap; }
figure { margin: 1rem 0; }
figure svg { width: 100%; height: auto; }
figcaption { max-width: 52rem; }
dl { display: grid; grid-template-columns: max-content 1fr;
  gap: 0.1rem 1rem; font-size: 0.9rem; }
dt { color: var(--faint); }
dd { margin: 0; overflow-wrap: anywhere; }
"""


class Broken(Exception):
    """The input is not what flowfd-bench writes."""


def median(row, key):
    """The median of a figure, or None where it was not measured."""
    series = row and row.get(key)
    return series["median"] if series else None


def find(bench, **labels):
    """The row with these labels, or None."""
    for row in bench["rows"]:
        if all(row.get(key) == value for key, value in labels.items()):
            return row
    return None


# Plots


def plotting():
    """Import matplotlib when it is needed: --help must not want it."""
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
    """The figure as an element to put into a page, with ids of its own."""
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
    """Horizontal bars: series is (name, colour, values) with None for gaps."""
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


def plot_cost(bench, Figure):
    """Ratios to eventfd."""
    columns = (
        ("flowfd", "ratio", COLOURS["flowfd"]),
        ("with a maximum", "maximum_ratio", COLOURS["maximum"]),
        ("with a bucket", "bucket_ratio", COLOURS["bucket"]),
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
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncol=3)
    return figure


def plot_burst(bench, Figure):
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


def plot_latency(bench, Figure):
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


def plot_coalesce(bench, Figure):
    """Average batch."""
    rows = bench["rows"]
    figure = Figure(figsize=(9, 0.45 * len(rows) + 0.8), layout="constrained")
    axes = figure.subplots()
    batches = [median(row, "batch") for row in rows]
    bars = axes.barh(
        [f"{r['subject']}, maximum {r['maximum']}" for r in rows],
        batches,
        0.7,
        color=[COLOURS[row["subject"]] for row in rows],
    )
    label_bars(axes, bars, batches, 1)
    axes.invert_yaxis()
    axes.grid(False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.set_xscale("log")
    axes.set_xlim(left=1)
    axes.set_xlabel("writes that one read takes, on average (logarithmic)")
    return figure


def plot_bucket(bench, Figure):
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
            colour = COLOURS["bucket" if "bucket" in name else labels["subject"]]
            series.append((name, colour, [median(row, key) for row in rows]))
        group_bars(axes, [f"{c},\n{p}" for c, p in cases], series)
        axes.set_xlabel(title)
        axes.margins(x=0.18)
    # Both panels share the axis, and each of them turned it round.
    left.invert_yaxis()
    right.set_xscale("log")
    right.set_xlim(left=100)
    right.margins(x=0.25)
    # As a legend of the left panel it would take that panel's width.
    figure.get_layout_engine().set(rect=(0, 0, 1, 0.93))
    handles, names = left.get_legend_handles_labels()
    figure.legend(handles, names, loc="upper left", ncol=len(names))
    return figure


# What one sees, in words that the figures back


def listed(names):
    """'a', 'a and b', 'a, b and c'."""
    names = list(names)
    if len(names) < 2:
        return "".join(names)
    return ", ".join(names[:-1]) + " and " + names[-1]


# Ratios below this are called even.
EVEN = 1.005


def caption_cost(bench):
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


def caption_burst(bench):
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


def caption_latency(bench):
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


def caption_coalesce(bench):
    text = "Each read takes all that was written since the last one. "
    if find(bench, maximum="10"):
        text += (
            "A maximum of N bounds that to N - 1, at the price of more reads "
            "and of a writer that waits."
        )
    return text


def caption_bucket(bench):
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
                f"“{row['consumer']}, {row['publisher']}” "
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


SECTIONS = {
    "cost": (plot_cost, caption_cost),
    "burst": (plot_burst, caption_burst),
    "latency": (plot_latency, caption_latency),
    "coalesce": (plot_coalesce, caption_coalesce),
    "bucket": (plot_bucket, caption_bucket),
}


# The page


def cell(series, digits):
    """A table cell: the median and, below it, the spread."""
    if not series:
        return '<td class="figure">–</td>'
    text = f"{series['median']:,.{digits}f}"
    if series["max"] > series["min"]:
        text += (
            f"<br><small>{series['min']:,.{digits}f}–"
            f"{series['max']:,.{digits}f}</small>"
        )
    return f'<td class="figure">{text}</td>'


def table(bench):
    """All rows and figures; a column that nobody filled is left out."""
    rows = bench["rows"]
    columns = [c for c in bench["columns"] if any(r.get(c["key"]) for r in rows)]
    out = ['<div class="scroll"><table><thead><tr>']
    out += [f"<th>{html.escape(label)}</th>" for label in bench["labels"]]
    out += [f'<th class="figure">{html.escape(c["title"])}</th>' for c in columns]
    out.append("</tr></thead><tbody>")
    for row in rows:
        out.append("<tr>")
        out += [f"<td>{html.escape(row[label])}</td>" for label in bench["labels"]]
        out += [cell(row.get(c["key"]), c["digits"]) for c in columns]
        out.append("</tr>")
    out.append("</tbody></table></div>")
    return "".join(out)


def goal(verdict):
    """Two cells: the goal, and whether it was met."""
    if "goal" not in verdict:
        return "<td></td><td></td>"
    sign = {"<=": "at most", ">=": "at least"}[verdict["relation"]]
    word = "met" if verdict["met"] else "missed"
    return (
        f'<td class="goal">{sign} {verdict["goal"]:g}</td>'
        f'<td class="{word}">{word}</td>'
    )


def summary(result):
    """Every measured effect, with its goal."""
    rows = [
        f"<tr><td>{html.escape(bench['name'])}</td>"
        f"<td>{html.escape(verdict['text'])}</td>{goal(verdict)}</tr>"
        for bench in result["benchmarks"]
        for verdict in bench["verdicts"]
    ]
    if not rows:
        return ""
    return (
        '<div class="scroll"><table><thead><tr><th>benchmark</th>'
        "<th>measured effect</th><th>goal</th><th></th></tr></thead><tbody>"
        + "".join(rows)
        + "</tbody></table></div>"
    )


def facts(result):
    """The machine, and how it was measured."""
    machine, settings = result["machine"], result["settings"]
    module = machine.get("module")
    loaded = "not loaded"
    if module:
        loaded = f"{module.get('version') or 'no version'}, ABI {module['abi_version']}"
    pairs = (
        ("date", result["date"]),
        ("kernel", f"{machine['kernel']} ({machine['build']})"),
        ("architecture", machine["architecture"]),
        ("processor", machine.get("processor") or "unknown"),
        ("CPUs", str(machine["cpus"])),
        ("clock source", machine.get("clocksource") or "unknown"),
        ("flowfd module", loaded),
        ("flowfd-bench", result["tool"]),
        ("command", " ".join(result["command"])),
        (
            "rounds",
            f"{settings['rounds']}, every other one in reverse order; "
            f"loops of {settings['iterations']:,}",
        ),
    )
    return (
        "<dl>"
        + "".join(
            f"<dt>{html.escape(k)}</dt><dd>{html.escape(v)}</dd>" for k, v in pairs
        )
        + "</dl>"
    )


def section(bench, Figure):
    """A benchmark: what was done, what one sees, the plot and the table."""
    plot, caption = SECTIONS.get(bench["name"], (None, None))
    out = [
        f"<section><h2>{html.escape(bench['name'])}</h2>",
        f'<p class="faint">{html.escape(bench["title"])}',
        f" ({html.escape(bench['note'])})" if bench.get("note") else "",
        "</p>",
    ]
    figure = plot(bench, Figure) if plot and bench["rows"] else None
    if figure:
        out.append(
            f"<figure>{svg(figure, bench['name'])}"
            f"<figcaption>{html.escape(caption(bench))}</figcaption></figure>"
        )
    out += [table(bench), "</section>"]
    return "".join(out)


def page(result):
    """The whole document."""
    Figure = plotting()
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>flowfd-bench</title><style>{STYLE}</style></head><body>"
        "<h1>flowfd-bench</h1>"
        '<p class="faint">Event descriptors with flow control against the '
        "stock eventfd(2), measured side by side in one run. Figures are "
        "medians over the rounds; the small ones below are minimum and "
        "maximum.</p>"
        + facts(result)
        + summary(result)
        + "".join(section(bench, Figure) for bench in result["benchmarks"])
        + "</body></html>\n"
    )


def load(path):
    """Read and check the input."""
    try:
        if path == "-":
            result = json.load(sys.stdin)
        else:
            with open(path, encoding="utf-8") as file:
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


def main():
    parser = argparse.ArgumentParser(
        prog="flowfd-bench-report",
        description="Make one HTML page from the JSON that flowfd-bench wrote.",
    )
    parser.add_argument(
        "result", help="file from flowfd-bench --json; -: standard input"
    )
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
        print(f"flowfd-bench-report: {subject}: {why}", file=sys.stderr)
        return 1
    except (KeyError, TypeError) as error:
        print(
            f"flowfd-bench-report: {subject}: not a result of flowfd-bench: "
            f"{error!r}",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
