# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The log of the package: records of `logging`, or lines of a command."""

import logging
import subprocess
import sys

import pytest
from support.cli import ENVIRONMENT

from zanon_net.system.log import INFO, WARNING, Log

QUIET = """
import sys
from zanon_net.system.log import log
log.info("one of %d", 3)
log.notice("seen by nobody")
assert "logging" not in sys.modules
log.warning("heard of %s", "all")
"""


def test_records_go_to_logging(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "zanon_net")
    log = Log()
    log.info("read %d of %s", 3, "x")
    log.notice("100 % of it")
    log.warning("late")
    records = [(record.name, record.levelno, record.getMessage()) for record in caplog.records]
    expected = [(20, "read 3 of x"), (25, "100 % of it"), (30, "late")]
    assert records == [("zanon_net", *one) for one in expected]


def test_a_printer_gets_the_records_of_its_level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "zanon_net")
    log, lines = Log(), list[str]()
    with log.printing(lines.append):
        log.notice("not yet")
        log.level = INFO
        log.info("read %d", 3)
        log.warning("100 %")
    assert lines == ["read 3", "100 %"]
    assert not caplog.records
    assert log.level == WARNING
    log.warning("after")
    assert caplog.messages == ["after"]


def test_logging_is_imported_for_a_record_that_somebody_hears() -> None:
    done = subprocess.run(
        [sys.executable, "-c", QUIET], env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    assert done.stderr == "heard of all\n"
