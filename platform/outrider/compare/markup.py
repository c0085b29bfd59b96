"""Pieces of an HTML page. Every text is escaped here: names come from users."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of texts; the first `num_names` columns hold names, the others figures."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    num_names: int = 1

    def html(self) -> str:
        head = "".join(self._cell("th", index, text) for index, text in enumerate(self.headings))
        body = "".join(
            f"<tr>{''.join(self._cell('td', index, text) for index, text in enumerate(row))}</tr>\n"
            for row in self.rows
        )
        return (
            f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n'
            f"<tbody>{body}</tbody></table></div>"
        )

    def _cell(self, tag: str, index: int, text: str) -> str:
        kind = "" if index < self.num_names else ' class="figure"'
        scope = ' scope="col"' if tag == "th" else ""
        return f"<{tag}{scope}{kind}>{escape(text)}</{tag}>"


def tagged(tag: str, text: str, kind: str = "") -> str:
    """`<tag class=kind>text</tag>`, the text escaped."""
    return f"<{tag}{_class(kind)}>{escape(text)}</{tag}>"


def around(tag: str, parts: Iterable[str], kind: str = "") -> str:
    """`<tag class=kind>parts</tag>`; `parts` are HTML already."""
    inner = "\n".join(parts)
    return f"<{tag}{_class(kind)}>\n{inner}\n</{tag}>"


def details(summary: str, inner: str) -> str:
    """What is folded away until it is asked for; `inner` is HTML already."""
    return f"<details><summary>{escape(summary)}</summary>\n{inner}\n</details>"


def definitions(items: Mapping[str, str]) -> str:
    rows = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>\n"
        for name, text in items.items()
    )
    return f"<dl>{rows}</dl>"


def swatch(colour: str, letter: str) -> str:
    """A letter on its colour."""
    return f'<span class="swatch" style="background:{escape(colour)}">{escape(letter)}</span>'


def _class(kind: str) -> str:
    return f' class="{escape(kind)}"' if kind else ""
