# SPDX-License-Identifier: GPL-2.0-only
"""The page: conclusion, goals, the machine, and a section for each benchmark."""

import html

import captions
import conclusion
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
.note { border-left: 4px solid var(--faint); padding-left: 0.8rem; }
ul.figures li { margin: 0.3rem 0; white-space: normal; }
nav a { margin-right: 0.8rem; white-space: nowrap; }
a { color: inherit; }
@media (max-width: 46rem) {
  table.goals thead { display: none; }
  table.goals tr { display: block; padding: 0.4rem 0;
    border-bottom: 1px solid var(--line); }
  table.goals td { display: block; padding: 0; border: 0; white-space: normal; }
  table.goals td:empty { display: none; }
  table.goals td[data-on]::before { content: attr(data-on) ": ";
    color: var(--faint); }
}
"""

SECTIONS = {
    "cost": (plots.cost, captions.cost),
    "ring": (plots.ring, captions.ring),
    "control": (plots.control, captions.control),
    "mark": (plots.mark, captions.mark),
    "memory": (plots.memory, captions.memory),
    "signal": (plots.signal, captions.signal),
    "contend": (plots.contend, captions.contend),
    "pingpong": (plots.pingpong, captions.pingpong),
    "fanin": (plots.fanin, captions.fanin),
    "loop": (plots.loop, captions.loop),
    "burst": (plots.burst, captions.burst),
    "latency": (plots.latency, captions.latency),
    "coalesce": (plots.coalesce, captions.coalesce),
    "bucket": (plots.bucket, captions.bucket),
    "batch": (plots.batch, captions.batch),
    "overflow": (plots.overflow, captions.overflow),
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
    """All rows and figures, without empty columns."""
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


def outcome(text):
    """A verdict without its subject, which the other machine's cell has."""
    return text.split(": ", 1)[-1]


def others(bench, verdict, results):
    """Cells: the same effect on the other machines."""
    kind = conclusion.kind(verdict["text"])
    for result in results:
        texts = [
            other["text"]
            for of_it in result["benchmarks"]
            if of_it["name"] == bench["name"]
            for other in of_it["verdicts"]
            if conclusion.kind(other["text"]) == kind
        ]
        text = outcome(texts[0]) if texts else ""
        machine = html.escape(conclusion.processors(result))
        yield f'<td data-on="{machine}">{html.escape(text)}</td>' if text else "<td></td>"


def summary(result, beside):
    """All verdicts, with their goals and those of other machines."""
    rows = [
        f"<tr><td>{html.escape(bench['name'])}</td>"
        f"<td>{html.escape(verdict['text'])}</td>{goal(verdict)}"
        f"{''.join(others(bench, verdict, beside))}</tr>"
        for bench in result["benchmarks"]
        for verdict in bench["verdicts"]
    ]
    if not rows:
        return ""
    more = [f"<th>on {html.escape(conclusion.processors(r))}</th>" for r in beside]
    return (
        '<h2 id="-goals">Goals</h2>'
        '<div class="scroll"><table class="goals"><thead><tr><th>benchmark</th>'
        f"<th>measured on {html.escape(conclusion.processors(result))}</th>"
        f"<th>goal</th><th></th>{''.join(more)}</tr></thead><tbody>"
        + "".join(rows)
        + "</tbody></table></div>"
    )


def conclude(result, beside):
    """The conclusion, at the top of the page."""
    met, of, missed = conclusion.goals(result)
    out = []
    note = conclusion.caveat(result)
    if note:
        out.append(f'<p class="note">{html.escape(note)}</p>')
    out.append('<ul class="figures">')
    if of:
        out.append(f"<li>{met} of {of} goals are met.</li>")
    out += [
        f'<li class="missed">missed, {html.escape(name)}: {html.escape(text)}</li>'
        for name, text in missed
    ]
    for what, found in conclusion.sentences([result] + beside):
        text = "; ".join(f"on {machine} {figures}" for machine, figures in found)
        out.append(f"<li>{html.escape(what)}: {html.escape(text)}</li>")
    out.append("</ul>")
    return "".join(out)


def contents(result):
    """Links to all sections."""
    links = [("-goals", "Goals"), ("-machine", "Machine")]
    links += [(bench["name"], bench["name"]) for bench in result["benchmarks"]]
    return (
        "<nav>"
        + "".join(f'<a href="#{id}">{html.escape(text)}</a> ' for id, text in links)
        + "</nav>"
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
        '<h2 id="-machine">Machine</h2><dl>'
        + "".join(
            f"<dt>{html.escape(k)}</dt><dd>{html.escape(v)}</dd>" for k, v in pairs
        )
        + "</dl>"
    )


def section(bench, Figure):
    """A benchmark: description, caption, plot and table."""
    plot, caption = SECTIONS.get(bench["name"], (None, None))
    out = [
        f'<section id="{html.escape(bench["name"])}">'
        f"<h2>{html.escape(bench['name'])}</h2>",
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


def page(result, beside):
    """The whole document; beside are results of other machines."""
    Figure = plots.plotting()
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>flowfd-bench</title><style>{STYLE}</style></head><body>"
        "<h1>flowfd-bench</h1>"
        '<p class="faint">Event descriptors with flow control against the '
        "stock eventfd(2), and rings against epoll(7) and io_uring(7), measured "
        "side by side in one run.</p>"
        + conclude(result, beside)
        + contents(result)
        + summary(result, beside)
        + facts(result)
        + '<p class="faint">Figures below are medians over the rounds; the small '
        "ones are minimum and maximum.</p>"
        + "".join(section(bench, Figure) for bench in result["benchmarks"])
        + "</body></html>\n"
    )
