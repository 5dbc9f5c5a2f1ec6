# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Words that names of this project do not use, since the field has one of its own for the thing.

A name is split at `_` and at changes of case. The table refuses a word where it stood for the thing
in its second column; a name that means something else by it is excepted, with the reason.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from support.house_rules import Complaints, Sources, code_of

C, PYTHON = r"csrc/.*\.[ch]", r"zanon_net/.*\.(?:py|pyx|pxd)"
BOTH = f"{C}|{PYTHON}"


@dataclass(frozen=True)
class Retired:
    """A word, what to say instead, the files in which it is refused, and names that may have it."""

    word: str
    instead: str
    files: str = BOTH
    excepted: str = ""  # a regular expression for whole names


RETIRED = [
    # decode_ahead is the new word; a number of packets or entries ahead is a prefetch distance.
    Retired(
        "ahead",
        "decode_ahead",
        C,
        r"\w*(?:decode_ahead|DECODE_AHEAD)\w*|\w+_AHEAD|zn_seq_ahead|max_ahead_ns",
    ),
    Retired("behind", "async_writer, after", C),
    Retired("intake", "packet decoder"),
    Retired("sieve", "row filter"),
    Retired("settle", "flush, fast_path_ok, normalise, finish"),
    Retired("settled", "the watch mask's bits"),
    Retired("beyond", "watch", C),
    Retired("beside", "cold data, secondary attributes"),
    Retired("usual", "fast", C),
    Retired("room", "evict, capacity", r"csrc/(?:flow|engine)/.*"),
    Retired("early", "evicted", r"csrc/flow/.*"),
    Retired("rare", "flag_counts", C),
    Retired("resent", "retransmissions"),
    Retired("sighting", "packet context"),
    Retired("piece", "segment, fragment, frame", C),
    Retired("pieces", "segments, fragments, frames", C),
    Retired(
        "head",
        "parse state",
        r"csrc/(?:flow|analyzer)/.*",
        r"\w*(?:request_head|HTTP_HEAD|head_bytes)\w*",
    ),
    Retired("book", "name store"),
    Retired("sign", "signature", r"csrc/(?:proto|analyzer)/.*"),
    Retired("preamble", "proxy_or_starttls_prefix"),
    Retired("moment", "timestamp"),
    # A staging buffer is another word; a stage of the profile says so.
    Retired(
        "stage", "profile stage", r"csrc/.*\.[ch]", r"\w*(?:profile_stage|PROFILE_STAGE)\w*|stage"
    ),
    # An old name of a counter is an alias of the new one.
    Retired("alias", "pseudonym", BOTH, r"\w*stat_alias\w*|may_alias"),
    Retired("keep", "copy", r"csrc/release/gate.*", r"keep_\w+|\w+_keep_text|keep"),
    Retired("scout", "prefetch"),
    # Fields of the arrays that programs read keep their names.
    Retired("shown", "disclosure", C, r"client_shown|server_shown"),
    Retired("unasked", "pending"),
    Retired("everything", "release_all"),
    Retired("stays", "is_mapped"),
    Retired("told", "reported, disclosed, written, known"),
    Retired("given", "options", r"zanon_net/(?:cli|config)/.*"),
    Retired("made", "transaction", PYTHON),
    Retired("hints", "diagnostics", PYTHON, r"hints"),  # the manifest's and inspect's key
    Retired("adapting", "adaptive_z", PYTHON),
    Retired("found", "observed", r"csrc/analyzer/(?:names|evidence|secondary).*"),
    Retired("refused", "rejected", r"csrc/(?:analyzer|engine|util)/.*", r"CLOCK_REFUSED"),
]
CYTHON_TEXT = re.compile(r'""".*?"""|"[^"\n]*"|#[^\n]*', re.DOTALL)
MANY = re.compile(r"\w+_(?:many|MANY)")  # *_limit
OLD_COUNTERS = re.compile(
    r"(?:QUIC_IDS|QUIC_ANSWERS|DTLS_HELLOS)_MANY|OTHER_TUNNEL|ADDR_CLIENTS_FULL"
)


@cache
def words_of(name: str) -> set[str]:
    """The words of a name, in lower case."""
    return set(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().split("_"))


def names_in(path: str, text: str) -> Iterator[tuple[int, str]]:
    """(line, name) of each identifier in the file's code; not of comments and texts."""
    if path.endswith(".py"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield node.lineno, node.name
            elif isinstance(node, ast.arg):
                yield node.lineno, node.arg
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.lineno, node.id
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                yield node.lineno, node.attr
        return
    code = code_of(text)
    if path.endswith((".pyx", ".pxd")):
        code = re.sub(
            r'""".*?"""|#[^\n]*', lambda m: re.sub(r"[^\n]", " ", m[0]), code, flags=re.DOTALL
        )
    for number, line in enumerate(code.splitlines(), 1):
        for name in re.findall(r"[A-Za-z_]\w*", line):
            yield number, name


def retired_words_are_not_used(sources: Sources) -> Complaints:
    for path, text in sources.items():
        rules = [rule for rule in RETIRED if re.fullmatch(rule.files, path)]
        if not rules:
            continue
        for number, name in names_in(path, text):
            words = words_of(name)
            for rule in rules:
                if rule.word in words and not re.fullmatch(rule.excepted, name, re.IGNORECASE):
                    yield f"{path}:{number}: {name} (say {rule.instead})"
            if (
                path.startswith("csrc/")
                and MANY.fullmatch(name)
                and not OLD_COUNTERS.fullmatch(name)
            ):
                yield f"{path}:{number}: {name} (say *_limit)"
