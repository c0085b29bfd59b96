"""One plot of the report: a picture, a sentence that says what to see, and its data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from outrider.compare.look import Look
from outrider.compare.markup import Table, details, swatch, tagged


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """`name` is its id in the page; `svg` is markup, the rest plain text."""

    name: str
    title: str
    caption: str
    svg: str
    data: Table
    key: Mapping[str, Look] = field(default_factory=dict)  # name -> how it looks
    is_wide: bool = False  # takes a row of the page for itself

    def html(self) -> str:
        key = "".join(
            f"<li>{swatch(look.colour, look.letter)} {tagged('span', name)}</li>"
            for name, look in self.key.items()
        )
        kind = ' class="wide"' if self.is_wide else ""
        return (
            f'<figure id="{self.name}"{kind}>\n{tagged("h3", self.title)}\n'
            f'<ul class="key">{key}</ul>\n{self.svg}\n'
            f"{tagged('figcaption', self.caption)}\n"
            f"{details('The data', self.data.html())}\n</figure>"
        )
