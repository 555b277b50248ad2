"""HTML as trees of elements: whatever is text is escaped when the tree is written."""

import re
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from functools import cache
from importlib.resources import files
from typing import TypeAlias
from xml.etree import ElementTree

from recommender.catalogs.frozen import dataclass
from recommender.report.formatting import GLUE, glued

Element: TypeAlias = ElementTree.Element
Child: TypeAlias = Element | str

MOST_UNBROKEN = 26  # characters of a name that fit a line of a phone
VERBATIM = ("pre", "script", "style", "title")  # whose text is code, or outside of the page


def element(tag: str, *children: Child, **attributes: str) -> Element:
    """An element; `class_` and `data_x` are written as `class` and `data-x`."""
    named = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    made = ElementTree.Element(tag, named)
    extend(made, children if tag in VERBATIM else map(_unbroken, children))
    return made


def _unbroken(child: Child) -> Child:
    """Words of which no line parts a number from its unit."""
    return glued(child).replace(GLUE, "\u00a0") if isinstance(child, str) else child


def names(words: str) -> list[Child]:
    """Names of machines, places and flags: lines end at blanks and underscores, not at hyphens."""
    parts = re.split(r"(?<= [+·]) ", words)
    return [
        child for i, part in enumerate(parts) for child in ((" ",) if i else ()) + (_name(part),)
    ]


def _name(words: str) -> Element:
    pieces = re.split(r"(?<=_)|(?<=[^×] )", words)
    broken: list[Child] = [pieces[0]]
    for piece in pieces[1:]:
        broken += [element("wbr"), piece]
    fits = max(map(len, pieces)) <= MOST_UNBROKEN
    return element("span", *broken, class_="name" if fits else "name long")


@cache
def _parts() -> Mapping[str, Element]:
    """The parts of `static/parts.html` by name, without the blanks between their tags."""
    text = files(__package__).joinpath("static", "parts.html").read_text("utf-8")
    found = ElementTree.fromstring(text)
    for each in found.iter():
        each.text, each.tail = _words(each.text), _words(each.tail)
    return {each.attrib["name"]: each for each in found}


def _words(text: str | None) -> str | None:
    """Words of the file as they are shown: on one line, numbers with their units."""
    if not (text and text.strip()):
        return None
    first, *lines = text.split("\n")
    kept = [first.rstrip(), *(line.strip() for line in lines[:-1] if line.strip())]
    return str(_unbroken(" ".join([*kept, lines[-1].lstrip()] if lines else [text])))


def fragment(name: str, **slots: Iterable[Element]) -> list[Element]:
    """A part of the page that is the same for all answers, but for its slots."""
    made = deepcopy(_parts()[name])
    for parent in list(made.iter()):
        for i, child in reversed(list(enumerate(parent))):
            if child.tag == "slot":
                parent[i : i + 1] = list(slots[child.attrib["name"]])
    return list(made)


def extend(parent: Element, children: Iterable[Child]) -> None:
    """Add children behind those that are there; text goes where a tree keeps it."""
    for child in children:
        if isinstance(child, str):
            if len(parent):
                parent[-1].tail = (parent[-1].tail or "") + child
            else:
                parent.text = (parent.text or "") + child
        else:
            parent.append(child)


def written(tree: Element) -> str:
    """An element as HTML text; text of scripts and styles alone is left as it is."""
    return ElementTree.tostring(tree, encoding="unicode", method="html")


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table of words: the twin of a picture, or a list of its own."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]  # a cell may have a second line
    right: frozenset[int] = frozenset()  # columns of figures
    named: frozenset[int] = frozenset()  # columns of machines

    def element(self, **attributes: str) -> Element:
        """The table, its first column naming the rows, in a frame that scrolls where it must."""
        head = element("tr", *(self._head(i, name) for i, name in enumerate(self.columns)))
        body = (element("tr", *self._row(row)) for row in self.rows)
        table = element(
            "table",
            element("caption", self.caption),
            element("thead", head),
            element("tbody", *body),
            **attributes,
        )
        return element(
            "div", table, class_="scroll", tabindex="0", role="group", aria_label=self.caption
        )

    def _head(self, column: int, name: str) -> Element:
        return element("th", name, scope="col", **self._class(column))

    def _row(self, row: Sequence[str]) -> Iterable[Element]:
        for column, words in enumerate(row):
            head, _, rest = words.partition("\n")
            first = names(head) if column in self.named else [head]
            lines = (*first, element("small", rest)) if rest else first
            if column == 0:
                yield element("th", *lines, scope="row", **self._class(column))
            else:
                yield element("td", *lines, **self._class(column))

    def _class(self, column: int) -> dict[str, str]:
        return {"class_": "number"} if column in self.right else {}


def section(name: str, title: str, *children: Child) -> Element:
    """A part of the page under its heading, which links lead to by `name`."""
    head = element("h2", title, id=f"{name}-title")
    return element("section", head, *children, id=name, aria_labelledby=f"{name}-title")


def folded(summary: str, *children: Child) -> Element:
    """What is read on demand: closed on the screen, open on paper."""
    return element("details", element("summary", summary), *children)


def figure(name: str, alt: str, *twin: Child, caption: str = "") -> Element:
    """A place for a picture, what it shows in words, and its figures as a table."""
    picture = element("div", id=name, class_="chart", role="img", aria_label=alt)
    words = [element("figcaption", caption)] if caption else []
    tables = [folded("The figures as a table", *twin)] if twin else []
    return element("figure", *words, picture, *tables)
