"""The fields of a job file, as pydantic models; loaded only when a job is read.

A job file's values arrive as the text that was typed (`yamltext`); each field reads its own
text with `units`, so `params: 8B` and `--params 8B` mean the same and fail alike.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
)

from recommender import units
from recommender.errors import UsageError
from recommender.job import Family, Method, Precision
from recommender.text import shown, unknown

SCHEMA = "recommend.job/v1"


@dataclass(frozen=True, slots=True)
class Batch:
    """A global batch, counted in samples or in tokens."""

    count: float
    in_tokens: bool


def label(field: str, flags: frozenset[str] = frozenset()) -> str:
    """Name a field as its user wrote it: `--tokens`, or `tokens:` in a file."""
    return f"--{field.replace('_', '-').replace('.', '-')}" if field in flags else f"{field}:"


def _typed(parser: Callable[[str, str], Any], *examples: str, inside: str = "") -> Any:
    def read(value: object, info: ValidationInfo) -> Any:
        if not isinstance(value, str):
            raise ValueError("must be one value")
        try:
            return parser(value, label(f"{inside}{info.field_name}", (info.context or frozenset())))
        except UsageError as error:
            raise ValueError(str(error)) from None

    return BeforeValidator(read), WithJsonSchema(
        {"type": ["string", "number"], "examples": list(examples)}
    )


def _count(text: str, name: str) -> float:
    return units.parse_count(text, name, ("params", "parameters", "flop", "samples", "images"))


def _tokens(text: str, name: str) -> float:
    return units.parse_count(text, name, ("token", "tokens"))


def _bytes(text: str, name: str) -> float:
    return units.parse_bytes(text, name, bare=True)


def _gib(text: str, name: str) -> float:
    try:
        return units.parse_count(text, name)
    except UsageError:
        return units.parse_bytes(text, name) / 2**30


def _batch(text: str, name: str) -> Batch:
    words = ("tokens", "token", "samples", "images", "clips", "sequences")
    in_tokens = "token" in text.lower()
    return Batch(units.parse_whole(text, name, words), in_tokens)


def _seconds(text: str, name: str) -> float:
    return units.parse_count(text, name, ("s",))


def _measured(value: object, info: ValidationInfo) -> list[units.Measured]:
    name = label("measured", info.context or frozenset())
    rows = value if isinstance(value, list) else [value]
    texts = [row for row in rows if isinstance(row, str)]
    if len(texts) < len(rows):
        raise ValueError('must be lines like "8xH100: 3.1 s/step", in quotes')
    try:
        return [units.parse_measured(text, name) for text in texts]
    except UsageError as error:
        raise ValueError(str(error)) from None


def _memory(value: object, info: ValidationInfo) -> dict[int, float]:
    if not isinstance(value, dict):
        raise ValueError("must be like {8: 21.3} (samples per GPU: GiB)")
    name = f"{info.field_name}:"
    pairs = ((str(batch), str(gib)) for batch, gib in value.items())
    try:
        return {units.parse_whole(b, name): units.parse_count(gib, name) for b, gib in pairs}
    except UsageError as error:
        raise ValueError(str(error)) from None


Count = Annotated[float, *_typed(_count, "8B", "1.3e9")]
Tokens = Annotated[float, *_typed(_tokens, "15T", "1e9")]
Whole = Annotated[int, *_typed(units.parse_whole, "4096")]
Bytes = Annotated[float, *_typed(_bytes, "112GB", "164MB")]
BatchSize = Annotated[Batch, *_typed(_batch, "256", "4M tokens")]
Duration = Annotated[float, *_typed(units.parse_duration, "5m", "300s")]
Text = Annotated[str, StringConstraints(min_length=1, max_length=300, strip_whitespace=True)]
Note = Annotated[str, StringConstraints(max_length=2000)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class DataFile(_Model):
    """Where the training data lie and how they are read."""

    at: (
        Annotated[units.DataAt, *_typed(units.parse_data_at, "aws:us-east-1,150GB", inside="data.")]
        | None
    ) = None
    gib: Annotated[float, *_typed(_gib, "137", "150GB", inside="data.")] | None = None
    samples: Annotated[float, *_typed(_count, "1.28M", inside="data.")] | None = None
    read: Literal["stream", "stage"] | None = None
    bytes_per_sample: Annotated[float, *_typed(_bytes, "115kB", inside="data.")] | None = None
    bytes_per_token: Annotated[float, *_typed(_bytes, "2", inside="data.")] | None = None
    cpu_s_per_sample: Annotated[float, *_typed(_seconds, "0.008", inside="data.")] | None = None


def _said(description: str) -> Any:
    return Field(default=None, description=description)


class JobFile(_Model):
    """A training job as a person describes it; what is left out is derived and named."""

    schema_: Literal["recommend.job/v1"] = Field(alias="schema")
    like: Text | None = _said("a preset to inherit from")
    name: Text | None = None
    title: Text | None = None
    source: Note | None = _said("where the figures come from")
    as_of: Text | None = None
    assumed: list[Text] = Field(default=[], description="fields that rest on assumption")
    family: Family | None = None
    params: Count | None = None
    active_params: Count | None = _said("that a token passes (experts)")
    lookup_params: Count | None = Field(
        default=None, description="embedding rows, read but not multiplied"
    )
    trainable_params: Count | None = None
    hidden: Whole | None = None
    layers: Whole | None = None
    vocab: Whole | None = None
    seq_len: Whole | None = _said("mean tokens in a sequence")
    max_seq_len: Whole | None = Field(
        default=None, description="of the longest; it decides the memory"
    )
    sample_unit: Text | None = None
    tokens: Tokens | None = None
    samples: Count | None = None
    epochs: Count | None = _said("passes over data.samples")
    steps: Count | None = None
    batch: BatchSize | None = Field(
        default=None, description="samples (or tokens) per optimiser step"
    )
    flop_per_sample: Count | None = Field(
        default=None, description="of full training; lora pays 2/3"
    )
    gradient_tensors: Whole | None = None
    activation_bytes_per_sample: Bytes | None = Field(
        default=None, description="in 16-bit precision"
    )
    recomputed_activation_bytes_per_sample: Bytes | None = None
    checkpoint_bytes: Bytes | None = None
    precision: Precision | None = None
    method: Method | None = None
    lora_rank: Whole | None = None
    optimizer: Literal["adamw", "sgd", "lamb", "adafactor"] | None = None
    sharding: Literal["auto", "ddp", "hsdp", "fsdp"] | None = None
    sync: Literal["allreduce", "parameter_server"] | None = None
    stack: Literal["tuned", "typical"] | None = None
    elastic: bool | None = None
    writer: Literal["all", "chief"] | None = None
    asynchronous_save: bool | None = None
    image: Literal["cold", "prebuilt"] | None = None
    setup: Duration | None = _said("from a machine's start to training")
    reshard: bool | None = None
    fault_rate_per_hour: Count | None = None
    measured: Annotated[
        list[units.Measured],
        BeforeValidator(_measured),
        WithJsonSchema({"type": "array", "items": {"type": "string"}}),
    ] = []
    memory_gib_at_batch: Annotated[
        dict[int, float],
        BeforeValidator(_memory),
        WithJsonSchema({"type": "object", "additionalProperties": {"type": "number"}}),
    ] = {}
    data: DataFile = DataFile()


def field_names() -> tuple[str, ...]:
    """Name every key that a job file may hold."""
    return tuple(field.alias or name for name, field in JobFile.model_fields.items())


def read(raw: dict[str, Any], flags: frozenset[str] = frozenset()) -> JobFile:
    """Check a job's raw text; `flags` are the fields that came from the command line."""
    try:
        return JobFile.model_validate(raw, context=flags)
    except ValidationError as error:
        raise UsageError(*(_problem(dict(row), flags) for row in error.errors())) from None


def _problem(row: dict[str, Any], flags: frozenset[str]) -> str:
    place = [str(part) for part in row["loc"]]
    name, given = label(".".join(place), flags), row["input"]
    match row["type"]:
        case "extra_forbidden":
            names = DataFile.model_fields if place[0] == "data" else field_names()
            return unknown("key", place[-1], names, "recommend jobs schema lists them")
        case "literal_error":
            choices = row["ctx"]["expected"].replace("'", "").replace(" or ", ", ").split(", ")
            return f"{name} {unknown('value', str(given), choices)}"
        case "bool_parsing" | "bool_type":
            return f"{name} {shown(given)} is neither yes nor no"
        case "value_error" if str(row["ctx"]["error"]).startswith(name.removesuffix(":")):
            return str(row["ctx"]["error"])
        case "value_error":
            return f"{name} {row['ctx']['error']}"
        case "missing":
            return f"{name} is missing; write schema: {SCHEMA}"
    return f"{name} {shown(given)} cannot be used ({row['msg'].lower()})"


def json_schema() -> dict[str, Any]:
    """Describe a job file as JSON Schema, for editors and other tools."""
    schema = JobFile.model_json_schema(mode="validation")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
