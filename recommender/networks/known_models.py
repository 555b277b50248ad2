"""The `config.json` fields of well-known models, so that their names work offline."""

import csv
import json
import re
from collections.abc import Collection
from dataclasses import replace
from functools import cache
from importlib.resources import files
from itertools import takewhile
from math import inf, log
from typing import Any

from recommender.catalogs.frozen import dataclass
from recommender.networks.config import EXPERTS, Config
from recommender.text import nearest

# Words in a name that say how a network was tuned or is stored, and not its shape.
_UNITS = {"t": 1e12, "b": 1e9, "m": 1e6}
_SIZE = re.compile(r"(?<![\w.])(\d+(?:[._]\d+)?)([tbm])(?![\w.])")  # "70b", "1_8b", "1t"
_TUNED = re.compile(
    r"meta|base|pt|hf|instruct|chat|it|unsloth|bnb|[48]bit|thinking|reasoning|deduped|awq|gptq|gguf|"
    r"ft|rl|mpo|preview|int[48]|fp8|nf4|nvfp4|mxfp4|bf16|fp16|w4a16|w8a8|dynamic|sft|dpo|quantized|coder|code|math|non|"
    r"20[12]\d|[0-3]\d{3}|[01]\d{5,7}|20\d{6}"  # 2507, 0414, 20240806
)
_LONG = 8  # letters
# Words of networks that have more than the model whose name stands beside them.
_MORE = re.compile(
    r"vl|vision|audio|omni|multimodal|video|llava|vlm|speech|voice|embed|reward|neva|mplug"
)


@dataclass(frozen=True, slots=True)
class KnownModel:
    """One model of the shipped table."""

    name: str  # on the Hugging Face hub: owner/name
    source: str  # of its figures, and others with the same: tests/research/known_models.py
    config: Config


@cache
def _table() -> Any:
    return json.loads(files(__package__).joinpath("known_models.json").read_text("utf-8"))


@cache
def _same_shape() -> dict[str, tuple[str, float]]:
    """Models that were trained on from a known one, or built as it is, under names of their own.

    Those that also see, hear or speak have more: then with billions of parameters in all, as
    their pages say (from memory, 2026-11).
    """
    rows = _rows("same_shapes.csv")
    return {row["name"]: (row["shape"], float(row["billions"] or 0.0)) for row in rows}


@cache
def _of_libraries() -> dict[str, KnownModel]:
    """Networks of pictures by their names in timm; `timm_models.csv` has its published figures.

    Parameters, multiply-adds and outputs of layers, of results/benchmark-infer-amp-nchw of
    huggingface/pytorch-image-models (2026-08-08), at the side that they were taken with.
    """
    return {row["name"]: _of_timm(row) for row in _rows("timm_models.csv")}


