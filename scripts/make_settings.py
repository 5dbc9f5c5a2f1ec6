# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the settings for the documents, for the core and for type checkers, from the schema.

Usage: python scripts/make_settings.py

The script writes the tables of docs/reference/configuration.md, between two marks,
zanon_net/core/settings.pyx, the fields of the dataclasses (zanon_net/config/*_fields.py), and the
types of keywords (zanon_net/config/keywords.py).
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # before the package is built

from zanon_net.config.presets import PRESETS, PURPOSE, PURPOSES, written  # noqa: E402
from zanon_net.config.schema import COMMANDS, rows_of  # noqa: E402
from zanon_net.config.setting import Setting  # noqa: E402

RUN = {row.name: row for row in rows_of("run")}
SECTIONS = tuple(dict.fromkeys(row.section for row in RUN.values()))
PAGE = ROOT / "docs/reference/configuration.md"
BEGIN, END = "<!-- made by scripts/make_settings.py -->\n", "<!-- end of the generated part -->\n"
CORE = ROOT / "zanon_net/core/settings.pyx"
CONFIG = ROOT / "zanon_net/config"
VIEWS = {"run": "RUN", "filter": "FILTER", "count": "COUNT"}
"""The commands whose settings are dataclasses, each with the name of its table there."""
KEYWORDS = {"RunSettings": "run", "PacketsSettings": "packets", "FrameSettings": "frames"}
"""The commands whose settings are keywords of a function, by the names of the types."""
STRUCTS = {
    "run": "zn_engine_config",
    "filter": "zn_row_filter_config",
    "publish": "zn_publisher_config",
}
FILLED = {
    "number": "config.{member} = {value}",
    "optional number": "config.{member} = {value} or 0",
    "path": "config.{member} = kept.path({value})",
    "text": "config.{member} = kept.text({value})",
    "texts": "config.{member} = kept.texts({value}, &config.{member}_count)",
    "views": "config.{member} = kept.views({value}, &config.view_count)",
    "tunnel ports": "config.tunnel_ports = kept.tunnel_ports({value}, &config.tunnel_port_count)",
    "suffixes": "config.{member} = kept.suffixes({value}, &config.{member}_count)",
    "categories": "config.{member} = kept.categories({value}, &config.{member}_count)",
    "levels": "config.{member} = bits_of(LEVELS, {value})",
    "attributes": "config.attributes = bits_of(ATTRIBUTES, {value})",
    "network table": "config.{member} = kept.network_table({value}, &config.{member}_count)",
    "networks": "config.{member} = kept.networks({value}, &config.{member}_count)",
    "prefix lengths": "config.user_v4_bits, config.user_v6_bits = {value}",
    "users of networks": "config.cap_v4_bits, config.cap_v6_bits, config.max_per_prefix = {value}",
    "pseudonyms": "config.pseudonyms, config.block_v4_bits, config.block_v6_bits = {value}",
    "outputs": "config.{member} = bits_of(OUTPUT_BITS, {value})",
    "column sets": "config.sets = bits_of(SETS, {value})",
    "row columns": "kept.columns({value}, &config.{member})",
    "row format": "config.{member} = ROW_FORMATS.index({value})",
    "l kind": "config.window.groups.rule.kind, config.window.groups.rule.c = {value}",
    "adaptive l": "config.{member}_l, config.{member}_way = {value}",
    "time unit": "config.{member} = TIME_UNITS.index({value})",
}
"""Cython line that fills a member of the core's struct, for each kind of setting. core/convert.pyx
has the functions."""
LINE_MAX = 96  # columns of a line without its indent
MADE = """\
# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Made by scripts/make_settings.py from zanon_net/config/schema.py.
"""


def settings_tables() -> Iterator[str]:
    """Yields the lines of three tables: a run's settings, the presets, and the options of the other
    commands."""
    yield from _table("setting", {f"[{name}]": rows_of("run", name) for name in SECTIONS})
    yield ""
    yield "`for` presets these settings. A setting that is given explicitly wins:"
    yield ""
    yield from _presets()
    yield ""
    yield "These are the options of the other commands:"
    yield ""
    yield from _table("option", {name: rows_of(name) for name in COMMANDS if name != "run"})


def _table(kind: str, parts: Mapping[str, Sequence[Setting]]) -> Iterator[str]:
    yield f"| {kind} | default | values | meaning |"
    yield "|---|---|---|---|"
    for title, rows in parts.items():
        yield f"| **{title}** | | | |"
        for row in rows:
            name = row.label if kind == "setting" else row.options[0]
            meaning = row.meaning.replace("|", "\\|")
            yield f"| `{name}` | {_default(row)} | {_values(row)} | {meaning} |"


def _presets() -> Iterator[str]:
    purposes = [f"{name} (default)" if name == PURPOSE else name for name in PURPOSES]
    yield f"| setting | {' | '.join(purposes)} |"
    yield f"|---|{'---|' * len(PURPOSES)}"
    for name, preset in PRESETS.items():
        values = (_value(preset.value(purpose)) for purpose in PURPOSES)
        yield f"| `{RUN[name].label}` | {' | '.join(values)} |"


def _value(value: Any) -> str:
    return f"`{json.dumps(value) if isinstance(value, bool) else written(value)}`"


def _default(row: Setting) -> str:
    if not row.has_default:
        return row.usual or "none"
    written = json.dumps(row.default) if row.type.switch else row.type.written(row.default)
    return f"`{written}`"


def _values(row: Setting) -> str:
    plain = row.type.number is int or row.type.unit == "bits"  # other ranges include their unit
    return f"{row.type.range} {row.type.unit}" if plain else row.type.range


def core_source() -> str:
    """Returns the Cython source that fills the structs of the core with settings."""
    return MADE + "\n".join(_fill(command, struct) for command, struct in STRUCTS.items())


def _fill(command: str, struct: str) -> str:
    name = f"fill_{struct.removeprefix('zn_')}"
    lines = [
        "",
        f"cdef int {name}({struct} *config, dict settings, _Kept kept) except -1:",
        *[f"    {_assignment(row)}" for row in rows_of(command) if row.core],
        "    return expect_none(settings)",
    ]
    return "\n".join(lines) + "\n"


def _assignment(row: Setting) -> str:
    none = ", None" if row.core_kind.startswith("optional") else ""
    value = f'settings.pop("{row.core_argument}"{none})'
    line = FILLED[row.core_kind].format(member=row.core, value=value)
    return line if len(line) <= LINE_MAX else line.replace(", &", ",\n        &")


def fields_source(command: str) -> str:
    """Python with the fields of a command's dataclasses."""
    table, sections = VIEWS[command], dict.fromkeys(row.section for row in rows_of(command))
    parts = [
        MADE + f'"""Fields of the settings of `{command}`, with types for type checkers."""\n\n'
        "import os\n"
        "from collections.abc import Mapping, Sequence\n\n"
        "from zanon_net._record import dataclass\n"
        "from zanon_net.config.schema import rows_of\n"
        "from zanon_net.config.setting import View\n\n"
        f'{table} = {{row.name: row for row in rows_of("{command}")}}\n'
        '"""The settings by their names."""\n',
        *(_dataclass(command, section) for section in sections),
    ]
    return _with_used_imports("\n\n".join(parts))


def _dataclass(command: str, section: str) -> str:
    name, options, words = section, "frozen=True, slots=True", [command, section]
    if not section:
        name, options, words = command, f"{options}, kw_only=True", [command]
    selection = ", ".join(f'"{word}"' for word in words)
    lines = [
        f"@dataclass({options})",
        f"class {name.title()}Fields(View):",
        f'    """Fields of the settings of `{" ".join(words)}`."""',
        "",
        f"    rows = rows_of({selection})",
        "",
    ]
    for row in rows_of(*words):
        lines.append(f'    {row.name}: {_annotation(row)} = {VIEWS[command]}["{row.name}"].default')
    return "\n".join(lines) + "\n"


def keywords_source() -> str:
    """Python with the types of settings that functions take as keywords."""
    parts = [
        MADE + '"""Settings as keywords, for type checkers."""\n\n'
        "import os\n"
        "from collections.abc import Mapping, Sequence\n"
        "from typing import TypedDict\n",
        *(_typed_dict(name, command) for name, command in KEYWORDS.items()),
    ]
    return _with_used_imports("\n\n".join(parts))


def _typed_dict(name: str, command: str) -> str:
    lines = [
        f"class {name}(TypedDict, total=False):",
        f'    """Settings of `{command}`."""',
        "",
        *[f"    {row.name}: {_annotation(row)}" for row in rows_of(command)],
    ]
    return "\n".join(lines) + "\n"


def _annotation(row: Setting) -> str:
    return f"{row.type.annotation} | None" if row.default is None else row.type.annotation


def _with_used_imports(source: str) -> str:
    used = [name for name in ("Mapping", "Sequence") if f"{name}[" in source]
    line = f"from collections.abc import {', '.join(used)}\n" if used else ""
    return source.replace("from collections.abc import Mapping, Sequence\n", line)


def made_sources() -> dict[Path, str]:
    """The content of each source file that is written."""
    return {
        CORE: core_source(),
        **{CONFIG / f"{command}_fields.py": fields_source(command) for command in VIEWS},
        CONFIG / "keywords.py": keywords_source(),
    }


def page_with_tables(text: str) -> str:
    """Returns the page with new tables."""
    before, begin, rest = text.partition(BEGIN)
    _old, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{PAGE} has no place for the tables")
    return before + begin + "\n".join(settings_tables()) + "\n" + end + after


def main() -> None:
    """Writes all files."""
    PAGE.write_text(page_with_tables(PAGE.read_text("utf-8")), "utf-8")
    for path, source in made_sources().items():
        path.write_text(source, "utf-8")


if __name__ == "__main__":
    main()
