# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the invented patients of docs/tutorial/table.md: python examples/make_patients.py."""

import csv
import random
from pathlib import Path

PATIENTS = 400
DISTRICTS = {"001": 5, "002": 3, "003": 2}  # no post office has these
DIAGNOSES = {"influenza": 34, "asthma": 18, "diabetes": 18, "fracture": 16, "migraine": 14}
TARGET = Path(__file__).with_name("patients.csv")


def rows() -> list[tuple[str, int, str, str, str]]:
    """Returns the visits of all patients. A patient comes up to three times, and mostly once."""
    drawn = random.Random(25)
    found = []
    for number in range(PATIENTS):
        age = min(94, max(18, round(drawn.gauss(48, 17))))
        district = drawn.choices(list(DISTRICTS), list(DISTRICTS.values()))[0]
        area = f"{district}{drawn.randrange(1, 4)}{drawn.randrange(0, 4)}"
        sex = drawn.choice("fm")
        for _ in range(drawn.choices((1, 2, 3), (80, 15, 5))[0]):
            diagnosis = drawn.choices(list(DIAGNOSES), list(DIAGNOSES.values()))[0]
            found.append((f"p{number:03}", age, area, sex, diagnosis))
    drawn.shuffle(found)
    return found


def main() -> None:
    """Writes the table."""
    with TARGET.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("id", "age", "zip", "sex", "diagnosis"))
        writer.writerows(rows())


if __name__ == "__main__":
    main()