def _rows(name: str) -> list[dict[str, str]]:
    with files(__package__).joinpath(name).open("r", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _of_timm(row: dict[str, str]) -> KnownModel:
    fields = {
        "model_type": "published",
        "family": row["family"],
        "parameters": 1e6 * float(row["million_parameters"]),
        "multiply_adds": 1e9 * float(row["billion_multiply_adds"]),
        "outputs": 1e6 * float(row["million_outputs"]) if row["family"] == "cnn" else 0.0,
        "image_size": int(row["image"]),
    }
    return KnownModel(row["name"], "published by timm, 2026-08", Config(fields, row["name"]))


@cache
def known_models() -> tuple[KnownModel, ...]:
    """Return every model of the table, in its order."""
    table = _table()
    checked = {name: by for by, names in table["checked_by"].items() for name in names}
    return tuple(
        KnownModel(name, _source(table, checked.get(name)), Config(fields, name))
        for name, fields in table["models"].items()
    )


def _source(table: Any, by: str | None) -> str:
    """The sources of a model's figures."""
    message = f"as in {by}" if by else f"from memory, {table['as_of']}"
    return f"{table['source']}, {message}"


def find_known(word: str) -> KnownModel | None:
    """Find a model by its full name or the part after the slash, in any case."""
    wanted = word.lower()
    for model in known_models():
        if wanted in (model.name.lower(), model.name.lower().partition("/")[2]):
            return model
    return None


def find_shape(word: str) -> KnownModel | None:
    """Find the model with the same shape as a fine-tuned, re-uploaded or quantised one.

    By the whole name without words of tuning, else by the longest name that stands in it.
    """
    wanted, shapes = _parts(word), _shapes()
    whole = {_joined(parts): model for parts, model in shapes.items()}
    if found := whole.get(_joined(wanted)):
        return _known_as(found)
    if (of_library := _of_libraries().get(_of_library(word))) is not None:
        return of_library
    if _listed(wanted):
        return None
    spans = (wanted[i:j] for i in range(len(wanted)) for j in range(len(wanted), i, -1))
    plain = not any(each.isdigit() for each in "".join(wanted))
    within = [s for s in spans if s in shapes and (_is_telling(s) or plain and _is_long(s))]
    best = max(within, key=len, default=())
    more = any(_MORE.fullmatch(part) for part in wanted if part not in best)
    return _known_as(shapes[best]) if best and not more else None


def _of_library(word: str) -> str:
    """A name as libraries have it: without its owner, and the tag of its weights."""
    return word.lower().rpartition("/")[2].partition(".")[0].replace("-", "_")


def _known_as(name: str) -> KnownModel | None:
    """The known model under a name of its own, or one of the same shape."""
    base, total = _same_shape().get(name, (name, 0.0))
    known = find_known(base) or _of_libraries().get(base)
    if known is None or not total:
        return known
    fields = {**known.config.fields, "total_parameters": round(total * 1e9)}
    return replace(known, config=Config(fields, name))


@cache
def _shapes() -> dict[tuple[str, ...], str]:
    """The known model of each name without words of tuning; with and without its version."""
    known = (each.name for each in reversed(known_models()))
    named = {name: name for name in (*known, *_same_shape())}
    parts = {_parts(name): model for name, model in named.items()}
    versions = (p for p in parts if len(p) > 2 and re.fullmatch(r"v\d[\d.]*", p[-1]))
    bare = {p[:-1]: parts[p] for p in versions}
    return {**bare, **parts}


def find_relative(word: str) -> KnownModel | None:
    """Find the known model most like an unknown one of the same family, of the size in its name.

    The family is a word of both names. Of its models that are mixtures if this one is, and only
    then, those come first that see or hear if it does, share most of its other words, and are of
    about its size.
    """
    whole, used = sizes_in(word)
    parts = _parts(word)
    if not whole:
        return None
    related = [
        (own, model)
        for own, name in _shapes().items()
        if own[0] in parts and own[0].isalpha() and len(own[0]) > 2 and (model := _known_as(name))
        if (model.config.whole(EXPERTS, 0) > 0) == (used > 0)
    ]

    def likeness(each: tuple[tuple[str, ...], KnownModel]) -> tuple[float, ...]:
        own, model = each
        size = sizes_in(model.name)[0]
        shared = len({*parts} & {*own})
        nearest = -abs(log(size / whole)) if size else -inf
        older = abs(int(_version(own)) - int(_version(parts)))
        return -_further(parts, own), shared, -older, nearest, -len(own)

    return max(related, key=likeness, default=(parts, None))[1]


def is_sibling(word: str, relative: KnownModel) -> bool:
    """Whether two names are of one version and size, and neither has more: zephyr of StableLM."""
    parts, own = _parts(word), _parts(relative.name)
    alike = sizes_in(word) == sizes_in(relative.name) and not _listed(parts)
    return alike and not _further(parts, own) and _version(parts) == _version(own)


def _further(parts: Collection[str], own: Collection[str]) -> int:
    """How many words say that one of two networks has more than the other."""
    return sum(_MORE.fullmatch(part) is not None for part in {*parts} ^ {*own})


def _version(parts: tuple[str, ...]) -> float:
    """The first number of a name before its size, after which tunings have theirs; 0 without."""
    family = takewhile(lambda part: not _SIZE.fullmatch(part), parts)
    numbers = (re.fullmatch(r"v?(\d+(?:\.\d+)?)", part) for part in family)
    return next((float(found[1]) for found in numbers if found), 0.0)


def _joined(parts: tuple[str, ...]) -> str:
    return "".join(parts).replace(".", "")


def _is_telling(parts: tuple[str, ...]) -> bool:
    """Whether parts of a name say a family and a size or a number."""
    return parts[0].isalpha() and len(parts[0]) > 2 and any(p[:1].isdigit() for p in parts)


def _is_long(parts: tuple[str, ...]) -> bool:
    """Whether a name without numbers is a family's own: ModernBERT."""
    return len(parts[0]) >= _LONG


def _parts(name: str) -> tuple[str, ...]:
    """The words and numbers of a name: llama, 3.1, 8b."""
    bare = re.sub(r"\.[a-z]\w*$", "", name.lower().rpartition("/")[2])  # timm's tags
    bare = re.sub(r"(?<!\d)(\d)_(\d)(?![\dbm])", r"\1.\2", bare)
    kept = (word for word in re.split(r"[-_ ]", bare) if word and not _TUNED.fullmatch(word))
    pieces = (re.findall(r"v\d[\d.]*$|[a-z]+|[\d.x]+[a-z]*|[^\W_]+", word) for word in kept)
    return tuple(piece for found in pieces for piece in found)


@cache
def _sizes() -> dict[tuple[str, ...], tuple[float, float]]:
    """Billions of parameters, all and active, of models whose names do not state them."""
    return {_parts(name): tuple(sizes) for name, sizes in _table()["sizes"].items()}


def _listed(parts: tuple[str, ...]) -> tuple[float, float] | None:
    """The sizes of the longest listed name with which one begins."""
    begins = (parts[:count] for count in range(len(parts), 0, -1))
    return next((_sizes()[begin] for begin in begins if begin in _sizes()), None)


def sizes_in(name: str) -> tuple[float, float]:
    """Parameters of a name, all and active: "48B-A3B", "350M", "grok-1"; 0 for what it lacks."""
    listed = _listed(_parts(name))
    if listed is not None:
        return listed[0] * 1e9, listed[1] * 1e9
    bare = re.sub(r"(?<!\d)_|_(?!\d+[tbm])", "-", name.lower().rpartition("/")[2])
    sizes = _SIZE.findall(bare)
    found = [float(size.replace("_", ".")) * _UNITS[unit] for size, unit in sizes]
    used = re.search(r"(?<![\w.])a(\d+(?:\.\d+)?)b(?![\w.])", bare)
    return (max(found) if found else 0.0), (float(used[1]) * 1e9 if used else 0.0)


def nearest_known(word: str) -> str | None:
    """Find the model that a misspelt name was probably meant to be, of about its size."""
    names = [model.name for model in known_models()]
    alike = [name for name in names if of_like_size(name, word)]
    return _nearest_of(word, alike) or _nearest_of(word, names)


def _nearest_of(word: str, names: list[str]) -> str | None:
    short = {name.partition("/")[2] or name: name for name in names}
    meant = nearest(word.rpartition("/")[2], short)
    return short[meant] if meant else None


def of_like_size(name: str, word: str) -> bool:
    """Whether the sizes in both names, 8B or 135M, are within a factor of two."""
    sizes = [_SIZE.search(each.lower()) for each in (name, word)]
    if sizes[0] is None or sizes[1] is None:
        return False
    one, other = (float(each[1]) * (1000.0 if each[2] == "b" else 1.0) for each in sizes if each)
    return 0.5 <= one / max(other, 1e-9) <= 2.0
