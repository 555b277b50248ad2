"""The fields of a job file: how their text is parsed, and their JSON Schema.

Values of a job file arrive as typed text (`inputs.yaml_text`). Each field parses its own text with
`units`, so `params: 8B` and `--params 8B` mean the same and fail alike. A missing field is None;
`derive` decides its value.

`job_fields.csv` has a row for each: what reads it, with bounds and examples. More than the bounds
is a slip: the largest runs of 2026 have about 1e13 parameters and tokens, 1e5 GPUs.
"""

import csv
from collections.abc import Callable, Collection
from dataclasses import field, fields
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError, first_problems
from recommender.inputs import units
from recommender.inputs.training_software import Software, software
from recommender.job import calibration_section
from recommender.job.job import (
    Attention,
    Calibration,
    Family,
    Method,
    Offload,
    Optimizer,
    PostTraining,
    Precision,
    Recomputation,
    Sharding,
)
from recommender.job.timings import Measured, parse_measured
from recommender.plan.limits import LIMITS
from recommender.text import shown, unknown

SCHEMA = "recommend.job/v1"

Read = Callable[[Any, str], Any]  # a field's raw value and its label, to what the job needs
Flags = Collection[str]  # fields that came from the command line, such as "tokens", "data.at"

_BOOLEANS = {
    **dict.fromkeys(("yes", "true", "on", "y", "t", "1"), True),
    **dict.fromkeys(("no", "false", "off", "n", "f", "0"), False),
}
_MAX_SETUP_S = 86400.0
MAX_STATED = 4096  # 32,768 GPUs in machines of eight; Llama 3.1 405B was trained on 16,384
_MAX_SIDE = 1e5  # pixels
_MAX_GIB = 1e9  # an exbibyte
_MAX_PARAMS, _MAX_BATCH = 1e15, 1e12
_NUMBERS = ("params", "parameters", "flop", "samples", "images")


@dataclass(frozen=True, slots=True)
class Batch:
    """A global batch, counted in samples or in tokens."""

    count: float
    in_tokens: bool


def label(field: str, flags: Flags = ()) -> str:
    """Name a field as its user wrote it: `--tokens`, or `tokens:` in a file."""
    if field == "data.samples" and field in flags:
        return "--examples"
    return f"--{field.replace('_', '-').replace('.', '-')}" if field in flags else f"{field}:"


_NOT_OF_THE_JOB = (
    *(limit.name.replace("-", "_") for limit in LIMITS), "confidence", "provider", "region", "zone",
    "gpu", "market", "instance", "quota", "max_machines", "mix",
)  # fmt: skip


def _bytes(text: str, name: str) -> float:
    return units.parse_bytes(text, name, bare=True)


def _gib(text: str, name: str) -> float:
    if text.strip()[-1:].isalpha():
        return units.parse_bytes(text, name) / 2**30
    return units.parse_count(text, name, most=_MAX_GIB, instead="write 137 (GiB) or 150GB")


def _lookup(text: str, name: str) -> float:
    if text.strip() == "0":  # one table looks up and puts out
        return 0.0
    return units.count_of("525M", "0", most=_MAX_PARAMS, units=_NUMBERS)(text, name)


def _batch(text: str, name: str) -> Batch:
    words = ("tokens", "token", "samples", "images", "clips", "sequences")
    in_tokens = "token" in text.lower()
    instead = "write samples such as 256, or 4M tokens"
    return Batch(units.parse_whole(text, name, words, most=_MAX_BATCH, instead=instead), in_tokens)


def _measured(value: Any, name: str) -> tuple[Measured, ...]:
    rows = value if isinstance(value, list) else [value]
    if not all(isinstance(row, str) for row in rows):
        raise UsageError(f'{name} must be lines like "8xH100: 3.1 s/step", in quotes')
    return tuple(parse_measured(row, name) for row in rows)


def _memory(value: Any, name: str) -> dict[int, float]:
    if not isinstance(value, dict):
        raise UsageError(f"{name} must be like {{8: 21.3}} (samples per GPU: GiB)")
    pairs = ((str(batch), str(gib)) for batch, gib in value.items())
    read = units.count_of("it like {8: 21.3}", most=1e6)
    return {int(read(batch, name)): read(gib, name) for batch, gib in pairs}


