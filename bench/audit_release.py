# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Time and memory of `zanon-net audit` on a release of Parquet that this program makes.

Usage: python bench/audit_release.py [--records N] [--pseudonyms N] [--epochs N] [--csv] FOLDER

The release has 24 epochs of an hour, 10 million records and 200,000 pseudonyms. A pseudonym visits
the names of its interests, and a third of the records are coarse. The program makes FOLDER if it
does not exist, and prints a JSON line: seconds of wall time and of CPU, the most resident memory
(bytes), and the exit code of the audit.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import duckdb

HOUR_NS, NAMES = 3600 * 10**9, 20_000
FILES = 8
ROW = """
SELECT make_timestamp_ns(start_ns) AS t_start_ns, make_timestamp_ns(end_ns) AS t_end_ns,
 6::UTINYINT AS proto, CASE WHEN NOT hidden THEN '10.' || (u % 64) || '.' || (u // 64 % 256) || '.'
 || (u // 16384 + epoch * 8) END AS client, NULL::VARCHAR AS server, 0::USMALLINT AS client_port,
 443::USMALLINT AS server_port, CASE WHEN NOT hidden THEN 'host' || name || '.example' END AS name,
 'tls' AS name_source, CASE WHEN hidden THEN 'suppressed' ELSE 'released' END AS name_status,
 'none' AS ech, CASE WHEN hidden THEN 0 ELSE epoch END AS epoch,
 CASE WHEN hidden THEN 16 ELSE 5 + h % 11 END::UBIGINT AS c_pkts,
 CASE WHEN hidden THEN 16 ELSE 5 + h % 13 END::UBIGINT AS s_pkts,
 CASE WHEN hidden THEN 1024 ELSE 400 + name % 300 + h % 7 END::UBIGINT AS c_bytes,
 CASE WHEN hidden THEN 16384 ELSE 3000 + name * 7 % 9000 + h % 101 END::UBIGINT AS s_bytes,
 CASE WHEN NOT hidden THEN true END AS complete
FROM (SELECT *,
 CASE WHEN hidden THEN end_at // 60000000000 * 60000000000 ELSE began END AS start_ns,
 CASE WHEN hidden THEN end_at // 60000000000 * 60000000000 ELSE end_at END AS end_ns
FROM (SELECT *, epoch * {hour} + (h >> 20) % {hour} AS began,
 epoch * {hour} + (h >> 20) % {hour} + (h >> 8) % 30000000000 AS end_at, h % 3 = 0 AS hidden,
 floor({names} * pow((g % 1000003) / 1000003.0, 4))::BIGINT AS name
FROM (SELECT *, (hash(i) >> 4)::BIGINT AS h,
 (hash(u * 31 + epoch, hash(i, 1) % 40) >> 4)::BIGINT AS g
FROM (SELECT i, i % {epochs} AS epoch, (hash(i, 2) % {users})::BIGINT AS u
FROM range({first}, {last}) AS numbers(i)))))
"""


def make(folder: Path, records: int, pseudonyms: int, epochs: int, *, as_csv: bool) -> None:
    """Writes the release and its manifest."""
    (folder / "flows").mkdir(parents=True)
    listed = []
    for number in range(FILES):
        first, last = (records * part // FILES for part in (number, number + 1))
        rows = ROW.format(
            hour=HOUR_NS,
            names=NAMES,
            epochs=epochs,
            users=pseudonyms // epochs,
            first=first,
            last=last,
        )
        name = f"flows/tcp-20240514T0900{number:02d}Z.parquet"
        copy = f"TO '{folder / name}' (FORMAT parquet)"
        if as_csv:
            name = f"flows-20240514T0900{number:02d}Z.csv"
            rows = f"SELECT * REPLACE (epoch_ns(t_start_ns) AS t_start_ns, epoch_ns(t_end_ns) AS t_end_ns, complete::INTEGER AS complete) FROM ({rows})"  # noqa: E501
            copy = f"TO '{folder / name}' (FORMAT csv, HEADER, QUOTE '')"
        duckdb.execute(f"COPY ({rows}) {copy}")
        size = (folder / name).stat().st_size
        listed.append({"file": name, "bytes": size, "records": last - first})
    configuration = {
        "anonymity": {"z": 20, "window_ns": HOUR_NS, "exact": False},
        "addresses": {"rotate_ns": HOUR_NS, "pseudonyms": "networks", "key_mode": "ephemeral"},
        "output": {"for": "partner", "coarse_steps": "4", "coarse_end": "none"},
    }
    manifest = {
        "name": "zanon-net",
        "error": None,
        "running": False,
        "configuration": configuration,
        "outputs": listed,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--pseudonyms", type=int, default=200_000)
    parser.add_argument("--epochs", type=int, default=24)
    parser.add_argument("--csv", action="store_true")
    parser.add_argument("--memory", default="2G")
    given = parser.parse_args()
    if not given.folder.exists():
        make(given.folder, given.records, given.pseudonyms, given.epochs, as_csv=given.csv)
    command = [sys.executable, "-m", "zanon_net", "audit", str(given.folder)]
    began = time.monotonic()
    done = subprocess.run([*command, "--memory", given.memory, "-q"], check=False)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    figures = {
        "records": given.records,
        "wall_s": round(time.monotonic() - began, 2),
        "cpu_s": round(used.ru_utime + used.ru_stime, 2),
        "rss_bytes": used.ru_maxrss * 1024,
        "exit_code": done.returncode,
    }
    print(json.dumps(figures))
    return 0 if done.returncode in (0, 4) else 1


if __name__ == "__main__":
    sys.exit(main())
