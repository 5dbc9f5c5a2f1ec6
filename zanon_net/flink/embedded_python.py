# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Python within the JVM of a task manager, where a job's functions run.

Votes then cross no socket and are copied once. An embedded Python does not know the environment of
an executable, so it is told where packages are; and it needs Python as a shared library.
"""

import sys
from pathlib import Path

import zanon_net
from zanon_net.errors import MissingExtraError


def packages_of(python: str) -> list[str]:
    """The folders of packages of a Python on the task managers, which is of this version, and those
    of this zanon_net, which may be a source tree."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    environment = Path(python).absolute().parents[1] / "lib" / version / "site-packages"
    own = Path(zanon_net.__file__).absolute().parents[1]
    return list(dict.fromkeys([str(environment), str(own)]))


def check_library() -> None:
    """Raises MissingExtraError where this Python cannot be embedded."""
    from find_libpython import find_libpython

    if find_libpython() is None:
        raise MissingExtraError(
            f"Flink embeds Python, and {sys.executable} comes without a shared library:"
            f" apt-get install libpython3.{sys.version_info.minor},"
            " or a Python that was built with --enable-shared"
        )
