# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Rows for the row filter, and its output read back."""

import csv
import io
import json

from support.filter import sift

HEADER = b"time,user,attribute\n"


def attributes(data: bytes, **options: object) -> list[str]:
    """The attributes written for `data`, read back by the csv module."""
    out, _row_filter = sift(data, **{"no_user": True} | options)
    return [row[1] for row in csv.reader(io.StringIO(out.decode(), newline=""), strict=True)][1:]


def line(**members: object) -> bytes:
    return json.dumps(members).encode() + b"\n"
