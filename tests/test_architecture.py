# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The house rules of ARCHITECTURE.md, read off the source text.

A rule is a function from sources (path -> text) to complaints. Each is applied to this repository
and to a snippet that breaks it, which it has to notice.
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.source

ROOT = Path(__file__).resolve().parents[1]
SOURCE_FOLDERS = ("csrc", "zanon_net", "tests", "bench", "examples", "pcaps", "scripts")
SOURCE_SUFFIXES = {".c", ".h", ".py", ".pyx", ".pxd", ".pxi", ".pyi"}

Sources = Mapping[str, str]
Complaints = Iterator[str]


def read_sources(root: Path) -> dict[str, str]:
    """Every source file of the repository by its path relative to `root`."""
    found = [path for folder in SOURCE_FOLDERS for path in sorted((root / folder).rglob("*"))]
    paths = [root / "setup.py", *(path for path in found if path.suffix in SOURCE_SUFFIXES)]
    return {path.relative_to(root).as_posix(): path.read_text("utf-8") for path in paths}


# ---- C ------------------------------------------------------------------------------------------

NOT_CODE = re.compile(
    r"""/\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'""", re.DOTALL | re.VERBOSE
)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)


def code_of(text: str) -> str:
    """C text with comments and literals blanked; line numbers stay."""
    return NOT_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def c_files(sources: Sources, *folders: str) -> Iterator[tuple[str, str]]:
    """Path relative to csrc/, and text, of the C files in `folders` (default: all)."""
    for path, text in sources.items():
        inner = path.removeprefix("csrc/")
        if inner != path and (not folders or layer_of(inner) in folders):
            yield inner, text


def layer_of(inner: str) -> str:
    """The folder beneath csrc/; the engine's files lie in none."""
    return inner.split("/")[0] if "/" in inner else "engine"


def includes_of(text: str, bracket: str) -> list[str]:
    """The included names: bracket '"' for ours, '<' for libraries'."""
    return [name for opening, name in INCLUDE.findall(text) if opening == bracket]


def matches(pattern: str, inner: str, text: str) -> Complaints:
    """`csrc/file:line: what` for each place in the code that matches."""
    code = code_of(text)
    for match in re.finditer(pattern, code):
        yield f"csrc/{inner}:{code.count(chr(10), 0, match.start()) + 1}: {match[0].strip()}"


def calls(names: str, inner: str, text: str) -> Complaints:
    """The calls of one of the functions in `names` (separated by spaces)."""
    return matches(rf"\b(?:{'|'.join(names.split())})\s*\(", inner, text)


LAYERS = {
    "base": {"base"},
    "crypto": {"base", "crypto"},
    "proto": {"base", "proto"},
    "state": {"base", "state"},
    "io": {"base", "io"},
    "anon": {"base", "crypto", "proto", "state", "anon"},
    "engine": {"base", "crypto", "proto", "state", "io", "anon", "engine"},
}


def includes_point_down(sources: Sources) -> Complaints:
    for inner, text in c_files(sources):
        for name in includes_of(text, '"'):
            if layer_of(name) not in LAYERS.get(layer_of(inner), set()):
                yield f"csrc/{inner} includes {name}"


def libraries_stay_in_their_rooms(sources: Sources) -> Complaints:
    for inner, text in c_files(sources):
        for name in includes_of(text, "<"):
            openssl = name.startswith("openssl/") and not re.match(r"crypto/|proto/quic", inner)
            pcap = name.startswith("pcap") and layer_of(inner) != "io"
            if openssl or pcap:
                yield f"csrc/{inner} includes <{name}>"


def no_unbounded_text_functions(sources: Sources) -> Complaints:
    names = "strlen strcpy strncpy strcat strncat strstr strcasestr strtok strtok_r atoi atol atoll"
    names += " sprintf vsprintf sscanf gets alloca"
    for inner, text in c_files(sources):
        yield from calls(names, inner, text)


def heap_only_in_arena(sources: Sources) -> Complaints:
    names = "malloc calloc realloc reallocarray free aligned_alloc posix_memalign strdup strndup"
    for inner, text in c_files(sources):
        if inner != "base/arena.c":
            yield from calls(names, inner, text)


