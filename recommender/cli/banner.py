"""What `recommend` alone says, and `recommend --version`: read from small files only."""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from recommender.catalogs.errors import CatalogError
from recommender.catalogs.files import parse_json
from recommender.catalogs.registry import OWN_CLIENTS
from recommender.cli.screen import screen, write_text
from recommender.plan.version import __version__
from recommender.report import formatting as fmt
from recommender.report.json_output import PLAN_SCHEMA

_TITLE = (
    "recommend: which cloud GPUs to rent for a training job, with the chance to finish in time."
)
_EXAMPLE = "llama3-8b-pretrain"
_SHOWN = ("resnet50-imagenet", "bert-large-pretrain", "llama3-8b-lora")


def show_banner(version: bool) -> None:
    """Print the version, or the landing page."""
    width = screen().width
    lines = version_lines(width) if version else banner_lines(width)
    write_text("".join(f"{line}\n" for line in lines))


def banner_lines(width: int) -> list[str]:
    """Ten lines for a user who types only the name of the tool."""
    from recommender.job.merge_layers import FILE
    from recommender.job.preset_files import presets

    jobs = "  ".join(name for name in _SHOWN if name in presets())
    below = [
        ("Jobs", f"{jobs}  … ({len(presets())})"),
        ("Your own", "recommend jobs new --like llama3-8b-sft > recommend.yaml"),
        ("Prices", f"{_origin()}: {dates_line()}"),
        ("More", "recommend --help · recommend doctor"),
    ]
    if Path(FILE).is_file():
        below.insert(0, ("Here", f"{FILE} found: recommend --deadline 24h"))
    labelled = (line for label, words in below for line in _wrapped(words, width, label.ljust(10)))
    return [*_wrapped(_TITLE, width), "", *_examples(width), "", *labelled]


def _wrapped(words: str, width: int, first: str = "") -> list[str]:
    """Lines of at most `width`, hanging; this page answers before rich could be loaded."""
    indent = " " * len(first)
    return textwrap.wrap(
        words, width, initial_indent=first, subsequent_indent=indent, break_long_words=False
    )


def _origin() -> str:
    return "refreshed" if held_manifest() else "shipped snapshot"


def _examples(width: int) -> list[str]:
    examples = (
        (f"recommend --deadline 24h {_EXAMPLE}", "cheapest plans in time"),
        (f"recommend --budget 200   {_EXAMPLE}", "fastest plans for the money"),
        (f"recommend --hourly 30    {_EXAMPLE}", "fastest plans under USD/hour"),
        (f"recommend                {_EXAMPLE}", "the whole cost-time curve"),
    )
    both = [f"  {call}    {words}" for call, words in examples]
    if all(len(line) <= width for line in both):
        return both
    lines: list[str] = []
    for call, words in examples:
        lines += [f"  {each}" for each in folded(call.split(), width - 2, "  ")]
        lines += _wrapped(words, width, "    ")
    return lines


def folded(words: Sequence[str], width: int, indent: str) -> list[str]:
    """The words on lines that end in a backslash, so that they can still be copied."""
    lines, current = [], ""
    for word in words:
        if current and len(current) + 1 + len(word) > width - 2:
            lines.append(current + " \\")
            current = indent + word
        else:
            current = f"{current} {word}" if current else word
    return [*lines, current] if current else lines


def version_lines(width: int) -> list[str]:
    """Tool, dates of the shipped catalog, schema."""
    rows = (("recommend", __version__), ("catalog", dates_line()), ("schema", PLAN_SCHEMA))
    return [line for name, words in rows for line in _wrapped(words, width, name.ljust(10))]


def dates_line() -> str:
    """The newest price of each provider in the catalog that holds; of GPU clouds the span."""
    dates = catalog_dates()
    said = [f"{fmt.provider(p)} {day}" for p, day in dates.items() if p in OWN_CLIENTS]
    others = sorted(day for p, day in dates.items() if p not in OWN_CLIENTS)
    if others:
        said.append(f"{fmt.plural(len(others), 'GPU cloud')} {others[0]} to {others[-1]}")
    return " · ".join(said) or "missing"


def catalog_dates() -> Mapping[str, str]:
    """Newest price per provider, from the manifest alone: no table is read."""
    return _dates(held_manifest() or _shipped())


def held_manifest() -> Path | None:
    """The manifest of the version that holds in this user's store; none without one."""
    from recommender.catalogs import MANIFEST
    from recommender.catalogs.store import Store, default_root

    try:
        store = Store(default_root())
        held = store.current_or_newest()
    except (OSError, CatalogError):
        return None
    path = store.path(held) / MANIFEST if held else None
    return path if path and path.is_file() else None


def _shipped() -> Path:
    import recommender.catalogs as shipped

    return Path(shipped.__file__).parent / "snapshot" / "manifest.json"


def _dates(path: Path) -> Mapping[str, str]:
    try:
        rows = parse_json(path.read_text(encoding="utf-8"))["prices"]
        newest: dict[str, str] = {}
        for row in rows:
            name = str(row["provider"])
            newest[name] = max(str(row["newest"]), newest.get(name, ""))
    except (OSError, ValueError, LookupError, TypeError):
        return {}
    return newest
