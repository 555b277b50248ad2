"""Draws docs/architecture.svg from the imports of the packages: `make picture`.

Rows are the layers that import-linter keeps (pyproject.toml), boxes are packages, arrows are
imports. An arrow is left out where a chain of others says it: who stands higher may use all below.
"""

import ast
import re
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "architecture.svg"
INSTALLED_INSIDE = {"catalogs": ROOT / "catalogs", "benchmarks": ROOT / "benchmarks"}
WIDTH, BOX_W, BOX_H, ROW_H, TOP = 1000, 230, 46, 96, 24
INK, LINE, FILL, FAINT = "#1f2933", "#8295a8", "#f3f6f9", "#52667a"

Arrows = dict[str, set[str]]


def layers() -> list[list[str]]:
    """The packages of every layer, highest first, without small modules at the root."""
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    contracts = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    rows = next(each["layers"] for each in contracts if each["type"] == "layers")
    named = [[name.strip() for name in row.split("|")] for row in rows]
    packages = [[name for name in row if folder(name).is_dir()] for row in named]
    return [row for row in packages if row]


def folder(name: str) -> Path:
    """Where a package lies in the repository."""
    return INSTALLED_INSIDE.get(name, ROOT / "recommender" / name)


def imports(name: str) -> set[str]:
    """The packages of ours that a package imports, whenever it does."""
    found = set()
    for path in folder(name).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and not node.level:
                parts = (node.module or "").split(".")
                if parts[0] == "recommender" and len(parts) > 1:
                    found.add(parts[1])
    return found - {name}


def arrows() -> Arrows:
    """Imports between packages that no chain of others implies."""
    names = {name for row in layers() for name in row}
    direct = {name: imports(name) & names for name in sorted(names)}
    below: Arrows = defaultdict(set)

    def all_below(name: str) -> set[str]:
        if name not in below:
            below[name] = direct[name].union(*(all_below(other) for other in direct[name]))
        return below[name]

    return {
        name: {other for other in used if not any(other in all_below(x) for x in used)}
        for name, used in direct.items()
    }


def said(name: str) -> str:
    """What a package is for: the first line of its docstring, up to a colon."""
    doc = ast.get_docstring(ast.parse((folder(name) / "__init__.py").read_text("utf-8"))) or ""
    return re.split(":|, with", doc.partition("\n")[0])[0]


def centres() -> dict[str, tuple[float, float]]:
    """The middle of every box."""
    places = {}
    for at, row in enumerate(layers()):
        step = WIDTH / len(row)
        for column, name in enumerate(row):
            places[name] = (step * (column + 0.5), TOP + ROW_H * at + BOX_H / 2)
    return places


def picture() -> str:
    """The whole SVG."""
    places = centres()
    height = TOP + ROW_H * len(layers())
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="system-ui, sans-serif" role="img" '
        'aria-label="Packages and the imports between them">',
        '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="{LINE}"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
    ]
    for name, used in arrows().items():
        parts += [arrow(places[name], places[other]) for other in sorted(used)]
    parts += [box(name, *place) for name, place in places.items()]
    return "\n".join([*parts, "</svg>", ""])


def arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    """A curve from the foot of one box to the head of another."""
    (x1, y1), (x2, y2) = start, end
    y1, y2 = y1 + BOX_H / 2, y2 - BOX_H / 2
    bend = (y2 - y1) / 2
    path = f"M{x1:.0f} {y1:.0f}C{x1:.0f} {y1 + bend:.0f} {x2:.0f} {y2 - bend:.0f} {x2:.0f} {y2:.0f}"
    return f'<path d="{path}" fill="none" stroke="{LINE}" marker-end="url(#a)"/>'


def box(name: str, x: float, y: float) -> str:
    """A package with its name and what it is for."""
    left, top, words = x - BOX_W / 2, y - BOX_H / 2, said(name)
    return (
        f'<g><rect x="{left:.0f}" y="{top:.0f}" width="{BOX_W}" height="{BOX_H}" rx="6" '
        f'fill="{FILL}" stroke="{LINE}"/>'
        f'<text x="{x:.0f}" y="{y - 3:.0f}" text-anchor="middle" font-size="15" '
        f'font-weight="600" fill="{INK}">{name}/</text>'
        f'<text x="{x:.0f}" y="{y + 13:.0f}" text-anchor="middle" font-size="11" '
        f'fill="{FAINT}">{words}</text></g>'
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(), "utf-8")
