# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The line about an internal error: it helps a report, and no value of the data is in it."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zanon_net.cli.internal_error import _PYTHON, PACKAGE, internal_error

SECRET = "secret-clinic.example"
FAILING = """
def fail(value):
    \"\"\"A docstring about a patient.\"\"\"
    raise ValueError(f"the flow {value} has no side, {value!r}")
"""


def failing() -> Callable[[object], None]:
    """A function that is in a file of the package, as far as anybody can see."""
    found: dict[str, Callable[[object], None]] = {}
    exec(compile(FAILING, str(PACKAGE / "pipeline" / "made_up.py"), "exec"), found)
    return found["fail"]


def raised(call: Callable[[], object]) -> BaseException:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        call()
    return caught.value


def test_the_type_the_place_and_the_text() -> None:
    line = internal_error(raised(lambda: failing()(SECRET)))
    assert line == (
        "ValueError at zanon_net/pipeline/made_up.py:4 (fail): the flow ... has no side, '...'"
    )


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: [][len(SECRET)], "IndexError: list index out of range"),
        (lambda: {}[SECRET], "KeyError"),
        (lambda: int(SECRET), "ValueError: invalid literal for int() with base ..."),
        (lambda: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda: json.loads("{" + SECRET), "JSONDecodeError: "),
        (lambda: getattr(None, SECRET), "AttributeError: 'NoneType' object has no attribute '...'"),
    ],
)
def test_errors_of_python_itself(call: Callable[[], object], text: str) -> None:
    assert internal_error(raised(call)).startswith(text)


@given(st.text(min_size=1, max_size=40) | st.from_regex(r"[a-z]+(\.[a-z]+){0,3}", fullmatch=True))
def test_no_value_is_in_the_line(value: str) -> None:
    known = _PYTHON | {"the", "flow", "has", "no", "side", "value", "ValueError"}
    line = internal_error(raised(lambda: failing()(value)))
    text = line.partition("(fail): ")[2]
    left = {word.strip("'\"().,;:=<>[]{}") for word in text.split()} - {""}
    assert left <= known
