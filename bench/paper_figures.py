# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Draws the figures of both z-anonymity papers from the model, and checks their claims.

Usage: python bench/paper_figures.py [--out docs]

Writes OUT/paper.md and OUT/paper/*.svg. 2020 is Jha et al., "z-anonymity: Zero-Delay Anonymization
for Data Streams"; 2022 is Jha et al., "Practical Anonymization for Data Streams". Takes minutes.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import paper_2020
import paper_2022
from paper_2020 import both, streams20, y20
from paper_2022 import rates22
from paper_claims import BIAS_SEEDS, Figure

from zanon_net.model import (
    exposure_probs,
    publish_probs,
    simulate,
)
from zanon_net.model.charts import draw


def biases() -> str:
    """Both biases as a table: results of formulas, and of streams without any assumption."""
    text = "| setting | formula of 2020 | model | streams | model minus streams |\n"
    text += "|---|---:|---:|---:|---:|\n"
    for z in (10, 20, 35, 60):
        formula, exact = both(y20(z), 50_000, 2)
        mean, error = streams20(z)
        text += (
            f"| 2020 Table II, z = {z} | {formula:.4f} | {exact:.4f} | {mean:.4f} ± {error:.4f} |"
        )
        text += f" {exact - mean:+.4f} |\n"
    for z in (100, 150, 200, 250, 300):
        py = publish_probs(exposure_probs(rates22(), 12), 1000, z)
        formula, exact = both(py, 1000, 2)
        shares = simulate(rates22(), 1000, 12, z, 2, seeds=BIAS_SEEDS)
        error = shares.std() / BIAS_SEEDS**0.5
        text += f"| 2022 Table 2, z = {z} | {formula:.4f} | {exact:.4f} | {shares.mean():.4f}"
        text += f" ± {error:.4f} | {exact - shares.mean():+.4f} |\n"
    return text


FIGURES = (*paper_2020.FIGURES, *paper_2022.FIGURES)
HEAD = """# The papers, reproduced

After reading this page you know which claims of the two z-anonymity papers hold. `python
bench/paper_figures.py` writes the page. It draws every figure of the papers that the model can
give with `zanon_net.model`, and compares the papers' claims with the results. *2020* is Jha et
al., "z-anonymity: Zero-Delay Anonymization for Data Streams". *2022* is Jha et al., "Practical
Anonymization for Data Streams". Figures 7 and 8 of 2020 need its data, which is not public.

Two biases affect all results:

- **The formula of 2020** is g(E[p_y]). This is the probability of a twin (another user with the
  same set) if every set were as common as the average match between two users. The correct value
  is E[g(p_y)]. Most matches are among the few commonest sets, and g is concave for k = 2. So the
  formula is always too high. In the figures, "2020" is that formula and "exact" is the model. Full
  streams agree with the model (Fig. 3).
- **Independence.** The model treats the decisions on different users as independent, but they
  depend on the same counters. Therefore simulated streams are slightly above the model (2022 Fig.
  C.10).

The table compares both with streams that pass through the z-table itself (k = 2; mean and standard
error of 10 streams for 2020, of 1000 for 2022):

BIASES
## Claims

| where | the paper says | result | |
|---|---|---|---|
"""


def page(figures: Sequence[Figure], measured: str) -> str:
    """Returns the text of docs/explanation/paper.md."""
    text = HEAD.replace("BIASES", measured)
    for figure in figures:
        for claim in figure.claims:
            verdict = "holds" if claim.holds else "**does not hold**"
            text += f"| {claim.where} | {claim.says} | {claim.found} | {verdict} |\n"
    text += "\n## Figures\n"
    for figure in figures:
        year, number = figure.name.split("-")
        text += f"\n### {year}, figure {number}\n\n{figure.caption}\n\n"
        text += f"![{year} figure {number}](paper/{figure.name}.svg)\n"
    return text


def main() -> None:
    """Draws and writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    folder = Path("docs", "explanation")
    parser.add_argument("--out", type=Path, default=folder, help="where paper.md goes")
    out = parser.parse_args().out
    (out / "paper").mkdir(parents=True, exist_ok=True)
    figures = []
    for make in FIGURES:
        figure = make()
        figures.append(figure)
        draw(out / "paper" / f"{figure.name}.svg", figure.caption, figure.panels)
        for claim in figure.claims:
            print(
                "holds  " if claim.holds else "DIFFERS", claim.where, "|", claim.found, flush=True
            )
    (out / "paper.md").write_text(page(figures, biases()), encoding="utf-8")


if __name__ == "__main__":
    main()