def core_is_silent(sources: Sources) -> Complaints:
    for inner, text in c_files(sources):
        # base/ holds the assertion of debug builds.
        ends = "" if layer_of(inner) == "base" else " fprintf abort"
        yield from calls("printf vprintf puts putchar perror syslog exit _exit" + ends, inner, text)


def only_io_writes(sources: Sources) -> Complaints:
    names = "write pwrite writev fwrite fputs fputc fopen fdopen creat send sendto sendmsg"
    for inner, text in c_files(sources):
        if layer_of(inner) != "io":
            yield from calls(names, inner, text)


def parsers_read_through_the_cursor(sources: Sources) -> Complaints:
    texts = dict(c_files(sources))
    for inner, text in c_files(sources, "proto"):
        seen = text + "".join(texts.get(name, "") for name in includes_of(text, '"'))
        if inner.endswith(".c") and "base/cursor.h" not in includes_of(seen, '"'):
            yield f"csrc/{inner} includes base/cursor.h neither itself nor by its headers"
        yield from matches(r"(?:->|\.)\s*p\s*(?:\[|\+|-[^>])|\*\s*\w+(?:->|\.)p\b", inner, text)


GATED = r"\bzn_(?:record|record_side|release|gated_row)\b"
GATE = re.compile(r"anon/gate(?:_\w+)?\.[ch]|base/(?:record|row)\.h")


def only_the_gate_fills_records(sources: Sources) -> Complaints:
    for inner, text in c_files(sources):
        if GATE.fullmatch(inner):
            continue
        for variable in sorted(set(re.findall(GATED + r"[\s*]*(?:const\s+)?(\w+)", code_of(text)))):
            field = rf"\b{variable}\s*(?:\[[^\]]*\])?\s*(?:->|\.)[\w\s.\[\]>-]*?"
            yield from matches(field + r"(?:(?:[-+*/%|&^]|<<|>>)?=(?!=)|\+\+|--)", inner, text)
            copy = r"\b(?:memcpy|memmove|memset|snprintf)\s*\(\s*&?\s*"
            yield from matches(rf"{copy}{variable}\b", inner, text)
        yield from matches(GATED + r"[^;(){}]*=\s*\{(?!\s*0?\s*\})", inner, text)


def writers_cannot_change_records(sources: Sources) -> Complaints:
    for inner, text in c_files(sources):
        if not GATE.fullmatch(inner) and layer_of(inner) != "engine":
            yield from matches(rf"(?<!const ){GATED}\s*\*", inner, text)


def only_log_writers_see_records(sources: Sources) -> Complaints:
    for inner, text in c_files(sources):
        writer = re.fullmatch(r"io/(\w+_log|column\w*|field\w*|table\w*)\.[ch]", inner)
        writer = writer or layer_of(inner) == "engine"
        if not writer and not GATE.fullmatch(inner):
            yield from matches(GATED, inner, text)


# ---- Python -------------------------------------------------------------------------------------

RANKS = {
    "_version": 0,
    "errors": 0,
    "values": 0,
    "live_settings": 0,
    "settings": 0,
    "config": 1,
    "events": 1,
    "_core": 2,
}
RANKS |= {"__init__": 4, "cli": 5, "__main__": 6}
CYTHON_IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t]+(?:zanon_net)?\.?(\w+)", re.MULTILINE)


def rank_of(module: str) -> int:
    """How high a module stands; a module may import lower ones, and 3 its equals."""
    return RANKS.get(module, 3)


def package_modules(sources: Sources) -> dict[str, tuple[str, str]]:
    """Path -> (module or subpackage beneath zanon_net, text); core/ holds the pieces of _core."""
    inside = {path: path.removeprefix("zanon_net/") for path in sources}
    return {
        path: ("_core" if inner.startswith("core/") else re.split(r"[/.]", inner)[0], sources[path])
        for path, inner in inside.items()
        if inner != path and not inner.endswith((".pxd", ".pyi"))
    }


def imports_of(path: str, text: str, modules: set[str]) -> set[str]:
    """The modules of zanon_net that the file imports; a name of the package itself is __init__."""
    if path.endswith((".pyx", ".pxi")):
        return set(CYTHON_IMPORT.findall(text)) & modules
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            dotted = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            # The package is one level deep: from its subpackages, two dots lead to its root.
            depth = len(Path(path).parts) - 1
            prefix = "zanon_net." if node.level == depth else "" if node.level == 0 else "own."
            base = (prefix + (node.module or "")).rstrip(".")
            dotted = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        parts = [name.split(".") for name in dotted]
        inner = [[*part, "__init__"][1] for part in parts if part[0] == "zanon_net"]
        found |= {name if name in modules | RANKS.keys() else "__init__" for name in inner}
    return found


