# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The house rules of ARCHITECTURE.md, read off the source text.

Each rule of support/house_rules.py is applied to this repository and to snippets that break it,
which it has to notice.
"""

import re
import subprocess
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.examples import each
from support.glossary import retired_words_are_not_used
from support.house_rules import (
    LAYERS,
    Complaints,
    Sources,
    c_files,
    call_cycles,
    calls_of_symbols,
    core_is_silent,
    floors_do_not_know_those_above,
    functions_are_short,
    heap_only_in_arena,
    includes_point_down,
    layer_of,
    libraries_stay_in_their_rooms,
    lines_are_short,
    long_files,
    no_unbounded_text_functions,
    only_capture_writes,
    only_deciders_know_the_remote_counter,
    only_log_writers_see_records,
    only_main_imports_cli,
    only_the_gate_fills_records,
    packet_output_is_behind_one_header,
    parsers_read_through_the_cursor,
    python_imports_point_down,
    read_sources,
    sources_name_their_licence,
    writers_cannot_change_records,
)
from support.paths import ROOT

pytestmark = pytest.mark.source


@dataclass(frozen=True)
class Rule:
    """A check, what to do when it complains, and sources that it must complain about."""

    check: Callable[[Sources], Complaints]
    advice: str
    broken: tuple[str, ...]  # each "path: text"


RULES = [
    Rule(
        includes_point_down,
        "LAYERS in support/house_rules.py says what each folder may include. Write the folder too."
        " Move what both need down, or let the engine bring them together.",
        (
            'csrc/util/hash.c: #include "flow/flow.h"',
            'csrc/proto/tls.c: #include "flow/flow.h"',
            'csrc/flow/flow.h:  # include "proto/tls.h"',
            'csrc/output/json_log.c: #include "release/gate.h"',
            'csrc/release/gate.c: #include "output/json_log.h"',
            'csrc/crypto/keys.c: #include "cryptopan.h"',
            'csrc/release/gate.c: #include "engine/engine.h"',
            'csrc/misc/new.c: #include "util/base.h"',
        ),
    ),
    Rule(
        libraries_stay_in_their_rooms,
        "OpenSSL is used by crypto/, proto/quic and proto/ja4 only, libpcap by capture/ only:"
        " call those.",
        (
            "csrc/release/gate.c: #include <openssl/evp.h>",
            "csrc/engine/engine.c: #include <pcap/pcap.h>",
        ),
    ),
    Rule(
        no_unbounded_text_functions,
        "Text has a length: use zn_span, the cursor, and snprintf for our own words.",
        ("csrc/proto/http.c: n = strlen (host);", "csrc/output/tstat_log.c: \nsprintf(line, x);"),
    ),
    Rule(
        heap_only_in_arena,
        "Memory comes from util/arena.h, at start-up, so that its bound is known.",
        ("csrc/flow/flow.c: void *p = malloc(8);", "csrc/util/hash.c: free(p);"),
    ),
    Rule(
        core_is_silent,
        "C returns an error or counts a reason (util/stats.h); Python tells people.",
        (
            'csrc/release/gate.c: printf("x");',
            "csrc/flow/flow.c: abort();",
            "csrc/util/error.c: exit(1);",
        ),
    ),
    Rule(
        only_capture_writes,
        "Only capture/ writes to a descriptor: what unpacks a stream; and output/packet_sender to"
        " an interface. Other outputs are Python's.",
        (
            "csrc/release/gate.c: fwrite(p, 1, n, f);",
            "csrc/engine/engine.c: fd = creat(path, 0);",
            "csrc/output/packet_file.c: n = sendmmsg(fd, messages, 1, 0);",
        ),
    ),
    Rule(
        parsers_read_through_the_cursor,
        "Packet bytes are read with zn_cursor_*; a span is taken or handed on, not indexed.",
        (
            'csrc/proto/tls.c: #include "util/base.h"',
            'csrc/proto/dns.c: #include "util/cursor.h"\nx = c->p[3];',
            'csrc/proto/dns.c: #include "util/cursor.h"\nx = *c.p;',
            'csrc/proto/dns.c: #include "util/cursor.h"\nx = s.p + 2;',
        ),
    ),
    Rule(
        only_the_gate_fills_records,
        "Only release/ decides what a record says; others pass it on (one emitter of names).",
        (
            "csrc/engine/engine.c: void f(zn_record *r) { r->name = x; }",
            "csrc/analyzer/names.c: zn_record out; out.client.port = 1;",
            "csrc/flow/flow.c: zn_record_side *side; side->packets++;",
            "csrc/engine/engine.c: zn_release *all; memcpy(all, x, 8);",
            "csrc/engine/engine.c: zn_record r = {.name = x};",
            "csrc/rows/filter.c: zn_gated_row *row; row->attribute = x;",
        ),
    ),
    Rule(
        writers_cannot_change_records,
        "Take a `const zn_record *`: only the gate and the engine's buffers hold a writable one.",
        ("csrc/output/tstat_log.h: int zn_tstat_log_write(zn_tstat_log *log, zn_record *record);",),
    ),
    Rule(
        only_log_writers_see_records,
        "Records go from release/ through engine/ to output/ and rows/: nobody else reads them.",
        (
            "csrc/analyzer/names.c: void f(const zn_record *r);",
            "csrc/capture/pcap_read.c: zn_release *r;",
        ),
    ),
    Rule(
        only_deciders_know_the_remote_counter,
        "Call a function of the decider (engine/decider.h): only decide_*.c know which one it is.",
        (
            "csrc/engine/flush.c: if (e->remote.counter == NULL) return 0;",
            "csrc/release/flow_record.c: if (NULL != g->remote.counter) return 0;",
            "csrc/engine/packet_loop.c: if (e->decider == &zn_decide_remote) return 0;",
            "csrc/engine/engine_run.c: if (!e->remote.counter) return 0;",
            "csrc/release/gate.c: if (g->remote.counter && x) return 0;",
            "csrc/release/gate.c: x = &zn_gate_local == by;",
        ),
    ),
    Rule(
        python_imports_point_down,
        "errors, _version, _record, _text, system <- config <- _core, popularity <- output, model"
        " <- rows <- pipeline, microdata <- flat modules, bench <- __init__ <- cli <- __main__.",
        (
            "zanon_net/errors.py: from zanon_net import __version__",
            "zanon_net/config/settings.py: from zanon_net.pipeline.runner import run",
            "zanon_net/output/folder.py: from zanon_net.pipeline.runner import run",
            "zanon_net/pipeline/runner.py: def f():\n    import zanon_net.cli.entry",
            "zanon_net/microdata/plan.py: from zanon_net.pipeline.runner import run",
            "zanon_net/model/fit.py: from .. import run",
            "zanon_net/_core.pyx: from zanon_net.pipeline.runner import run",
            "zanon_net/core/engine.pyx: from zanon_net.pipeline.runner import run",
        ),
    ),
    Rule(
        only_main_imports_cli,
        "The command is the top: what others need from it belongs into a module beneath.",
        (
            "zanon_net/__init__.py: from zanon_net.cli import main",
            "zanon_net/pipeline/runner.py: from .. import cli",
        ),
    ),
    Rule(
        sources_name_their_licence,
        "Start the file with the two SPDX lines that all others start with.",
        (
            "csrc/util/new.c: /* SPDX-FileCopyrightText: The zanon_net authors */\nint x;",
            'zanon_net/new.py: """No header."""',
            "tests/new.py: pass",
        ),
    ),
    Rule(
        lines_are_short,
        "A line has 100 columns.",
        (
            f"zanon_net/core/wide.pxi: {'x' * 101}",
            f"zanon_net/_core.pxd: \n{'x' * 101}",
            f"csrc/util/wide.h: /* {'x' * 101} */",
        ),
    ),
]
RULES += [
    Rule(
        functions_are_short,
        "A function of more than 60 lines does two things: give each a name.",
        (
            "csrc/util/long.c: int f(void)\n{\n" + "    x++;\n" * 61 + "}\n",
            "zanon_net/long.py: def f():\n" + "    pass\n" * 61,
        ),
    ),
    Rule(
        floors_do_not_know_those_above,
        "flow/ has no protocol in it and util/ no flow, packet or vote: their owner is above.",
        ("csrc/flow/flow.h: uint8_t tls_read;", "csrc/util/hash.h: void f(zn_flow *flow);"),
    ),
    Rule(
        packet_output_is_behind_one_header,
        "The engine holds one zn_rewriter, and the gate a zn_gate_tap: add a function to"
        " rewrite/rewriter.h or release/gate_tap.h.",
        (
            "csrc/engine/flush.c: if (e->packets_count != 0) {}",
            "csrc/release/gate.c: for (i = 0; i < r->packet_outputs; i++)",
            'csrc/engine/engine.c: #include "rewrite/packet_config.h"',
        ),
    ),
    Rule(
        retired_words_are_not_used,
        "The field has its own word for it: see support/glossary.py.",
        (
            "csrc/flow/flow.c: int zn_flow_beside(void);",
            "csrc/packet/defrag.c: struct piece *p;",
            "csrc/util/stats.h: X(IDS_MANY, a)",
            "zanon_net/rows/x.py: class Sieve: pass",
            "zanon_net/core/x.pyx: cdef int moment",
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


@each("rule, sample", BROKEN)
def test_rule_notices(rule: Rule, sample: str) -> None:
    others = {
        "zanon_net/pipeline/runner.py": "",
        "zanon_net/_core.pyx": "",
        "zanon_net/cli/entry.py": "",
    }
    path, text = sample.split(": ", 1)
    assert any(path in complaint for complaint in rule.check(others | {path: text}))


def test_comments_and_literals_are_not_code() -> None:
    text = """/* malloc(1) */ char c = '"'; // free(p)\nchar *s = "malloc(\\"2\\")"; malloc(3);"""
    complaints = list(heap_only_in_arena({"csrc/flow/flow.c": text}))
    assert complaints == ["csrc/flow/flow.c:2: malloc("]


