# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The job of `zanon-net filter` in plain Python, the peer of bench/filter.py.

Usage: python bench/filter_peer.py csv|jsonl Z WINDOW_S < INPUT > OUTPUT

It uses the csv or json module, an OrderedDict of users for each attribute (Algorithm 1), and a
pseudonym for each user and window by HMAC-SHA256, remembered during the window. It does less than
the filter: it handles neither bad or late rows, nor attributes that are never exposed again.
"""

import csv
import hmac
import json
import os
import sys
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import TextIO

Row = tuple[float, str, str]


def read_rows(format: str, source: TextIO) -> Iterator[Row]:
    """Yields the time in seconds, the user and the attribute of each row."""
    if format == "csv":
        rows = csv.reader(source)
        t, user, attribute = map(next(rows).index, ("time", "user", "attribute"))
        for row in rows:
            yield float(row[t]), row[user], row[attribute]
    else:
        for line in source:
            member = json.loads(line)
            yield member["time"], member["user"], member["attribute"]


def released(rows: Iterable[Row], z: int, window_s: float) -> Iterator[Row]:
    """Yields the rows whose attribute z users share within the window."""
    seen: dict[str, OrderedDict[str, float]] = {}
    for t, user, attribute in rows:
        users = seen.setdefault(attribute, OrderedDict())
        users[user] = t
        users.move_to_end(user)
        oldest = t - window_s
        while next(iter(users.values())) < oldest:
            users.popitem(last=False)
        if len(users) >= z:
            yield t, user, attribute


def pseudonyms(rows: Iterable[Row], window_s: float) -> Iterator[Row]:
    """Yields the rows with each user's pseudonym of the window."""
    epoch, key, known = -1, b"", dict[str, str]()
    for t, user, attribute in rows:
        if t // window_s != epoch:
            epoch, key = t // window_s, os.urandom(32)
            known.clear()
        alias = known.get(user)
        if alias is None:
            alias = known[user] = hmac.digest(key, user.encode(), "sha256")[:16].hex()
        yield t, alias, attribute


def main() -> None:
    """Filters standard input to standard output."""
    format, z, window_s = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    sys.stdin.reconfigure(encoding="utf-8", newline="")  # type: ignore[union-attr]
    sys.stdout.reconfigure(encoding="utf-8", newline="")  # type: ignore[union-attr]
    rows = released(read_rows(format, sys.stdin), z, window_s)
    if format == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(("time", "user", "attribute"))
        writer.writerows(pseudonyms(rows, window_s))
    else:
        for t, alias, attribute in pseudonyms(rows, window_s):
            sys.stdout.write(json.dumps({"time": t, "user": alias, "attribute": attribute}) + "\n")


if __name__ == "__main__":
    main()
