# SPDX-License-Identifier: GPL-2.0-only
"""The page: the machine, the goals, and a section for each benchmark."""

import html

import captions
import plots

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

SECTIONS = {
    "cost": (plots.cost, captions.cost),
    "ring": (plots.ring, captions.ring),
    "control": (plots.control, captions.control),
    "mark": (plots.mark, captions.mark),
    "memory": (plots.memory, captions.memory),
    "burst": (plots.burst, captions.burst),
    "latency": (plots.latency, captions.latency),
    "coalesce": (plots.coalesce, captions.coalesce),
    "bucket": (plots.bucket, captions.bucket),
    "wakeup": (plots.wakeup, captions.wakeup),
    "producers": (plots.producers, captions.producers),
}


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
            f"<figure>{plots.svg(figure, bench['name'])}"
            f"<figcaption>{html.escape(caption(bench))}</figcaption></figure>"
        )
    out += [table(bench), "</section>"]
    return "".join(out)


def page(result):
    """The whole document."""
    Figure = plots.plotting()
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>flowfd-bench</title><style>{STYLE}</style></head><body>"
        "<h1>flowfd-bench</h1>"
        '<p class="faint">Event descriptors with flow control against the '
        "stock eventfd(2), and rings against epoll(7) and io_uring(7), measured "
        "side by side in one run. Figures are medians over the rounds; the small "
        "ones below are minimum and maximum.</p>"
        + facts(result)
        + summary(result)
        + "".join(section(bench, Figure) for bench in result["benchmarks"])
        + "</body></html>\n"
    )
