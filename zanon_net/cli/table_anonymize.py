# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net table anonymize`: a table generalized until each class has what is asked for."""

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from zanon_net._version import __version__
from zanon_net.cli.common import COMMON
from zanon_net.cli.configure import naming_options
from zanon_net.cli.messages import print_manifest, print_table, warn
from zanon_net.cli.options import INPUT_AND_OUTPUT, GroupedCommand, GroupedOption
from zanon_net.cli.table_options import OPTIONS, command_settings, table_options
from zanon_net.config.schema import rows_of
from zanon_net.config.setting import manifest_of
from zanon_net.errors import ConfigError
from zanon_net.output.stdout import standard_output
from zanon_net.system.streams import STDIN

COMMAND = "table anonymize"
CURVE_POINTS = (2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000)
EPILOG = """\b
Exit codes: 0 done; 1 could not be done; 2 wrong option, a column that is not there, or more asked
for than any release of this table can have.

\b
Examples:
  zanon-net table anonymize data.csv --quasi age,zip,sex --sensitive disease --k 5 --l 3 \\
      --round age=10 --clip age=..90 --hierarchy zip=zip.csv --out shared.parquet
  zanon-net table anonymize data.csv --quasi age,sex --k 10 --method lattice --suppress 5% > out.csv
"""
# Settings of whose names Plan's errors begin, and those of `anonymize`.
NAMES = OPTIONS | {"levels": "--level", "curve": "--curve"}


def _options() -> list[click.Parameter]:
    """FILE and every option, with those of files to write before --config."""
    options = table_options(COMMAND)
    place = next(i for i, option in enumerate(options) if "--config" in option.opts)
    files = [
        GroupedOption(
            ["--out"],
            group=INPUT_AND_OUTPUT,
            metavar="FILE",
            help="A new file that ends in .csv, .jsonl or .parquet, and beside it FILE.json, the"
            " manifest; or '-' for CSV on standard output. [default: -]",
        ),
        GroupedOption(
            ["--curve"],
            group=INPUT_AND_OUTPUT,
            metavar="FILE",
            help="Also draw the loss of this table against k, as FILE.svg, .png or .html.",
        ),
    ]
    return [*options[:place], *files, *options[place:]]


@click.command(
    "anonymize",
    cls=GroupedCommand,
    common=COMMON["table anonymize"],
    params=_options(),
    epilog=EPILOG,
)
def table_anonymize(
    file: str,
    out: str | None,
    curve: str | None,
    config_file: str | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Generalize a table until each class has k users and the diversity asked for.

    FILE is CSV, JSON Lines or Parquet, or - for standard input. The quasi-identifiers are written
    as coarse as it takes, the sensitive columns as they are, in an order that tells nothing; all
    other columns are left out.
    """
    from zanon_net.microdata.anonymizing import anonymize_rows
    from zanon_net.microdata.settings import plan_of
    from zanon_net.microdata.tables import form_of_path, name_of, read_table
    from zanon_net.output.new_file import write_files

    began = time.monotonic()
    target = Path(out) if out not in (None, STDIN) else None
    settings = command_settings(COMMAND, config_file, options)
    with naming_options(NAMES):
        form = form_of_path(STDIN if target is None else target)
        figure = None if curve is None else _checked_figure(curve)
        plan = plan_of(settings)
    if target is None:
        standard_output()  # closed, it is an error before any work
    _warn_of_passed(plan.passed)
    read_as = {name: settings[name] for name in ("delimiter", "quote")}
    rows = read_table(file, plan.read_columns, form=settings["format"], **read_as)
    with naming_options(NAMES):
        result = anonymize_rows(
            rows,
            plan,
            method=settings["method"],
            suppress=settings["suppress"],
            levels=dict(settings["level"]),
        )
    manifest = {
        "name": f"zanon-net {COMMAND}",
        "version": __version__,
        "configuration": manifest_of(rows_of(COMMAND), settings),
        "source": name_of(file),
        **result.report.to_dict(),
    }
    contents = {} if figure is None else {figure: _curve(figure, rows, plan, settings)}
    contents |= _files(target, form, settings, result.table, manifest)
    write_files(contents, modes={path: int(settings["mode"], 8) for path in _manifests(target)})
    if target is None:
        _to_stdout(form, settings, result.table)
    if plan.k == 1 and not plan.asks_for_diversity:
        warn("nothing is asked for (--k, --l, --max-share, --t): no row is protected")
    if as_json:
        took = round(time.monotonic() - began, 6)
        print_manifest(manifest, {"seconds": took}, err=target is None)
    elif not quiet:
        print_table(result.report.summary)
    return 0


def _warn_of_passed(columns: Iterable[str]) -> None:
    for column in columns:
        warn(f"column {column!r} is written as it is: it is not protected")


def _checked_figure(curve: str) -> Path:
    from zanon_net.model.charts import check_path

    return check_path(curve, "curve")


def _manifests(target: Path | None) -> list[Path]:
    """The path of the manifest, if there is one."""
    return [] if target is None else [target.with_name(target.name + ".json")]


def _files(
    target: Path | None,
    form: str,
    settings: Mapping[str, Any],
    table: Any,
    manifest: Mapping[str, Any],
) -> dict[Path, bytes]:
    """The files to write: the table and its manifest."""
    from zanon_net.microdata.tables import table_bytes
    from zanon_net.pipeline.manifest import manifest_bytes

    if target is None:
        return {}
    (manifest_path,) = _manifests(target)
    content = table_bytes(table, form, delimiter=settings["delimiter"], quote=settings["quote"])
    return {target: content, manifest_path: manifest_bytes(manifest)}


def _to_stdout(form: str, settings: Mapping[str, Any], table: Any) -> None:
    from zanon_net.microdata.tables import table_bytes
    from zanon_net.output.stdout import write_stdout

    write_stdout(table_bytes(table, form, delimiter=settings["delimiter"], quote=settings["quote"]))


def _curve(path: Path, rows: Any, plan: Any, settings: Mapping[str, Any]) -> bytes:
    """The figure: the loss of the table against k, by method."""
    from zanon_net.microdata.anonymizing import loss_curve
    from zanon_net.model.charts import Line, Panel, drawing

    suppress = settings["suppress"]
    numbers = sorted({*CURVE_POINTS, plan.k})
    lines = []
    for method, share in (("topdown", 0.0), ("lattice", suppress)):
        try:
            points = loss_curve(rows, plan, numbers, method=method, suppress=share)
        except ConfigError:  # too many combinations of levels
            continue
        name = method if not share else f"{method}, up to {100 * share:.3g} % suppressed"
        if points:
            losses = [loss for _k, loss in points]
            lines.append(Line(name, [k for k, _loss in points], losses, marked=True))
    asked = f", l = {plan.l} {plan.l_kind}" if plan.l > 1 else ""
    panel = Panel(
        f"what generalization loses{asked}",
        "k (users)",
        "loss, 0 to 1",
        lines,
        x_log=True,
        y_range=(0, None),
    )
    title = f"loss against k: {', '.join(plan.quasi_columns)}"
    return drawing(path.suffix, title, [panel])
