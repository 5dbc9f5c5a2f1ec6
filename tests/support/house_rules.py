# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The house rules of ARCHITECTURE.md as functions from sources (path -> text) to complaints."""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

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


@cache
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
    """The folder beneath csrc/; empty for a file that lies in none."""
    return inner.split("/")[0] if "/" in inner else ""


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


# What each folder of csrc/ may include directly, beside its own files.
LAYERS = {
    "include": "",
    "util": "",
    "crypto": "util",
    "capture": "util",
    "packet": "util",
    "proto": "util",
    "build": "util proto",
    "anonymity": "util",
    "count": "util anonymity",
    "microdata": "util",
    "flow": "util packet",
    "analyzer": "util packet proto flow anonymity",
    "release": "util packet flow analyzer anonymity count microdata crypto",
    "output": "util",
    "rows": "util proto anonymity microdata crypto release output",
    "rewrite": "util crypto packet proto build anonymity flow analyzer release output",
    "engine": "util crypto capture packet proto anonymity flow analyzer release output rewrite",
}
FOR_OUTPUT = {"release/record.h", "release/row.h"}  # what writers see of release/


def includes_point_down(sources: Sources) -> Complaints:
    for inner, text in c_files(sources):
        folder = layer_of(inner)
        allowed = {folder, *LAYERS.get(folder, "").split()} if folder in LAYERS else set()
        allowed.add("zanon")  # the installed headers, the lowest floor
        for name in includes_of(text, '"'):
            written = folder == "output" and name in FOR_OUTPUT
            if layer_of(name) not in allowed and not written:
                yield f"csrc/{inner} includes {name}"


def libraries_stay_in_their_rooms(sources: Sources) -> Complaints:
    for inner, text in c_files(sources):
        for name in includes_of(text, "<"):
            may_use = re.match(r"crypto/|proto/(quic|ja4)", inner)
            openssl = name.startswith("openssl/") and not may_use
            pcap = name.startswith("pcap") and layer_of(inner) != "capture"
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
        if inner != "util/arena.c":
            yield from calls(names, inner, text)


def core_is_silent(sources: Sources) -> Complaints:
    for inner, text in c_files(sources):
        # util/ holds the assertion of debug builds.
        ends = "" if layer_of(inner) == "util" else " fprintf abort"
        yield from calls("printf vprintf puts putchar perror syslog exit _exit" + ends, inner, text)


def only_capture_writes(sources: Sources) -> Complaints:
    names = "write pwrite writev fwrite fputs fputc fopen fdopen creat send sendto sendmsg sendmmsg"
    for inner, text in c_files(sources):
        if layer_of(inner) != "capture" and inner != "output/packet_sender.c":
            yield from calls(names, inner, text)


def parsers_read_through_the_cursor(sources: Sources) -> Complaints:
    texts = dict(c_files(sources))
    for inner, text in c_files(sources, "proto", "build", "packet"):
        if inner == "packet/packet.h" or inner.startswith("packet/defrag"):
            continue  # these only pass parts of spans on
        seen = text + "".join(texts.get(name, "") for name in includes_of(text, '"'))
        if inner.endswith(".c") and "util/cursor.h" not in includes_of(seen, '"'):
            yield f"csrc/{inner} includes util/cursor.h neither itself nor by its headers"
        yield from matches(r"(?:->|\.)\s*p\s*(?:\[|\+|-[^>])|\*\s*\w+(?:->|\.)p\b", inner, text)


GATED = r"\bzn_(?:record|record_side|release|gated_row)\b"
GATE = re.compile(r"release/\w+\.[ch]")


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
        writer = re.fullmatch(r"(output|rows)/\w+\.[ch]", inner)
        writer = writer or layer_of(inner) == "engine"
        if not writer and not GATE.fullmatch(inner):
            yield from matches(GATED, inner, text)


WHICH_DECIDER = (
    r"&?(?:\b\w+(?:->|\.))*\b(?:remote\.counter|decider|zn_(?:decide|gate)_(?:local|remote))\b"
    r"(?!\s*(?:->|\.|\())"
)