def test_names_that_end_like_a_banned_one_are_fine() -> None:
    text = "zn_heap_free(x); pcap_freecode(y); zn_span_strlen(z);"
    sources = {"csrc/capture/live.c": text}
    assert not list(heap_only_in_arena(sources))
    assert not list(no_unbounded_text_functions(sources))


def test_sources_are_found(repository: Sources) -> None:
    some = {"setup.py", "csrc/util/cursor.h", "zanon_net/_version.py", "zanon_net/core/engine.pyx"}
    assert some <= repository.keys()
    assert {layer_of(inner) for inner, _ in c_files(repository)} == LAYERS.keys()


def test_files_do_not_call_each_other_in_circles(c_library: Path) -> None:
    """A cycle is one concept in two files (merge them), or a function to pass down in a struct."""
    objects = c_library / "lib" / "obj"
    symbols = symbols_of(objects, sorted(objects.rglob("*.o")))
    assert len(symbols) > 50
    assert not list(call_cycles(calls_of_symbols(symbols)))


def symbols_of(folder: Path, objects: Sequence[Path]) -> dict[str, str]:
    """Returns what nm prints of each object below a folder, by the object's name without suffix."""
    command = ["nm", *map(str, objects)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    parts = re.split(r"^\n(.*)\.o:\n", printed, flags=re.MULTILINE)
    names = [Path(path).relative_to(folder).as_posix() for path in parts[1::2]]
    assert len(names) == len(objects) > 1
    return dict(zip(names, parts[2::2], strict=True))


def test_a_call_cycle_is_noticed(tmp_path: Path) -> None:
    bodies = {
        "one": "void two(void); void one(void) { two(); }",
        "two": "void three(void); void two(void) { three(); }",
        "three": "void one(void); void three(void) { one(); }",
        "apart": "void one(void); void apart(void) { one(); }",
    }
    for name, body in bodies.items():
        (tmp_path / f"{name}.c").write_text(body)
    subprocess.run(["cc", "-c", *(f"{name}.c" for name in bodies)], cwd=tmp_path, check=True)
    symbols = symbols_of(tmp_path, [tmp_path / f"{name}.o" for name in bodies])
    assert list(call_cycles(calls_of_symbols(symbols))) == ["one <-> three <-> two"]


def test_long_files_are_told_of(repository: Sources) -> None:
    for complaint in long_files(repository):
        warnings.warn(f"{complaint}: are these two concepts?", stacklevel=1)
