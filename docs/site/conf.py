# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of Sphinx for the site of the documents: `make site`.

The source folder is the root of the repository, so that pages keep their places, and relative
links lead to the same page in a viewer of the repository and in the site.
"""

import sys
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

from zanon_net._version import __version__

sys.path.insert(0, str(Path(__file__).parent))  # the extensions beside this file

project = "zanon_net"
author = "The zanon_net authors"
copyright = author
version = release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "docstrings",
    "navigation",
    "outside_links",
    "source_pages",
]

# ---- Pages --------------------------------------------------------------------------------------

root_doc = "docs/README"
source_suffix = {".md": "myst-nb", ".rst": "restructuredtext", ".ipynb": "myst-nb"}
include_patterns = ["**.md", "docs/**"]
exclude_patterns = ["build", ".*", "demo-out"]
myst_heading_anchors = 6  # links to headings, as GitHub writes them
highlight_language = "none"
smartquotes = False  # quotation marks are part of what readers type

# Notebooks have no stored outputs, so each build runs them. An error in one ends the build.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_show_tb = True

# ---- Python -------------------------------------------------------------------------------------

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 88
default_role = "code"
# Types of other packages have no page here, and nothing is fetched from theirs.
nitpick_ignore_regex = [("py:.*", r"(?!zanon_net\b).*")]
# Types that signatures name, and that users neither make nor read.
nitpick_ignore = [
    ("py:class", f"zanon_net.{name}")
    for name in (
        "_core.TableRows",
        "_core.Taxonomy",
        "microdata.partition.Partition",
        "microdata.plan.Recoding",
        "microdata.scale.Scale",
        "model.fitting.Draw",
        "pipeline.totals.Totals",
        "popularity.Popularity",
        "rows.report.FilterReport",
        "system.service.ServiceManager",
    )
]

# ---- HTML ---------------------------------------------------------------------------------------

html_theme = "furo"
html_title = f"zanon_net {version}"
html_additional_pages = {"index": "to_root.html"}
templates_path = ["templates"]
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
copybutton_prompt_text = "$ "  # of a console's lines, what is typed
html_show_copyright = False


def setup(app: Sphinx) -> None:
    """Has CSV, of which Pygments knows nothing, shown as it is."""
    app.add_lexer("csv", TextLexer)
