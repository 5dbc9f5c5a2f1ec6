# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Shells complete commands, options, choices and paths."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.cli import COMMAND, ENVIRONMENT
from support.installed import share

VARIABLE = "_ZANON_NET_COMPLETE"
SCRIPTS = {
    "bash": "bash-completion/completions/zanon-net",
    "zsh": "zsh/site-functions/_zanon-net",
    "fish": "fish/vendor_completions.d/zanon-net.fish",
}
# Calls the function as bash does when a tab is typed, and prints what it would offer.
TAB = """
source "$SCRIPT"
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
"$(complete -p zanon-net | sed 's/.*-F \\([^ ]*\\) .*/\\1/')" zanon-net
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return share(tmp_path_factory.mktemp("share"))


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A PATH on which `zanon-net` is the command under test."""
    program = tmp_path / "zanon-net"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m zanon_net "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return f"{tmp_path}{os.pathsep}{os.environ['PATH']}"


def ask(instruction: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environ = {**ENVIRONMENT, VARIABLE: instruction, **variables}
    return subprocess.run(COMMAND, env=environ, capture_output=True, text=True, check=False)


def offered(words: str, scripts: Path, path: str) -> list[str]:
    """What bash offers at the end of a line."""
    environ = {**ENVIRONMENT, "SCRIPT": str(scripts / SCRIPTS["bash"]), "PATH": path}
    command = ["bash", "-c", TAB, "bash", *words.split(" ")]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("zanon-net in", ["inspect"]),
        ("zanon-net table ", ["check", "risk", "anonymize", "hierarchy"]),
        ("zanon-net run --evid", ["--evidence"]),
        ("zanon-net run --evidence ", ["established", "any"]),
        ("zanon-net run --for pu", ["public"]),
        ("zanon-net no-such-command x", []),
    ],
)
def test_bash_completes(words: str, expected: list[str], scripts: Path, path: str) -> None:
    assert sorted(offered(words, scripts, path)) == sorted(expected)


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("zanon-net run cap", "file"),
        ("zanon-net key check k", "file"),
        ("zanon-net run --never n", "file"),
        ("zanon-net run --out l", "dir"),
    ],
)
def test_paths_are_left_to_the_shell(words: str, kind: str) -> None:
    last = words.split()[-1]
    done = ask("bash_complete", COMP_WORDS=words, COMP_CWORD=str(words.count(" ")))
    assert (done.returncode, done.stdout) == (0, f"{kind},{last}\n")


@pytest.mark.parametrize("shell", SCRIPTS)
def test_the_script_is_what_the_command_prints(shell: str, scripts: Path) -> None:
    done = ask(f"{shell}_source")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == (scripts / SCRIPTS[shell]).read_text(encoding="utf-8").strip()
    if program := shutil.which(shell):
        parsed = subprocess.run([program, "-n", str(scripts / SCRIPTS[shell])], capture_output=True)
        assert (parsed.returncode, parsed.stderr) == (0, b"")


def test_another_instruction_is_no_run() -> None:
    done = ask("tcsh_source")
    assert (done.returncode, done.stdout) == (1, "")


@pytest.mark.parametrize("number", ["", "one"])
def test_what_is_no_shell_gets_an_exit_code_and_no_more(number: str) -> None:
    done = ask("bash_complete", COMP_WORDS="zanon-net", COMP_CWORD=number)
    assert (done.returncode, done.stdout) == (1, "")
    assert "internal error" not in done.stderr
