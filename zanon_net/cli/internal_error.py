# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The description of an internal error: what a report of it needs, and nothing of the data.

An exception's text may hold a value out of traffic. Words of the text are kept only if the code
that failed has them as constants or names, or if they belong to Python's own messages.
"""

import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, TracebackType

PACKAGE = Path(__file__).resolve().parents[1]
LEFT_OUT = "..."
TEXT_MAX = 200

_TOKEN = re.compile(r"[^\s'\"()\[\]{},;:=<>]+")
_MASKS = re.compile(rf"(?:{re.escape(LEFT_OUT)}[\W_]*){{2,}}")
_MESSAGES = """
a an and any are argument arguments as assignment assigned associated at attribute attributes
base be before bool bound but by byte bytes bytes-like call callable can cannot changed closed
codec concatenate context convert could decode depth dict dictionary division during elements
empty encode exceeded expected file finite float for found free from function generator get
given got has have in index indices instance int integer integers invalid is it item items
iterable iterator iteration key keyword keys length list literal local many maximum method
mismatch missing module modulo more most must name named negative no NoneType not null number
object of on operand operation or out overflow positional position pop range read recursion
referenced required resource sequence set size slice slices str string strings subscriptable
substring support supported take takes than the to too True False None tuple type types
unavailable unexpected unhashable unpack unsupported value values variable was were where while
with within without write zero
"""
_PYTHON = frozenset(re.findall(r"[\w-]+", _MESSAGES))
"""Words of the messages of Python itself, between which data may stand."""


def internal_error(error: BaseException) -> str:
    """A line about an error that must not happen: its type, its place in the code, its text."""
    place, words = "", _PYTHON
    for frame, line in _frames(error.__traceback__):
        path = Path(frame.co_filename)
        if PACKAGE in path.parents:
            place = f" at {path.relative_to(PACKAGE.parent)}:{line} ({frame.co_name})"
            words = _PYTHON | frozenset(_words_of(frame))
    text = _masked(str(error), words)
    return f"{type(error).__name__}{place}{f': {text}' if text else ''}"


def _frames(trace: TracebackType | None) -> Iterator[tuple[CodeType, int]]:
    """The code of each frame and its line, the innermost last."""
    for frame, line in traceback.walk_tb(trace):
        yield frame.f_code, line


def _words_of(code: CodeType) -> Iterator[str]:
    """The words that stand in the code itself, but for its docstring."""
    yield from (*code.co_names, *code.co_varnames)
    for constant in code.co_consts[1:]:
        if isinstance(constant, str):
            yield from _TOKEN.findall(constant)


def _masked(text: str, words: frozenset[str]) -> str:
    """The text with its other words left out; empty if no word stays."""
    kept = False

    def word_or_mask(match: re.Match[str]) -> str:
        nonlocal kept
        known = match[0].rstrip(".") in words
        kept = kept or known
        return match[0] if known else LEFT_OUT

    masked = _MASKS.sub(f"{LEFT_OUT} ", _TOKEN.sub(word_or_mask, text[:TEXT_MAX])).strip()
    return masked if kept else ""
