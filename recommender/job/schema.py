"""The fields of a job file: how their text is parsed, and their JSON Schema.

Values of a job file arrive as typed text (`inputs.yaml_text`). Each field parses its own text with
`units`, so `params: 8B` and `--params 8B` mean the same and fail alike. A missing field is None;
`derive` decides its value.
"""

from collections.abc import Callable, Collection
from dataclasses import field, fields
from typing import Any, Literal, get_args

from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError, first_problems
from recommender.inputs import units
from recommender.inputs.training_software import Software, software
from recommender.job import calibration_section
from recommender.job.job import (
    SHARDINGS,
    Calibration,
    Family,
    Method,
    Offload,
    Optimizer,
    PostTraining,
    Precision,
    Recomputation,
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


# More is a slip: the largest runs of 2026 have about 1e13 parameters and tokens, 1e5 GPUs.
_MAX_PARAMS, _MAX_SAMPLES, _MAX_BATCH, _MAX_WIDTH = 1e15, 1e16, 1e12, 1e8
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


def _field(read: Read, schema: dict[str, Any], description: str, default: Any = None) -> Any:
    described = {**schema, "description": description} if description else schema
    return field(default=default, metadata={"read": read, "schema": described})


def _typed(parser: Callable[[str, str], Any], *examples: str, description: str = "") -> Any:
    schema = {"type": ["string", "number", "null"], "examples": list(examples)}
    return _field(lambda value, name: parser(_one(value, name), name), schema, description)


def _counted(
    *examples: str,
    most: float,
    least: float = 0.0,
    units_of: tuple[str, ...] = _NUMBERS,
    description: str = "",
) -> Any:
    parser = units.count_of(*examples, least=least, most=most, units=units_of)
    return _typed(parser, *examples, description=description)


def _whole(*examples: str, most: float, description: str = "") -> Any:
    return _typed(units.whole_of(*examples, most=most), *examples, description=description)


def _text(description: str = "", most: int = 300) -> Any:
    schema = {"type": ["string", "null"], "maxLength": most}
    return _field(lambda value, name: _short(value, name, most), schema, description)


def _choice(*choices: str, description: str = "") -> Any:
    def read(value: Any, name: str) -> str:
        return _read_choice(value, name, choices)

    return _field(read, {"enum": [*choices, None]}, description)


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
    if word in ("fused", "plain"):
        return word
    raise UsageError(
        f"{name} unknown value '{shown(word)}'; write fused (FlashAttention, sdpa), plain (eager: "
        "scores go through memory), or leave it out: the stack decides"
    )


def _boolean_or_auto(value: Any, name: str) -> bool | None:
    if isinstance(value, str) and value.strip().lower() == "auto":
        return None
    try:
        return _boolean(value, name)
    except UsageError:
        raise UsageError(f"{name} {shown(value)} is neither yes, no nor auto") from None


def _flag(description: str = "") -> Any:
    return _field(_boolean, {"type": ["boolean", "null"]}, description)


@dataclass(frozen=True, slots=True)
class DataFile:
    """Where the training data are stored and how they are read."""

    at: units.DataAt | None = _typed(units.parse_data_at, "aws:us-east-1,150GB")
    gib: float | None = _typed(_gib, "137", "150GB")
    samples: float | None = _counted(
        "1.28M", most=_MAX_SAMPLES, description="examples of the data set, in one epoch"
    )
    read: Literal["stream", "stage"] | None = _choice("stream", "stage")
    bytes_per_sample: float | None = _typed(_bytes, "115kB")
    bytes_per_token: float | None = _typed(_bytes, "2")
    cpu_s_per_sample: float | None = _counted("0.008", most=1e6, units_of=("s",))


@dataclass(frozen=True, slots=True)
class JobFile:
    """A training job as a user describes it; missing values are derived and listed."""

    schema: str | None = _choice(SCHEMA)
    like: str | None = _text("a preset to inherit from")
    name: str | None = _text()
    title: str | None = _text()
    source: str | None = _text("where the figures come from", most=2000)
    as_of: str | None = _text()
    assumed: tuple[str, ...] = _field(
        _words,
        {"type": ["array", "null"], "items": {"type": "string"}},
        "fields that rest on assumption",
        (),
    )
    model: str | None = _text("a known model of the Hugging Face hub, or the path of a config.json")
    family: Family | None = _choice(*get_args(Family))
    params: float | None = _counted("8B", "1.3e9", least=1000.0, most=_MAX_PARAMS)
    active_params: float | None = _counted(
        "13B", most=_MAX_PARAMS, description="that a token passes (experts)"
    )
    lookup_params: float | None = _typed(
        _lookup, "525M", "0", description="embedding rows, read but not multiplied"
    )
    trainable_params: float | None = _counted("42M", most=_MAX_PARAMS)
    hidden: int | None = _whole("4096", most=_MAX_WIDTH)
    layers: int | None = _whole("32", most=1e5)
    vocab: int | None = _whole("128256", most=_MAX_WIDTH)
    attention_width: int | None = _whole("4096", most=_MAX_WIDTH, description="heads × head size")
    windowed_width: int | None = _whole(
        "4096", most=_MAX_WIDTH, description="the part of it whose layers see a window of positions"
    )
    window: int | None = _whole("1024", most=_MAX_WIDTH, description="of sliding attention")
    heads: int | None = _whole("32", most=_MAX_WIDTH, description="of attention, for queries")
    sdpa: bool | None = _flag(
        "whether the network supports fused attention in transformers; model: states it"
    )
    expert_width: int | None = _whole(
        "2048", most=_MAX_WIDTH, description="of one expert of a mixture; 2048 if not stated"
    )
    expert_groups: int | None = _whole(
        "4", most=_MAX_WIDTH, description="groups of experts (machines) that a token is routed to"
    )
    adapted_width: float | None = _counted(
        "2.62M",
        most=_MAX_PARAMS,
        description="in + out of all matrices with adapters",
    )
    gated: bool | None = _flag("whether the feed-forward network has three matrices, as in Llama")
    image_size: int | None = _whole(
        "224", most=_MAX_SIDE, description="side of a picture in pixels"
    )
    patch_size: int | None = _whole("16", most=_MAX_SIDE, description="side of a patch in pixels")
    seq_len: int | None = _whole("2048", most=_MAX_WIDTH, description="mean tokens in a sequence")
    max_seq_len: int | None = _whole(
        "8192", most=_MAX_WIDTH, description="of the longest; it decides the memory"
    )
    sample_unit: str | None = _text()
    tokens: float | None = _counted("15T", "1e9", most=_MAX_SAMPLES, units_of=("token", "tokens"))
    samples: float | None = _counted("1.28M", most=_MAX_SAMPLES)
    epochs: float | None = _counted("90", most=1e6, description="passes over data.samples")
    steps: float | None = _counted("100k", most=1e10)
    batch: Batch | None = _typed(
        _batch, "256", "4M tokens", description="samples (or tokens) per optimiser step"
    )
    batch_per_gpu: Batch | None = _typed(
        _batch,
        "8",
        description="samples per optimiser step and GPU; the global batch grows with GPUs",
    )
    max_global_batch: Batch | None = _typed(
        _batch, "4096", description="of all GPUs together; with batch_per_gpu"
    )
    flop_per_sample: float | None = _counted(
        "24.5G", most=1e24, description="of full training; lora pays 2/3"
    )
    gradient_tensors: int | None = _whole("161", most=1e7)
    activation_bytes_per_sample: float | None = _typed(
        _bytes, "45MB", description="in 16-bit precision"
    )
    recomputed_activation_bytes_per_sample: float | None = _typed(_bytes, "16MB")
    checkpoint_bytes: float | None = _typed(_bytes, "112GB", "164MB")
    precision: Precision | None = _field(
        _precision,
        {"enum": ["auto", *get_args(Precision), None]},
        "auto (as if it were not stated) and mixed: bf16, or fp16 on GPUs without it",
    )
    method: Method | None = _choice(*get_args(Method))
    post_training: PostTraining | None = _choice(
        *get_args(PostTraining), description="of preferences (dpo) or rewards; roughly planned"
    )
    teacher_params: float | None = _counted(
        "70B", most=_MAX_PARAMS, description="of the network that distillation learns from"
    )
    completion_tokens: float | None = _counted(
        "450", most=_MAX_WIDTH, description="of an example that grpo and ppo generate, in the mean"
    )
    kv_width: int | None = _whole("1024", most=_MAX_WIDTH, description="of keys, and of values")
    generation_share: float | None = _typed(
        units.parse_share, "70%", description="of the time that generation takes, where it is known"
    )
    lora_rank: int | None = _whole("16", most=1e5)
    optimizer: Optimizer | None = _choice(*get_args(Optimizer))
    optimizer_in_backward: bool | None = _flag(
        "each layer is updated as its gradient comes, which is then freed"
    )
    master_weights: bool | None = _flag(
        "no: weights, gradients and states of the optimizer all in 16 bits"
    )
    offload: Offload | None = _choice(
        *get_args(Offload), description="what the host's memory holds; parameters: all states"
    )
    micro_batch: int | None = _whole(
        "1",
        most=1e6,
        description="samples of one GPU at once, at most; as many as fit if not stated",
    )
    attention: Literal["fused", "plain"] | None = _field(
        _attention,
        {"enum": ["fused", "plain", None]},
        "fused: FlashAttention, sdpa; plain: eager, score matrices go through memory; as the stack "
        "runs it if not stated",
    )
    recomputation: Recomputation | None = _choice(
        *get_args(Recomputation),
        description="full: the forward pass of every layer is done again in the backward pass "
        "(gradient or activation checkpointing); auto: only where it pays",
    )
    sharding: str | None = _choice(*SHARDINGS)
    sync: str | None = _choice("allreduce", "parameter_server")
    parameter_servers: int | None = _whole(
        "1", most=1e5, description="on the CPUs of the first machines; they cost nothing more"
    )
    machines: int | None = _whole("8", most=MAX_STATED, description="at once, no more and no fewer")
    stack: Software | None = _field(
        parse_stack,
        {"enum": [*software(), None]},
        "training software: its name, or tuned (a vendor's recipe), typical (scripts as most "
        "people run them; default)",
    )
    elastic: bool | None = _field(
        _boolean_or_auto,
        {"anyOf": [{"type": ["boolean", "null"]}, {"const": "auto"}]},
        "whether training goes on with fewer machines; auto: where the software can",
    )
    writer: str | None = _choice("all", "chief")
    asynchronous_save: bool | None = _flag()
    image: str | None = _choice("cold", "prebuilt")
    setup: float | None = _typed(
        units.duration_of("5m", "300s", most_s=_MAX_SETUP_S),
        *("5m", "300s"),
        description="from a machine's start to training",
    )
    fault_rate_per_hour: float | None = _counted("1.6e-4", most=60.0)
    measured: tuple[Measured, ...] = _field(
        _measured, {"type": ["array", "string", "null"], "items": {"type": "string"}}, "", ()
    )
    calibration: Calibration | None = _field(
        calibration_section.read_calibration,
        calibration_section.SCHEMA,
        "as recommend calibrate writes it",
    )
    memory_gib_at_batch: dict[int, float] = field(
        default_factory=dict,
        metadata={
            "read": _memory,
            "schema": {"type": ["object", "null"], "additionalProperties": {"type": "number"}},
        },
    )
    data: DataFile = field(default=DataFile(), metadata={"inside": DataFile})


def side(text: str, name: str) -> int:
    """Read the side of an image or a patch, in pixels."""
    return units.parse_whole(text, name, most=_MAX_SIDE, instead="write pixels, such as 384")


def check_flag(name: str, text: str) -> None:
    """Refuse a flag's value that its field of the job would refuse."""
    kind, key = (DataFile, "samples") if name == "examples" else (JobFile, name)
    about = {each.name: each.metadata for each in fields(kind)}[key]
    _field_value(about, text, label(name, (name,)))


def _field_value(about: Any, raw: Any, name: str) -> Any:
    """The value of one field; each problem begins with its name."""
    try:
        return about["read"](raw, name)
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
    kind: type[Any], raw: dict[str, Any], flags: Flags, problems: list[str], inside: str = ""
) -> dict[str, Any]:
    """The fields of one level that were given; what is wrong with any is added to the list."""
    values: dict[str, Any] = {}
    known = {each.name: each.metadata for each in fields(kind)}
    for name, about in known.items():
        if name not in raw:
            continue
        description = label(f"{inside}{name}", flags)
        try:
            if "inside" in about:
                values[name] = _inner(about["inside"], raw[name], flags, problems, name)
            else:
                values[name] = _field_value(about, raw[name], description)
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


def _described(kind: type[Any]) -> dict[str, Any]:
    return {
        "description": (kind.__doc__ or "").strip(),
        "type": "object",
        "additionalProperties": False,
        "properties": {
            each.name: _described(each.metadata["inside"])
            if "inside" in each.metadata
            else each.metadata["schema"]
            for each in fields(kind)
        },
    }
