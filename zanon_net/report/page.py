# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Report as one page of HTML that loads nothing, and as a part of a notebook.

Every text is escaped. The policy in the head of the page permits a style, and nothing else.
"""

from collections.abc import Iterator
from html import escape

from zanon_net.report.charts import drawing
from zanon_net.report.parts import Contents, Section, Table, TimeBars

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
WIDE = 4
"""Columns of a table whose rows a narrow screen shows one below another."""
PAGE_STYLE = """
html { background: #f4f5f7 } body { margin: 0; padding: 24px }
@media (prefers-color-scheme: dark) { html { background: #0f1216 } }
@media (max-width: 760px) { body { padding: 8px } }
@media print { html { background: #fff } body { padding: 0 } }
"""
STYLE = """
.zanon-report { --back: #fff; --text: #1c2430; --faint: #5b6675; --rule: #dfe3e8; --soft: #f4f6f8;
 --released: #1f6feb; --suppressed: #e0a030; --none: #b9c1cc; --unknown: #b9c1cc;
 --service: #0f8a7e; --good: #1a7f46; --bad: #b3261e;
 box-sizing: border-box; max-width: 1120px; margin: 0 auto; padding: 28px 32px;
 border: 1px solid var(--rule); border-radius: 12px; background: var(--back); color: var(--text);
 font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif }
@media (prefers-color-scheme: dark) { .zanon-report { --back: #171b21; --text: #e4e8ee;
 --faint: #9aa5b4; --rule: #2c333d; --soft: #1f252d; --released: #5a9bff; --suppressed: #d9a441;
 --none: #5a6675; --unknown: #5a6675; --service: #3db8aa; --good: #57c785; --bad: #ff8a80 } }
.zanon-report * { box-sizing: border-box }
.zanon-report h1 { margin: 0; font-size: 26px; line-height: 1.25 }
.zanon-report h2 { margin: 0 0 4px; font-size: 18px }
.zanon-report p { margin: 0 0 8px; color: var(--faint); max-width: 80ch }
.zanon-report .period { font-size: 15px; margin: 4px 0 12px }
.zanon-report .state { font-weight: 600; color: var(--good) }
.zanon-report .state.open { color: var(--bad) }
.zanon-report .tiles { display: grid; gap: 12px; margin: 20px 0 8px; padding: 0; list-style: none;
 grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)) }
.zanon-report .tiles li { margin: 0; padding: 12px 14px; border-radius: 8px;
 background: var(--soft) }
.zanon-report .tiles b { display: block; font-size: 26px; line-height: 1.2;
 font-variant-numeric: tabular-nums }
.zanon-report .tiles span { display: block; font-size: 13px; color: var(--faint) }
.zanon-report .tiles .what { font-weight: 600; color: var(--text) }
.zanon-report .notes { margin: 16px 0 0; padding: 12px 16px 12px 34px; border-radius: 8px;
 border: 1px solid var(--suppressed); background: var(--soft) }
.zanon-report section { margin-top: 26px; padding-top: 22px; border-top: 1px solid var(--rule) }
.zanon-report .both { display: grid; gap: 20px 28px; align-items: start; margin-top: 10px;
 grid-template-columns: minmax(0, 3fr) minmax(min-content, 2fr) }
.zanon-report figure { margin: 0; overflow-x: auto }
.zanon-report svg { display: block; width: 100%; min-width: 540px; height: auto;
 font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif }
.zanon-report svg.small { min-width: 0; max-width: 480px }
.zanon-report text { fill: var(--text) } .zanon-report text.end { text-anchor: end }
.zanon-report text.unit { fill: var(--faint) }
.zanon-report .grid { stroke: var(--rule); fill: none }
.zanon-report .axis { stroke: var(--faint); fill: none }
.zanon-report .range { stroke: var(--text); stroke-width: 1.5; fill: none }
.zanon-report .line { stroke: var(--released); stroke-width: 2.5; fill: none }
.zanon-report .released { fill: var(--released); background: var(--released) }
.zanon-report .suppressed { fill: var(--suppressed); background: var(--suppressed) }
.zanon-report .none { fill: var(--none); background: var(--none) }
.zanon-report .unknown { fill: var(--unknown); background: var(--unknown) }
.zanon-report .service { fill: var(--service); background: var(--service) }
.zanon-report .legend { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 0 0 10px;
 padding: 0; list-style: none; font-size: 13px }
.zanon-report .legend li { margin: 0 }
.zanon-report .legend i { display: inline-block; width: 12px; height: 12px; margin-right: 6px;
 border-radius: 2px; vertical-align: -1px }
.zanon-report .rows { max-height: 380px; overflow: auto; border: 1px solid var(--rule);
 border-radius: 8px }
.zanon-report .alone .rows { max-height: none }
.zanon-report table { width: 100%; margin: 0; border-collapse: collapse; font-size: 13px;
 background: var(--back); color: var(--text) }
.zanon-report th, .zanon-report td { padding: 5px 10px; text-align: right; vertical-align: top;
 border: 0; border-bottom: 1px solid var(--rule); background: var(--back); color: var(--text);
 font-variant-numeric: tabular-nums; white-space: nowrap }
.zanon-report th:first-child, .zanon-report thead th, .zanon-report .words td {
 white-space: normal; overflow-wrap: anywhere }
.zanon-report thead th { overflow-wrap: normal }
.zanon-report .words td { overflow-wrap: break-word }
.zanon-report th:first-child { min-width: 12ch } .zanon-report .words th { text-align: left }
.zanon-report tr:last-child > * { border-bottom: 0 }
.zanon-report thead th { position: sticky; top: 0; background: var(--soft); font-weight: 600 }
.zanon-report th:first-child, .zanon-report .words td { text-align: left }
.zanon-report tbody th { font-weight: 400 } .zanon-report .words tbody th { font-weight: 600 }
.zanon-report .good { color: var(--good); font-weight: 600 }
.zanon-report .bad { color: var(--bad); font-weight: 600 }
.zanon-report .cell { fill: var(--released) } .zanon-report text.middle { text-anchor: middle }
.zanon-report .blanks { display: grid; gap: 0 28px; margin: 14px 0 0; padding: 0;
 list-style: none; grid-template-columns: repeat(auto-fit, minmax(200px, 1fr)) }
.zanon-report .blanks li { margin: 44px 0 0; padding-top: 4px; font-size: 13px;
 border-top: 1px solid var(--faint); color: var(--faint) }
.zanon-report footer { margin-top: 26px; padding-top: 14px; border-top: 1px solid var(--rule);
 font-size: 13px; color: var(--faint) }
@media (max-width: 1040px) { .zanon-report .both { grid-template-columns: minmax(0, 1fr) } }
@media (max-width: 760px) { .zanon-report { padding: 14px }
 .zanon-report .wide { max-height: none } .zanon-report .wide thead { display: none }
 .zanon-report .wide tr { display: flex; flex-wrap: wrap; padding: 4px 0;
 border-bottom: 1px solid var(--rule) }
 .zanon-report .wide tr > * { flex: 1 0 30%; border: 0; text-align: left;
 white-space: normal }
 .zanon-report .wide tr > th { flex-basis: 100% }
 .zanon-report .wide td::before { content: attr(data-title); display: block;
 font-weight: 400; color: var(--faint) } }
@media print { .zanon-report { --back: #fff; --text: #000; --faint: #444; --rule: #bbb;
 --soft: #fff; --released: #1f4e9e; --suppressed: #e8b04a; --none: #d5dae0; --unknown: #d5dae0;
 --service: #0f6b62; --good: #145c33; --bad: #8c1d18;
 max-width: none; padding: 0; border: 0; font-size: 12px; print-color-adjust: exact;
 -webkit-print-color-adjust: exact }
 .zanon-report .tiles { grid-template-columns: repeat(auto-fit, minmax(100px, 1fr)); gap: 6px }
 .zanon-report .tiles li { border: 1px solid var(--rule); padding: 8px }
 .zanon-report .tiles b { font-size: 20px }
 .zanon-report .both { grid-template-columns: minmax(0, 1fr); gap: 10px }
 .zanon-report figure, .zanon-report .rows { max-height: none; overflow: visible }
 .zanon-report thead th { position: static }
 .zanon-report tr, .zanon-report figure, .zanon-report .tiles { break-inside: avoid }
 .zanon-report h2 { break-after: avoid } }
"""


def page(contents: Contents) -> bytes:
    """Returns a report as a whole page, in UTF-8."""
    head = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape(contents.title)}</title>\n<style>{PAGE_STYLE}</style>\n</head>\n<body>\n"
    )
    return f"{head}{fragment(contents)}\n</body>\n</html>\n".encode()


def fragment(contents: Contents) -> str:
    """Returns a report as one element with its style, for a notebook."""
    state = "state" if contents.is_good else "state open"
    parts = [
        '<main class="zanon-report">',
        f"<style>{STYLE}</style>",
        f"<h1>{escape(contents.title)}</h1>",
        f'<p class="period">{escape(contents.period)}</p>',
        f'<p class="{state}">{escape(contents.state)}</p>',
        '<ul class="tiles">',
        *(
            f'<li><span class="what">{escape(title)}</span><b>{escape(figure)}</b>'
            f"<span>{escape(about)}</span></li>"
            for title, figure, about in contents.tiles
        ),
        "</ul>",
    ]
    if contents.notes:
        notes = "".join(f"<li>{escape(note)}</li>" for note in contents.notes)
        parts.append(f'<ul class="notes" aria-label="Notes of the run">{notes}</ul>')
    parts += (part for section in contents.sections for part in _section(section))
    parts.append(
        f"<footer>Written by zanon-net {escape(contents.version)}."
        f" {escape(contents.footer)}</footer>"
    )
    return "\n".join([*parts, "</main>"])


def _section(section: Section) -> Iterator[str]:
    yield f"<section>\n<h2>{escape(section.title)}</h2>"
    yield from (f"<p>{escape(sentence)}</p>" for sentence in section.text)
    table = None if section.table is None else _table(section.table, section.title)
    if section.chart is not None:
        yield f'<div class="both"><figure>{_legend(section)}{drawing(section.chart)}</figure>'
        yield f"{table or ''}</div>"
    elif table is not None:
        yield f'<div class="alone">{table}</div>'
    if section.blanks:
        blanks = "".join(f"<li>{escape(blank)}</li>" for blank in section.blanks)
        yield f'<ul class="blanks">{blanks}</ul>'
    yield "</section>"


def _legend(section: Section) -> str:
    if not isinstance(section.chart, TimeBars):
        return ""
    keys = "".join(
        f'<li><i class="{one.kind}"></i>{escape(one.label)}</li>' for one in section.chart.series
    )
    return f'<ul class="legend">{keys}</ul>'


def _table(table: Table, title: str) -> str:
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in table.columns)
    marks = dict(table.marks)
    rows = "".join(
        f'<tr><th scope="row"><bdi>{escape(row[0])}</bdi></th>'
        + "".join(
            _cell(cell, title, marks.get(cell))
            for title, cell in zip(table.columns[1:], row[1:], strict=True)
        )
        + "</tr>\n"
        for row in table.rows
    )
    kind = "rows words" if table.is_words else "rows wide" if len(table.columns) >= WIDE else "rows"
    titles = f"<thead><tr>{head}</tr></thead>\n" if any(table.columns) else ""
    return (
        f'<div class="{kind}" tabindex="0" role="region" aria-label="{escape(title)}, table">'
        f"<table>{titles}<tbody>{rows}</tbody></table></div>"
    )


def _cell(text: str, title: str, mark: str | None) -> str:
    """Returns a cell. title: of its column, which a narrow screen shows in the cell."""
    kind = "" if mark is None else f' class="{mark}"'
    column = f' data-title="{escape(title)}"' if title else ""
    return f"<td{kind}{column}>{escape(text)}</td>"
