"""How the documentation is built: `make docs`."""

from expost import __version__

project = "expost"
author = "The expost developers"
release = version = __version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx_proof",
    "sphinxcontrib.bibtex",
]
myst_enable_extensions = ["dollarmath", "amsmath"]
bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "plain"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
html_theme = "furo"
html_title = "expost"
exclude_patterns = ["_build", "figures"]