def python_imports_point_down(sources: Sources) -> Complaints:
    files = package_modules(sources)
    modules = {module for module, _ in files.values()}
    for path, (module, text) in files.items():
        for target in sorted(imports_of(path, text, modules) - {module}):
            highest = 3 if rank_of(module) == 3 else rank_of(module) - 1
            if rank_of(target) > highest and not (rank_of(target) == rank_of(module) == 0):
                yield f"{path} imports zanon_net.{target}"


def only_main_imports_cli(sources: Sources) -> Complaints:
    files = package_modules(sources)
    for path, (module, text) in files.items():
        if module not in ("cli", "__main__") and "cli" in imports_of(path, text, {"cli"}):
            yield f"{path} imports zanon_net.cli"


def sources_name_their_licence(sources: Sources) -> Complaints:
    wanted = "SPDX-FileCopyrightText: The zanon_net authors", "SPDX-License-Identifier: Apache-2.0"
    for path, text in sources.items():
        is_c = path.endswith((".c", ".h"))
        header = [f"/* {line} */" if is_c else f"# {line}" for line in wanted]
        lines = text.splitlines()
        if lines and lines[0].startswith("#!"):
            lines = lines[1:]
        if lines[:2] != header:
            yield path


# ---- the rules ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """A check, what to do when it complains, and sources that it must complain about."""

    check: Callable[[Sources], Complaints]
    advice: str
    broken: tuple[str, ...]  # each "path: text"


RULES = [
    Rule(
        includes_point_down,
        "base <- crypto, proto, state, io; {proto, state, crypto} <- anon; all <- engine. Write the"
        " folder too. Move what both need down, or let the engine bring them together.",
        (
            'csrc/base/hash.c: #include "state/flow.h"',
            'csrc/proto/tls.c: #include "state/flow.h"',
            'csrc/state/flow.h:  # include "proto/tls.h"',
            'csrc/io/json_log.c: #include "anon/gate.h"',
            'csrc/anon/gate.c: #include "io/json_log.h"',
            'csrc/crypto/keys.c: #include "cryptopan.h"',
            'csrc/anon/gate.c: #include "engine.h"',
            'csrc/misc/new.c: #include "base/base.h"',
        ),
    ),
    Rule(
        libraries_stay_in_their_rooms,
        "OpenSSL is used by crypto/ and proto/quic only, libpcap by io/ only: call those.",
        ("csrc/anon/gate.c: #include <openssl/evp.h>", "csrc/engine.c: #include <pcap/pcap.h>"),
    ),
    Rule(
        no_unbounded_text_functions,
        "Text has a length: use zn_span, the cursor, and snprintf for our own words.",
        ("csrc/proto/http.c: n = strlen (host);", "csrc/io/tstat_log.c: \nsprintf(line, x);"),
    ),
    Rule(
        heap_only_in_arena,
        "Memory comes from base/arena.h, at start-up, so that its bound is known.",
        ("csrc/state/flow.c: void *p = malloc(8);", "csrc/base/hash.c: free(p);"),
    ),
    Rule(
        core_is_silent,
        "C returns an error or counts a reason (base/stats.h); Python tells people.",
        (
            'csrc/anon/gate.c: printf("x");',
            "csrc/state/flow.c: abort();",
            "csrc/base/error.c: exit(1);",
        ),
    ),
    Rule(
        only_io_writes,
        "Bytes leave through the writers of io/, which print gated records and nothing else.",
        ("csrc/anon/gate.c: fwrite(p, 1, n, f);", "csrc/engine.c: fd = creat(path, 0);"),
    ),
    Rule(
        parsers_read_through_the_cursor,
        "Packet bytes are read with zn_cursor_*; a span is taken or handed on, not indexed.",
        (
            'csrc/proto/tls.c: #include "base/base.h"',
            'csrc/proto/dns.c: #include "base/cursor.h"\nx = c->p[3];',
            'csrc/proto/dns.c: #include "base/cursor.h"\nx = *c.p;',
            'csrc/proto/dns.c: #include "base/cursor.h"\nx = s.p + 2;',
        ),
    ),
    Rule(
        only_the_gate_fills_records,
        "Only anon/gate*.c decides what a record says; others pass it on (one emitter of names).",
        (
            "csrc/engine.c: void f(zn_record *r) { r->name = x; }",
            "csrc/anon/names.c: zn_record out; out.client.port = 1;",
            "csrc/state/flow.c: zn_record_side *side; side->packets++;",
            "csrc/engine.c: zn_release *all; memcpy(all, x, 8);",
            "csrc/engine.c: zn_record r = {.name = x};",
            "csrc/sieve.c: zn_gated_row *row; row->attribute = x;",
        ),
    ),
    Rule(
        writers_cannot_change_records,
        "Take a `const zn_record *`: only the gate and the engine's buffers hold a writable one.",
        ("csrc/io/tstat_log.h: int zn_tstat_log_write(zn_tstat_log *log, zn_record *record);",),
    ),
    Rule(
        only_log_writers_see_records,
        "Records go from the gate through the engine to io/*_log.c, io/column*.c, io/field*.c"
        " and io/table*.c: nobody else reads them.",
        ("csrc/anon/names.c: void f(const zn_record *r);", "csrc/io/pcap_read.c: zn_release *r;"),
    ),
    Rule(
        python_imports_point_down,
        "errors, _version, values, settings < config, events < _core < the rest < __init__ < cli"
        " < __main__.",
        (
            "zanon_net/errors.py: from zanon_net import __version__",
            "zanon_net/config.py: from zanon_net.pipeline import run",
            "zanon_net/events.py: from ._core import Engine",
            "zanon_net/pipeline.py: def f():\n    import zanon_net.cli",
            "zanon_net/model/fit.py: from .. import run",
            "zanon_net/_core.pyx: from zanon_net.pipeline import run",
            "zanon_net/core/engine.pxi: from zanon_net.pipeline import run",
        ),
    ),
    Rule(
        only_main_imports_cli,
        "The command is the top: what others need from it belongs into a module beneath.",
        (
            "zanon_net/__init__.py: from zanon_net.cli import main",
            "zanon_net/pipeline.py: from . import cli",
        ),
    ),
    Rule(
        sources_name_their_licence,
        "Start the file with the two SPDX lines that all others start with.",
        (
            "csrc/base/new.c: /* SPDX-FileCopyrightText: The zanon_net authors */\nint x;",
            'zanon_net/new.py: """No header."""',
            "tests/new.py: pass",
        ),
    ),
]
BROKEN = [(rule, sample) for rule in RULES for sample in rule.broken]


