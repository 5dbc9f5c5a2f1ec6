# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The classes that Flink itself calls, compiled for the Flink that is installed.

PyFlink has no binary format of files and no bucket by content: a few small classes of Java are
both. They are compiled where a job is submitted and travel with it, so clusters need nothing of
them.
"""

import shutil
import subprocess
import zipfile
from importlib.resources import as_file, files
from pathlib import Path

from zanon_net.errors import MissingExtraError, ZanonError

RELEASE = "17"
LIGHT_JIT = "-XX:TieredStopAtLevel=1"
"""For a JVM that hands bytes on: what the second compiler would gain is less than what it costs."""


def compile_classes(folder: Path) -> Path:
    """Writes zanon-flink.jar into a folder. Raises ZanonError."""
    javac = shutil.which("javac")
    if javac is None:
        raise MissingExtraError(
            "a job needs javac of Java 17: apt-get install openjdk-17-jdk-headless"
        )
    classes = folder / "classes"
    with as_file(files("zanon_net.flink") / "java") as sources:
        options = ["--release", RELEASE, "-nowarn", "-proc:none", "-cp", f"{flink_home()}/lib/*"]
        options += [f"-J{LIGHT_JIT}"]
        command = [javac, *options, "-d", str(classes), *map(str, sorted(sources.rglob("*.java")))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        first = next((line for line in done.stderr.splitlines() if "error" in line), "no reason")
        raise ZanonError(f"{javac} cannot compile the job's classes: {first}")
    jar = folder / "zanon-flink.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for path in sorted(classes.rglob("*.class")):
            archive.write(path, path.relative_to(classes).as_posix())
    return jar


def flink_home() -> Path:
    """The Flink that came with PyFlink. Raises MissingExtraError."""
    try:
        import pyflink
    except ImportError:
        raise MissingExtraError(
            "Flink jobs need: pip install 'zanon-net[flink]', in an environment of its own"
        ) from None
    return Path(pyflink.__file__).parent