def only_deciders_know_the_remote_counter(sources: Sources) -> Complaints:
    """Tests for the remote counter, or for the decider that an engine has."""
    test = rf"{WHICH_DECIDER}\s*[!=]=|[!=]=\s*{WHICH_DECIDER}|!\s*{WHICH_DECIDER}"
    test += rf"|\b(?:if|while)\s*\(\s*{WHICH_DECIDER}\s*[)&|]"
    for inner, text in c_files(sources):
        if not re.fullmatch(r"engine/decide_\w+\.c", inner):
            yield from matches(test, inner, text)


PACKET_OUTPUT_HEADER = "rewrite/rewriter.h"


def packet_output_is_behind_one_header(sources: Sources) -> Complaints:
    """Only rewrite/ counts the outputs of packets, and the engine includes one header of it."""
    for inner, text in c_files(sources):
        if layer_of(inner) != "rewrite":
            yield from matches(r"\b(?:packets_count|packet_outputs)\b", inner, text)
            for name in includes_of(text, '"'):
                if layer_of(name) == "rewrite" and name != PACKET_OUTPUT_HEADER:
                    yield f"csrc/{inner} includes {name}"


# ---- Python -------------------------------------------------------------------------------------


def statements_of(node: ast.AST) -> Iterator[ast.AST]:
    """Every statement beneath a node; expressions, which hold no other statement, are left out."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):
            yield child
            yield from statements_of(child)


# errors, _version, _record, _text, system <- config <- _core, popularity <- output, model
# <- rows, count <- pipeline, microdata <- the rest <- __init__ <- cli.
RANKS = {"_version": 0, "errors": 0, "_record": 0, "_text": 0, "system": 0, "config": 1}
RANKS |= {"_core": 2, "popularity": 2, "output": 3, "model": 3, "rows": 4, "count": 4, "report": 4}
RANKS |= {"pipeline": 5, "microdata": 5, "__init__": 7, "cli": 8, "__main__": 9}
ANY_OTHER = 6  # flat public modules and bench; may import their equals
CYTHON_IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t]+(?:zanon_net)?\.?(\w+)", re.MULTILINE)


def rank_of(module: str) -> int:
    """The rank of a module, which may import modules of lower ranks."""
    return RANKS.get(module, ANY_OTHER)


def package_modules(sources: Sources) -> dict[str, tuple[str, str]]:
    """Path -> (module or subpackage beneath zanon_net, text); core/ holds the pieces of _core."""
    inside = {path: path.removeprefix("zanon_net/") for path in sources}
    return {
        path: ("_core" if inner.startswith("core/") else re.split(r"[/.]", inner)[0], sources[path])
        for path, inner in inside.items()
        if inner != path and not inner.endswith((".pxd", ".pyi"))
    }


@cache
def inner_names(path: str, text: str) -> set[str]:
    """The names directly beneath zanon_net that a Python file imports; __init__ for the package."""
    found = set()
    for node in statements_of(ast.parse(text)):
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
        found |= {[*part, "__init__"][1] for part in parts if part[0] == "zanon_net"}
    return found


def imports_of(path: str, text: str, modules: set[str]) -> set[str]:
    """The modules of zanon_net that the file imports; a name of the package itself is __init__."""
    if path.endswith((".pyx", ".pxi")):
        return set(CYTHON_IMPORT.findall(text)) & modules
    known = modules | RANKS.keys()
    return {name if name in known else "__init__" for name in inner_names(path, text)}


def python_imports_point_down(sources: Sources) -> Complaints:
    files = package_modules(sources)
    modules = {module for module, _ in files.values()}
    for path, (module, text) in files.items():
        for target in sorted(imports_of(path, text, modules) - {module}):
            equals = rank_of(module) in (rank_of("errors"), ANY_OTHER)
            below = rank_of(target) < rank_of(module)
            if not below and not (equals and rank_of(target) == rank_of(module)):
                yield f"{path} imports zanon_net.{target}"


def only_main_imports_cli(sources: Sources) -> Complaints:
    files = package_modules(sources)
    for path, (module, text) in files.items():
        if module not in ("cli", "__main__") and "cli" in imports_of(path, text, {"cli"}):
            yield f"{path} imports zanon_net.cli"


# ---- all files ----------------------------------------------------------------------------------

COLUMNS_MAX = 100  # ruff sees to Python; clang-format leaves comments as they are


def lines_are_short(sources: Sources) -> Complaints:
    for path, text in sources.items():
        if path.endswith((".pyx", ".pxd", ".pxi", ".c", ".h")):
            for number, line in enumerate(text.splitlines(), 1):
                if len(line) > COLUMNS_MAX:
                    yield f"{path}:{number}: {len(line)} columns"


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


# ---- functions ----------------------------------------------------------------------------------

FUNCTION_LINES_MAX = 60
FILE_LINES_WARNED = 1000


def functions_are_short(sources: Sources) -> Complaints:
    for path, text in sources.items():
        for name, lines in functions_of(path, text):
            if lines > FUNCTION_LINES_MAX:
                yield f"{path}: {name} has {lines} lines"


def functions_of(path: str, text: str) -> Iterator[tuple[str, int]]:
    """(name or first line, lines of the body) of each function of a C or Python file."""
    if path.endswith((".c", ".h")):
        lines = text.splitlines()
        starts = [i for i, line in enumerate(lines) if line == "{"]
        for start in starts:
            end = next((i for i in range(start, len(lines)) if lines[i] == "}"), len(lines))
            yield lines[start - 1].strip(), end - start - 1
    elif path.endswith(".py"):
        for node in statements_of(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node.name, (node.end_lineno or 0) - node.body[0].lineno + 1


def long_files(sources: Sources) -> Complaints:
    """Warnings only: a long file may hold two concepts."""
    for path, text in sources.items():
        lines = len(text.splitlines())
        if lines > FILE_LINES_WARNED:
            yield f"{path} has {lines} lines"


# ---- words of higher folders ---------------------------------------------------------------------

PROTOCOLS = [
    "tls",
    "dtls",
    "quic",
    "http",
    "http2",
    "h2",
    "hpack",
    "dns",
    "sni",
    "ech",
    "alpn",
    "certificate",
]
DOMAIN_TYPES = [
    "flow",
    "packet",
    "frame",
    "record",
    "gate",
    "vote",
    "user",
    "hostname",
    "name_store",
    "stream",
]
KNOWS_NOTHING_OF = {"flow": PROTOCOLS, "util": [f"zn_{name}" for name in DOMAIN_TYPES]}
LISTS_OF_NAMES = ("util/stats.h", "util/stats.c", "util/protocol.h")


def floors_do_not_know_those_above(sources: Sources) -> Complaints:
    for inner, text in c_files(sources, *KNOWS_NOTHING_OF):
        if inner in LISTS_OF_NAMES:
            continue
        for word in KNOWS_NOTHING_OF[layer_of(inner)]:
            pattern = (
                rf"\b{word}\b"
                if word.startswith("zn_")
                else rf"(?i)(?<![a-z0-9]){word}(?![a-z0-9])"
            )
            yield from matches(pattern, inner, text)


# ---- calls between objects ----------------------------------------------------------------------

Calls = Mapping[str, set[str]]


def call_cycles(calls_of: Calls) -> Complaints:
    """The sets of files that call each other round and round; calls_of: file -> files it calls."""
    reached = {name: _reachable(name, calls_of) for name in calls_of}
    seen: set[str] = set()
    for name in sorted(calls_of):
        together = {other for other in reached[name] if name in reached.get(other, set())}
        if name in together and name not in seen:
            seen |= together
            yield " <-> ".join(sorted(together))


def _reachable(start: str, calls_of: Calls) -> set[str]:
    found: set[str] = set()
    waiting = list(calls_of[start])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += calls_of.get(name, ())
    return found


def calls_of_symbols(symbols: Mapping[str, str]) -> dict[str, set[str]]:
    """File -> files it calls, from what `nm` prints of each object."""
    defined: dict[str, str] = {}
    undefined: dict[str, set[str]] = {}
    for name, listing in symbols.items():
        entries = [line.split()[-2:] for line in listing.splitlines() if line.strip()]
        undefined[name] = {symbol for kind, symbol in entries if kind == "U"}
        defined |= {symbol: name for kind, symbol in entries if kind in "TDBRC"}
    return {
        name: {defined[symbol] for symbol in wanted & defined.keys()} - {name}
        for name, wanted in undefined.items()
    }