@pytest.fixture(scope="module")
def repository() -> Sources:
    """The sources of this repository."""
    return read_sources(ROOT)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.check.__name__)
def test_rule_holds(rule: Rule, repository: Sources) -> None:
    complaints = list(rule.check(repository))
    assert not complaints, f"{rule.advice}\n  " + "\n  ".join(complaints)


@pytest.mark.parametrize(
    ("rule", "sample"), BROKEN, ids=[f"{rule.check.__name__}-{text[:30]}" for rule, text in BROKEN]
)
def test_rule_notices(rule: Rule, sample: str) -> None:
    others = {"zanon_net/pipeline.py": "", "zanon_net/_core.pyx": "", "zanon_net/cli.py": ""}
    path, text = sample.split(": ", 1)
    assert any(path in complaint for complaint in rule.check(others | {path: text}))


def test_comments_and_literals_are_not_code() -> None:
    text = """/* malloc(1) */ char c = '"'; // free(p)\nchar *s = "malloc(\\"2\\")"; malloc(3);"""
    complaints = list(heap_only_in_arena({"csrc/state/flow.c": text}))
    assert complaints == ["csrc/state/flow.c:2: malloc("]


def test_names_that_end_like_a_banned_one_are_fine() -> None:
    text = "zn_heap_free(x); pcap_freecode(y); zn_span_strlen(z);"
    sources = {"csrc/io/live.c": text}
    assert not list(heap_only_in_arena(sources))
    assert not list(no_unbounded_text_functions(sources))


def test_sources_are_found(repository: Sources) -> None:
    assert {"setup.py", "csrc/base/cursor.h", "zanon_net/_version.py"} <= repository.keys()
    assert {layer_of(inner) for inner, _ in c_files(repository)} == LAYERS.keys()
