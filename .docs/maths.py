"""Subscripts and exponents of docstrings, written as in λ_s, T_pf or r_t^{q}, set as such."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

KINDS: Mapping[str, type[nodes.Element]] = {"_": nodes.subscript, "^": nodes.superscript}
VERBATIM = (nodes.FixedTextElement, nodes.literal, nodes.raw, addnodes.desc_signature)
MARK = re.compile(
    r"""
    (?: (?<=[\w)\]₊])\^                        # an exponent follows a symbol, a unit or a bracket,
      | (?: (?<=\b[^\W\d_]) | (?<=[∫∬Σ∏\u0304]) )_   # a subscript one letter or sign, so that snake_case is left alone
    )
    (?: \{ (?P<group> (?: [^{}] | \{[^{}]*\} )* ) \}
      | (?P<bare> [−-]?\d+ | [^\W\d_]{1,4} (?:,[^\W\d_]\b)? (?!\w) | ∞ )
    )
    """,
    re.VERBOSE,
)


def setup(app: Sphinx) -> Mapping[str, Any]:
    """Let Sphinx apply what is below."""
    app.add_transform(SubAndSuperscripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class SubAndSuperscripts(SphinxTransform):
    """Set what follows `_` or `^` low or high, wherever text is not verbatim."""

    default_priority = 900

    def apply(self, **kwargs: Any) -> None:
        """Replace text nodes by text with subscripts and superscripts."""
        for text in list(self.document.findall(nodes.Text)):
            if MARK.search(text) and not _verbatim(text):
                text.parent.replace(text, list(split(text.astext())))


def _verbatim(node: nodes.Node) -> bool:
    return node is not None and (isinstance(node, VERBATIM) or _verbatim(node.parent))


def split(text: str) -> Iterator[nodes.Node]:
    """Yield text and what is low or high in it, in order."""
    end = 0
    for match in MARK.finditer(text):
        if match.start() > end:
            yield nodes.Text(text[end : match.start()])
        inner = match["group"] if match["group"] is not None else match["bare"]
        kind = KINDS[match[0][0]]
        yield kind("", "", *split(inner))
        end = match.end()
    if end < len(text):
        yield nodes.Text(text[end:])