def _one(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{name} must be one value")
    return value


def _boolean(value: Any, name: str) -> bool:
    found = _BOOLEANS.get(str(value).strip().lower()) if isinstance(value, str) else None
    if found is None:
        raise UsageError(f"{name} {shown(value)} is neither yes nor no")
    return found


def _words(value: Any, name: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise UsageError(f"{name} {shown(value)} cannot be used; write a list: [a, b]")
    return tuple(_short(each, name, 300) for each in value)


def _short(value: Any, name: str, most: int) -> str:
    text = _one(value, name).strip()
    if not text:
        raise UsageError(f"{name} is empty; write a word, or leave it out")
    if len(text) > most:
        raise UsageError(f"{name} {shown(text)} is longer than {most} characters")
    return text


def _read_choice(value: Any, name: str, choices: Collection[str]) -> str:
    word = _one(value, name).strip().lower()
    if word in choices:
        return word
    if not word:
        raise UsageError(f"{name} is empty; write one of {', '.join(choices)}, or leave it out")
    raise UsageError(f"{name.rstrip(':')}: {unknown('value', str(value), choices)}")


def _precision(value: Any, name: str) -> str | None:
    """Read a precision; `auto` is what it is without being stated."""
    word: str = _read_choice(value, name, ("auto", *get_args(Precision)))
    return None if word == "auto" else word


def parse_stack(value: Any, name: str) -> Software:
    """Read the name of a training software."""
    return software()[_read_choice(value, name, software())]


def _attention(value: Any, name: str) -> str:
    word = _one(value, name).strip().lower()
    if word in get_args(Attention):
        return word
    raise UsageError(
        f"{name} unknown value '{shown(word)}'; write fused (FlashAttention, sdpa), masked (sdpa "
        "of padded batches), plain (eager: scores go through memory), or leave it out: the stack "
        "decides"
    )


def _boolean_or_auto(value: Any, name: str) -> bool | None:
    if isinstance(value, str) and value.strip().lower() == "auto":
        return None
    try:
        return _boolean(value, name)
    except UsageError:
        raise UsageError(f"{name} {shown(value)} is neither yes, no nor auto") from None


@dataclass(frozen=True, slots=True)
class DataFile:
    """Where the training data are stored and how they are read."""

    at: units.DataAt | None = None
    gib: float | None = None
    samples: float | None = None
    read: Literal["stream", "stage"] | None = None
    bytes_per_sample: float | None = None
    bytes_per_token: float | None = None
    cpu_s_per_sample: float | None = None


@dataclass(frozen=True, slots=True)
class JobFile:
    """A training job as a user describes it; missing values are derived and listed."""

    schema: Literal["recommend.job/v1"] | None = None
    like: str | None = None
    name: str | None = None
    title: str | None = None
    source: str | None = None
    as_of: str | None = None
    assumed: tuple[str, ...] = ()
    model: str | None = None
    family: Family | None = None
    params: float | None = None
    active_params: float | None = None
    lookup_params: float | None = None
    trainable_params: float | None = None
    hidden: int | None = None
    layers: int | None = None
    vocab: int | None = None
    attention_width: int | None = None
    windowed_width: int | None = None
    window: int | None = None
    heads: int | None = None
    sdpa: bool | None = None
    expert_width: int | None = None
    expert_groups: int | None = None
    adapted_width: float | None = None
    gated: bool | None = None
    image_size: int | None = None
    patch_size: int | None = None
    seq_len: int | None = None
    max_seq_len: int | None = None
    sample_unit: str | None = None
    tokens: float | None = None
    samples: float | None = None
    epochs: float | None = None
    steps: float | None = None
    batch: Batch | None = None
    batch_per_gpu: Batch | None = None
    max_global_batch: Batch | None = None
    flop_per_sample: float | None = None
    gradient_tensors: int | None = None
    activation_bytes_per_sample: float | None = None
    recomputed_activation_bytes_per_sample: float | None = None
    checkpoint_bytes: float | None = None
    precision: Precision | None = None
    method: Method | None = None
    post_training: PostTraining | None = None
    teacher_params: float | None = None
    completion_tokens: float | None = None
    kv_width: int | None = None
    generation_share: float | None = None
    lora_rank: int | None = None
    optimizer: Optimizer | None = None
    optimizer_in_backward: bool | None = None
    master_weights: bool | None = None
    offload: Offload | None = None
    micro_batch: int | None = None
    attention: Attention | None = None
    recomputation: Recomputation | None = None
    sharding: Sharding | None = None
    sync: Literal["allreduce", "parameter_server"] | None = None
    parameter_servers: int | None = None
    machines: int | None = None
    stack: Software | None = None
    elastic: bool | None = None
    writer: Literal["all", "chief"] | None = None
    asynchronous_save: bool | None = None
    image: Literal["cold", "prebuilt"] | None = None
    setup: float | None = None
    fault_rate_per_hour: float | None = None
    measured: tuple[Measured, ...] = ()
    calibration: Calibration | None = None
    memory_gib_at_batch: dict[int, float] = field(default_factory=dict)
    data: DataFile = DataFile()


@dataclass(frozen=True, slots=True)
class _Form:
    """How a field's value is read, and described to other programs."""

    read: Read
    schema: dict[str, Any]


_INSIDE = {"data": DataFile}
_TYPED: dict[str, Callable[[str, str], Any]] = {
    "bytes": _bytes, "gib": _gib, "lookup": _lookup, "batch": _batch, "share": units.parse_share,
    "data_at": units.parse_data_at, "machines": units.whole_of("8", most=MAX_STATED),
    "setup": units.duration_of("5m", "300s", most_s=_MAX_SETUP_S),
}  # fmt: skip
_OTHERS: dict[str, tuple[Read, Callable[[], dict[str, Any]]]] = {
    "flag": (_boolean, lambda: {"type": ["boolean", "null"]}),
    "words": (_words, lambda: {"type": ["array", "null"], "items": {"type": "string"}}),
    "precision": (_precision, lambda: {"enum": ["auto", *get_args(Precision), None]}),
    "stack": (parse_stack, lambda: {"enum": [*software(), None]}),
    "attention": (_attention, lambda: {"enum": [*get_args(Attention), None]}),
    "elastic": (
        _boolean_or_auto, lambda: {"anyOf": [{"type": ["boolean", "null"]}, {"const": "auto"}]},
    ),
    "measured": (
        _measured, lambda: {"type": ["array", "string", "null"], "items": {"type": "string"}},
    ),
    "memory": (
        _memory, lambda: {"type": ["object", "null"], "additionalProperties": {"type": "number"}},
    ),
    "calibration": (calibration_section.read_calibration, lambda: calibration_section.SCHEMA),
}  # fmt: skip


@cache
def _forms(kind: Any, inside: str = "") -> dict[str, _Form]:
    """The forms of the fields of one level, by their names, in the order of the class."""
    types = {f"{inside}{each.name}": each.type for each in fields(kind)}
    with files(__package__).joinpath("job_fields.csv").open("r", encoding="utf-8") as file:
        rows = {row["key"]: row for row in csv.DictReader(file)}
    return {key.removeprefix(inside): _form(rows[key], types[key]) for key in types if key in rows}


def _form(row: dict[str, str], kind: Any) -> _Form:
    form = _plain_form(row, kind)
    described = {"description": row["description"]} if row["description"] else {}
    return _Form(form.read, {**form.schema, **described})


def _plain_form(row: dict[str, str], kind: Any) -> _Form:
    reader, most = row["reader"], float(row["most"] or 300)
    if reader in _OTHERS:
        read, schema = _OTHERS[reader]
        return _Form(read, schema())
    if reader == "choice":
        choices = tuple(word for part in get_args(kind) for word in get_args(part))
        return _Form(lambda v, name: _read_choice(v, name, choices), {"enum": [*choices, None]})
    if reader == "text":
        text = {"type": ["string", "null"], "maxLength": int(most)}
        return _Form(lambda value, name: _short(value, name, int(most)), text)
    examples, words = row["examples"].split("|"), tuple(row["units"].split()) or _NUMBERS
    parse: Callable[[str, str], Any]
    if reader == "count":
        parse = units.count_of(*examples, least=float(row["least"] or 0), most=most, units=words)
    elif reader == "whole":
        parse = units.whole_of(*examples, most=most)
    else:
        parse = _TYPED[reader]
    number = {"type": ["string", "number", "null"], "examples": examples}
    return _Form(lambda value, name: parse(_one(value, name), name), number)


def side(text: str, name: str) -> int:
    """Read the side of an image or a patch, in pixels."""
    return units.parse_whole(text, name, most=_MAX_SIDE, instead="write pixels, such as 384")


def check_flag(name: str, text: str) -> None:
    """Refuse a flag's value that its field of the job would refuse."""
    forms, key = _forms(JobFile), name
    if name == "examples":
        forms, key = _forms(DataFile, "data."), "samples"
    _field_value(forms[key], text, label(name, (name,)))


def _field_value(form: _Form, raw: Any, name: str) -> Any:
    """The value of one field; each problem begins with its name."""
    try:
        return form.read(raw, name)
    except UsageError as error:
        start = name.removesuffix(":")
        named = (p if p.startswith(start) else f"{name} {p}" for p in error.problems)
        raise UsageError(*named) from None


def read(raw: dict[str, Any], flags: Flags = ()) -> JobFile:
    """Check a job's raw text; `flags` are the fields that came from the command line."""
    problems: list[str] = []
    of = str(raw.get("schema", SCHEMA))
    if of.startswith("recommend.") and not of.startswith("recommend.job/"):
        raise UsageError(
            f"is what the tool printed ({shown(of)}), not a job file; recommend replan and "
            "recommend export read answers, other commands take the job that was asked about"
        )
    if "schema" not in raw:
        problems.append(f"schema: is missing; write schema: {SCHEMA}")
    values = _values(JobFile, raw, flags, problems)
    if problems:
        raise UsageError(*problems)
    return JobFile(**values)


def _values(
    kind: Any, raw: dict[str, Any], flags: Flags, problems: list[str], inside: str = ""
) -> dict[str, Any]:
    """The fields of one level that were given; what is wrong with any is added to the list."""
    values: dict[str, Any] = {}
    known, forms = [each.name for each in fields(kind)], _forms(kind, inside)
    for name in (each for each in known if each in raw):
        try:
            if name in forms:
                values[name] = _field_value(forms[name], raw[name], label(f"{inside}{name}", flags))
            else:
                values[name] = _inner(_INSIDE[name], raw[name], flags, problems, name)
        except UsageError as error:
            problems += error.problems
    problems += first_problems(_unknown(str(key), known) for key in raw if key not in known)
    return values


def _unknown(key: str, known: Collection[str]) -> str:
    if key in _NOT_OF_THE_JOB:
        return f"'{key}' is no part of a job; give it as --{key.replace('_', '-')}"
    return unknown("key", key, known, "recommend jobs schema lists them")


def _inner(kind: type[Any], raw: Any, flags: Flags, problems: list[str], name: str) -> Any:
    if not isinstance(raw, dict):
        keys = ", ".join(each.name for each in fields(kind)[:2])
        raise UsageError(f"{name}: {shown(raw)} cannot be used; write {{{keys}, ...}} with values")
    given = {key: value for key, value in raw.items() if value is not None}
    return kind(**_values(kind, given, flags, problems, f"{name}."))


def json_schema() -> dict[str, Any]:
    """Describe a job file as JSON Schema, for editors and other tools."""
    description = _described(JobFile)
    properties = {**description["properties"], "schema": {"const": SCHEMA}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A training job",
        **description,
        "properties": properties,
        "required": ["schema"],
    }


def _described(kind: Any, inside: str = "") -> dict[str, Any]:
    forms = _forms(kind, inside)
    return {
        "description": (kind.__doc__ or "").strip(),
        "type": "object",
        "additionalProperties": False,
        "properties": {
            each.name: forms[each.name].schema
            if each.name in forms
            else _described(_INSIDE[each.name], f"{each.name}.")
            for each in fields(kind)
        },
    }
