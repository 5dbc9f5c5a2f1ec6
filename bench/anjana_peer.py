# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""anjana's k-anonymity of UCI Adult, for microdata_anonymize.py, in a process of its own.

    PYTHONPATH=build/anjana python bench/anjana_peer.py K PERCENT

Prints JSON: the CPU seconds of the call, and how many rows have each combination of labels.
"""

import json
import sys
import time
from collections import Counter

import adult
import numpy as np
import pandas as pd
from anjana.anonymity import k_anonymity


def main() -> None:
    """Runs it once."""
    k, percent = int(sys.argv[1]), float(sys.argv[2])
    columns = adult.read()
    frame = pd.DataFrame({name: columns[name] for name in (*adult.QUASI, "income")})
    trees = {}
    for name, path in adult.HIERARCHIES.items():
        by_value = {line[0]: line for line in adult.lines_of(path)}
        lines = [by_value[value] for value in columns[name]]
        trees[name] = {
            level: np.array([line[level] for line in lines]) for level in range(len(lines[0]))
        }
    began = time.process_time()
    written = k_anonymity(frame, [], list(adult.QUASI), k, percent, trees)
    seconds = time.process_time() - began
    counts = Counter(zip(*(written[name] for name in adult.QUASI), strict=True))
    rows = [[*labels, count] for labels, count in counts.items()]
    print(json.dumps({"seconds": seconds, "rows": rows}))


if __name__ == "__main__":
    main()
