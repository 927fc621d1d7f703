"""How the documentation is built: `make docs`."""

import re
import sys
from pathlib import Path

from docutils import nodes

from expost import __version__

sys.path.insert(0, str(Path(__file__).parent))

project = "expost"
author = "The expost developers"
release = version = __version__
extensions = [
    "myst_parser",
    "mathml",
    "public",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_proof",
    "sphinxcontrib.bibtex",
]
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 4
bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "plain"
autodoc_member_order = "bysource"
# What scikit-learn adds to estimators, documented with links into its own pages.
autodoc_default_options = {"exclude-members": "set_fit_request, set_predict_request, set_score_request"}
autodoc_typehints = "description"
suppress_warnings = ["ref.python"]  # two classes of one name in type hints, such as Mean: either page will do
html_math_renderer = "mathml"
html_static_path = ["static"]
html_css_files = ["expost.css"]
html_search_scorer = str(Path(__file__).parent / "static" / "scorer.js")
napoleon_google_docstring = False
napoleon_use_ivar = True  # an Attributes section is a list, so that autodoc may describe the same attributes again
html_theme = "furo"
html_title = "expost"
html_show_copyright = False
exclude_patterns = ["_build", "figures"]

# A copy button copies what was typed: no prompt, no output.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

LABEL = re.compile(r"\b(?:thm|lem|prop|cor|def|ex)-[\w-]+")


def end_parameters(app: object, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Let the text after a section be text: napoleon ends a section at two blank lines."""
    starts = (lines.index(heading) for heading in ("Parameters", "Attributes") if heading in lines)
    start = next(starts, len(lines))
    for place in range(start, len(lines) - 1):
        if not lines[place] and not lines[place + 1].startswith(" "):
            lines.insert(place, "")
            break


def link_proofs(app: object, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Let a docstring's last line, ``Proof: label``, lead to the proof."""
    lines[:] = [LABEL.sub(r":prf:ref:`\g<0>`", line) if line.startswith("Proof: ") else line for line in lines]


def keep_colons(app: object, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Let a property's text be text: napoleon takes what is before its first colon for a type. A comment ends that."""
    if what in ("attribute", "data", "property") and lines and ":" in lines[0]:
        lines[:0] = ["..", ""]


def keep_quiet(app: object, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Say nothing of a field of a named tuple but its name and type, rather than "Alias for field number 0"."""
    if lines and lines[0].startswith("Alias for field number"):
        lines.clear()


def end_blocks(app: object, tree: nodes.document) -> None:
    """Cut the blank line at the end of a block, which doctest needs before a fence."""
    for block in tree.findall(nodes.literal_block):
        if block.rawsource == block.astext():  # else it is not plain text, and not highlighted either
            block.rawsource = block.rawsource.rstrip()
            block[:] = [nodes.Text(block.rawsource)]


def setup(app: object) -> None:
    """Before napoleon reads a docstring (priority 500)."""
    app.connect("doctree-read", end_blocks)  # type: ignore[attr-defined]
    for mend in (end_parameters, link_proofs, keep_colons, keep_quiet):
        app.connect("autodoc-process-docstring", mend, priority=400)  # type: ignore[attr-defined]
