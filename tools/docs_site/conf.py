"""Sphinx's configuration for `make site`; the pages are laid out by stage.py."""

import importlib.metadata
from pathlib import Path

from tools.docs_site import docstrings

project = "CPythonPlus"
release = version = importlib.metadata.version("cpythonplus")
project_copyright = "the authors of CPythonPlus"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]

# The pages are written for GitHub: links to headings are made as it makes them.
myst_heading_anchors = 6
myst_enable_extensions = ["attrs_inline"]  # `![...](...){.class}`, which stage.py writes
# What is generated in the reference begins below the third level.
suppress_warnings = ["myst.header"]
# What stands in single backticks in a docstring is code.
default_role = "code"
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True

# No intersphinx: it asks the network at each build.  No nitpicky either: without the inventory of
# the standard library, each `int` of a signature is a reference that leads nowhere.

html_theme = "furo"
html_title = f"CPythonPlus {release}"
html_copy_source = False
html_show_sourcelink = False
html_search_scorer = str(Path(__file__).with_name("scorer.js"))
# Only the commands of a console block, without their prompt.
copybutton_prompt_text = r"\$ |>>> "
copybutton_prompt_is_regexp = True

# `make site-links` asks the web for the pages that these link.
linkcheck_timeout = 20


def setup(app: docstrings.Application) -> None:
    """Have docstrings read as what they are: plain prose."""
    app.connect("autodoc-process-docstring", docstrings.process)
    app.connect("autodoc-skip-member", docstrings.is_left_out)
