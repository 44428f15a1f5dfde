"""Sphinx's configuration; `python .docs` writes the pages it reads."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import geoedge

project = "geoedge"
author = "The geoedge authors"
project_copyright = "The geoedge authors; maps © OpenStreetMap contributors"
version = release = geoedge.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "myst_parser", "names", "maths"]
default_role = "py:obj"  # a name in backticks leads to what it names, if that has a page

autosummary_generate = False
autodoc_inherit_docstrings = False
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
autodoc_type_aliases = {name: name for name in ("ArrayLike", "FloatArray", "IntArray", "BoolArray")}
python_maximum_signature_line_length = 88
add_module_names = False
toc_object_entries = False
numpydoc_xref_param_type = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

myst_heading_anchors = 3

html_theme = "furo"
html_title = "geoedge"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
