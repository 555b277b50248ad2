"""The flags of `recommend`, as typed: text until `request` reads it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from recommender.catalogs.frozen import dataclass
from recommender.cli.error_collector import ErrorCollector
from recommender.export.start import TARGETS
from recommender.inputs.units import PROVIDERS
from recommender.job.job import SHARDINGS

Word = str | None
Words = list[str] | None


def _flag(panel: str, help: str, *names: str, metavar: str | None = None, **more: Any) -> Any:
    if metavar and "|" in metavar:
        more["autocompletion"] = one_of(metavar.split("|"))
    return typer.Option(
        *names, help=help, metavar=metavar, rich_help_panel=panel, show_default=False, **more
    )


def one_of(words: Sequence[str]) -> Callable[[str], list[str]]:
    """What completes a flag that takes one of a few words."""

    def completions(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return completions


def _limit(help: str, *names: str, metavar: str) -> Any:
    return _flag("Limits (all must hold)", help, *names, metavar=metavar)


def _offer(help: str, *names: str, metavar: str | None = None) -> Any:
    return _flag("What may be rented", help, *names, metavar=metavar)


def _job(help: str, *names: str, metavar: str | None = None) -> Any:
    return _flag("The job", help, *names, metavar=metavar)


def _own(help: str, *names: str, metavar: str | None = None) -> Any:
    return _flag("Your own figures", help, *names, metavar=metavar)


def _out(help: str, *names: str, metavar: str | None = None) -> Any:
    return _flag("Output", help, *names, metavar=metavar)


@dataclass(frozen=True, slots=True)
class LimitFlags:
    """Limits on the whole job and how they are weighed."""

    deadline: Annotated[
        Word,
        _limit("Done in 24h or 1d12h, or by 'tomorrow 08:00'.", metavar="TIME"),
    ] = None
    budget: Annotated[Word, _limit("Cost at most, in total: 200, $1.5k.", metavar="USD")] = None
    hourly: Annotated[Word, _limit("Cost at most, at any moment: 30, $30/h.", metavar="USD/H")] = (
        None
    )
    confidence: Annotated[Word, _limit("Chance of meeting all limits (95%).", metavar="SHARE")] = (
        None
    )
    max_overhead: Annotated[
        Word,
        _limit(
            "Most checkpoints, lost work, restarts, relative to the work: 20%.", metavar="SHARE"
        ),
    ] = None
    max_machines: Annotated[Word, _limit("Most machines at once (16).", metavar="N")] = None
    objective: Annotated[
        Word,
        _limit("What is minimised: cost with a deadline, else time.", metavar="auto|cost|time"),
    ] = None


@dataclass(frozen=True, slots=True)
class OfferFlags:
    """Which offers may be used."""

    provider: Annotated[
        Words, _offer("Only this provider; repeat for more.", metavar="|".join(PROVIDERS))
    ] = None
    region: Annotated[Words, _offer("Only this region; repeatable.", metavar="NAME")] = None
    zone: Annotated[Words, _offer("Only this zone; repeatable.", metavar="NAME")] = None
    gpu: Annotated[
        Words, _offer("Only GPUs as H100, A100:8, 40GB+; repeatable.", metavar="GPU")
    ] = None
    instance: Annotated[Words, _offer("Only this instance type; repeatable.", metavar="NAME")] = (
        None
    )
    deny: Annotated[
        Words,
        _offer("Never this type, GPU, region or provider; * matches; repeatable.", metavar="NAME"),
    ] = None
    market: Annotated[
        Word, _offer("Which market may be used (any).", metavar="any|spot|on-demand")
    ] = None
    no_spot: Annotated[bool, _offer("Same as --market on-demand.", "--no-spot")] = False
    failover: Annotated[
        Word,
        _offer(
            "Where to ask next for spot that is gone, for on-demand that is short (region).",
            metavar="none|zone|region",
        ),
    ] = None
    mix: Annotated[
        bool | None,
        _offer(
            "Several instance types in one cluster (tried under quotas, if elastic, with --prove, "
            "and where no single type will do).",
            "--mix/--no-mix",
        ),
    ] = None
    checkpoint_to: Annotated[
        Word,
        _offer(
            "Where checkpoints go: auto, object_store, anchor, memory_tier, none.", metavar="PATH"
        ),
    ] = None
    accelerator: Annotated[
        Word, _offer("Vendor of the GPUs (nvidia).", metavar="nvidia|amd|aws|any")
    ] = None
    arch: Annotated[
        Word, _offer("Processor architecture (x86_64).", metavar="x86_64|arm64|any")
    ] = None
    quoted_only: Annotated[
        bool, _offer("Leave out prices that were derived, not quoted.", "--quoted-only")
    ] = False
    confidential: Annotated[
        bool, _offer("Confidential VMs only; else none of them.", "--confidential")
    ] = False


@dataclass(frozen=True, slots=True)
class OwnFlags:
    """What the user knows better than the catalog."""

    measured: Annotated[
        Words, _own('A speed you measured: "8xH100: 3.1 s/step"; repeatable.', metavar="SPEED")
    ] = None
    quota: Annotated[
        Word,
        _own(
            "File of your account's quotas, the rest 0; default-new: a new account's.",
            metavar="FILE",
        ),
    ] = None
    offers: Annotated[
        Word, _own("CSV file of machines you own or rent elsewhere.", metavar="FILE")
    ] = None
    discount: Annotated[
        Words, _own("Discount on on-demand prices: aws=0.2; repeatable.", metavar="NAME=SHARE")
    ] = None
    data_at: Annotated[
        Word, _own("Where the data is, and how much: aws:us-east-1,150GB.", metavar="PLACE")
    ] = None
    mtbf: Annotated[
        Word,
        _own("Mean time to interruption of a spot machine, in hours or as 3h.", metavar="HOURS"),
    ] = None
    assume_on_demand: Annotated[
        Word,
        _own("Chance that an on-demand machine of eight GPUs is there at once.", metavar="SHARE"),
    ] = None
    prices_as_quoted: Annotated[
        bool, _own("Leave the drift of old prices out of the spans.", "--prices-as-quoted")
    ] = False
    compare: Annotated[
        Word,
        _own('What you rent today: "8x p4d.24xlarge on-demand us-east-1".', metavar="MACHINES"),
    ] = None
    done: Annotated[Word, _own("Share of the job already done: 40%.", metavar="SHARE")] = None
    elapsed: Annotated[Word, _own("Time elapsed so far.", metavar="TIME")] = None
    spent: Annotated[Word, _own("Money spent so far.", metavar="USD")] = None


@dataclass(frozen=True, slots=True)
class JobFlags:
    """Fields of the job, changed for this call."""

    model: Annotated[
        Word,
        _job("Network: a known model such as Qwen/Qwen2.5-7B, or a config.json.", metavar="MODEL"),
    ] = None
    examples: Annotated[Word, _job("Examples of the data set, in one epoch.", metavar="N")] = None
    tokens: Annotated[Word, _job("Tokens to train on: 15T, 1e9.", metavar="N")] = None
    samples: Annotated[Word, _job("Samples to train on.", metavar="N")] = None
    epochs: Annotated[Word, _job("Passes over the data set.", metavar="N")] = None
    steps: Annotated[Word, _job("Optimiser steps.", metavar="N")] = None
    batch: Annotated[Word, _job('Samples (or "4M tokens") per optimiser step.', metavar="N")] = None
    batch_per_gpu: Annotated[
        Word, _job("Samples per step of each GPU; the global batch grows with them.", metavar="N")
    ] = None
    max_global_batch: Annotated[
        Word, _job("Largest global batch, with --batch-per-gpu.", metavar="N")
    ] = None
    params: Annotated[Word, _job("Parameters of the network: 8B.", metavar="N")] = None
    seq_len: Annotated[Word, _job("Mean tokens in a sequence.", metavar="N")] = None
    image_size: Annotated[Word, _job("Side of a picture, in pixels: 384.", metavar="N")] = None
    precision: Annotated[
        Word,
        _job(
            "Numeric precision of the training.",
            metavar="mixed|fp8|mxfp8|nvfp4|bf16|fp16|tf32|fp32",
        ),
    ] = None
    method: Annotated[Word, _job("Train all weights or adapters.", metavar="full|lora|qlora")] = (
        None
    )
    lora_rank: Annotated[Word, _job("Rank of the adapters.", metavar="N")] = None
    optimizer: Annotated[
        Word, _job("Optimiser; its states take memory.", metavar="adamw|sgd|lamb|adafactor")
    ] = None
    sharding: Annotated[
        Word,
        _job("How weights are sharded over the GPUs.", metavar="|".join(SHARDINGS)),
    ] = None
    machines: Annotated[Word, _job("Exactly so many machines at once.", metavar="N")] = None
    elastic: Annotated[
        bool | None,
        _job("Go on with fewer machines (where it can), or all or none.", "--elastic/--gang"),
    ] = None
    stack: Annotated[
        Word, _job("Vendor recipes, or third-party scripts.", metavar="tuned|typical")
    ] = None
    image: Annotated[
        Word, _job("Container pulled at each start, or preinstalled.", metavar="cold|prebuilt")
    ] = None
    setup: Annotated[Word, _job("Time from a machine's start to training: 5m.", metavar="TIME")] = (
        None
    )


@dataclass(frozen=True, slots=True)
class SearchFlags:
    """Which catalog is searched and how hard."""

    catalog: Annotated[
        Word,
        _flag("Search", "Catalog folder, store or https://…/manifest.json.", metavar="PATH"),
    ] = None
    max_age: Annotated[Word, _flag("Search", "Refuse prices older than: 30d.", metavar="TIME")] = (
        None
    )
    prove: Annotated[
        bool, _flag("Search", "Search on until proven; Ctrl-C: the best so far.", "--prove")
    ] = False
    verify: Annotated[
        bool, _flag("Search", "Simulate the plans again with other seeds.", "--verify")
    ] = False
    save_lp: Annotated[
        Word, _flag("Search", "Write the linear program to FILE.", metavar="FILE")
    ] = None
    seed: Annotated[Word, _flag("Search", "Seed of the simulated runs (7).", metavar="N")] = None


@dataclass(frozen=True, slots=True)
class OutputFlags:
    """How an answer is written."""

    output: Annotated[
        Word, _out("Form of the answer.", "-o", "--output", metavar="table|json|csv|markdown")
    ] = None
    json: Annotated[bool, _out("Same as --output json.", "--json")] = False
    quiet: Annotated[bool, _out("The table only.", "-q", "--quiet")] = False
    color: Annotated[Word, _out("Colour on the terminal.", metavar="auto|always|never")] = None


@dataclass(frozen=True, slots=True)
class PageFlags:
    """How a list is written."""

    output: Annotated[Word, _out("Form of the list.", "-o", "--output", metavar="table|json")] = (
        None
    )
    json: Annotated[bool, _out("Same as --output json.", "--json")] = False
    color: Annotated[Word, _out("Colour on the terminal.", metavar="auto|always|never")] = None


@dataclass(frozen=True, slots=True)
class SheetFlags:
    """How a list is written that is a table of figures as well."""

    output: Annotated[
        Word, _out("Form of the list.", "-o", "--output", metavar="table|json|csv")
    ] = None
    json: Annotated[bool, _out("Same as --output json.", "--json")] = False
    color: Annotated[Word, _out("Colour on the terminal.", metavar="auto|always|never")] = None


@dataclass(frozen=True, slots=True)
class TraceFlags:
    """How trace files are read, and which of their series."""

    format: Annotated[
        Word,
        _flag(
            "Trace",
            "Format of the files where it cannot be recognised.",
            metavar="recommend|spot-traces|preempted|skynomad-probes|aws-prices|bamboo|gcp-operations",
        ),
    ] = None
    series: Annotated[
        Words, _flag("Trace", "Only this series; * matches; repeatable.", metavar="NAME")
    ] = None


@dataclass(frozen=True, slots=True)
class AnswerFlags:
    """How much of an answer is shown."""

    top: Annotated[Word, _out("Number of plans shown (5).", metavar="N")] = None
    all_regions: Annotated[bool, _out("Every region a plan could run in.", "--all-regions")] = False
    explain: Annotated[Word, _out("Breakdown of plan N: time, memory, money.", metavar="N")] = None


@dataclass(frozen=True, slots=True)
class WriteFlags:
    """Files that show the answer or run the plan."""

    report: Annotated[
        Word, _out("Write the answer with its pictures as one HTML file.", metavar="FILE")
    ] = None

    write: Annotated[Word, _out("Write files that run the plan.", metavar="DIR")] = None
    to: Annotated[Word, _out("What shall run them (skypilot).", metavar="|".join(TARGETS))] = None


F = TypeVar("F")

_KEYS = {"provider": "providers", "region": "regions"}  # flag: setting, where they differ


def changed_settings(errors: ErrorCollector) -> Mapping[str, str | tuple[str, ...]]:
    """The settings that were changed by somebody, as text."""
    from recommender.inputs.settings import load

    found = errors.attempt(lambda: load({}, Path()), {})
    return {key: each.value for key, each in found.items() if each.origin != "default"}


def with_settings(flags: F, kept: Mapping[str, str | tuple[str, ...]]) -> F:
    """The flags, with settings where nothing was typed."""
    changes: dict[str, Any] = {}
    for each in fields(flags):  # type: ignore[arg-type]
        value = kept.get(_KEYS.get(each.name, each.name))
        if getattr(flags, each.name) is None and value is not None:
            changes[each.name] = value if isinstance(value, str) else list(value)
    return replace(flags, **changes)  # type: ignore[type-var]
