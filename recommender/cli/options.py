"""The flags of `recommend`, as typed: text until `request` reads it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from recommender.catalogs.frozen import dataclass
from recommender.cli.error_collector import ErrorCollector
from recommender.export.start import TARGETS
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
        _limit("Finish in 24h, 1d12h, or by 'tomorrow 08:00'.", metavar="TIME"),
    ] = None
    budget: Annotated[Word, _limit("Maximum cost of the whole job: 200, $1.5k.", metavar="USD")] = (
        None
    )
    hourly: Annotated[Word, _limit("Maximum total price per hour: 30, $30/h.", metavar="USD/H")] = (
        None
    )
    confidence: Annotated[
        Word, _limit("Probability of meeting all limits (95%).", metavar="SHARE")
    ] = None
    max_overhead: Annotated[
        Word,
        _limit(
            "Maximum time for checkpoints, lost work and restarts, relative to the work: 20%.",
            metavar="SHARE",
        ),
    ] = None
    max_machines: Annotated[
        Word, _limit("Maximum number of machines at once (16).", metavar="N")
    ] = None
    objective: Annotated[
        Word,
        _limit(
            "What to minimise; auto: cost with a deadline, else time.", metavar="auto|cost|time"
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class OfferFlags:
    """Which offers may be used."""

    provider: Annotated[
        Words, _offer("Only this provider; repeatable.", metavar="aws|lambda|…")
    ] = None
    region: Annotated[Words, _offer("Only this region; repeatable.", metavar="NAME")] = None
    country: Annotated[
        Words, _offer("Only in this country, or EU; repeatable.", metavar="DE|US|EU|…")
    ] = None
    zone: Annotated[Words, _offer("Only this zone; repeatable.", metavar="NAME")] = None
    gpu: Annotated[Words, _offer("Only these: H100, A100:8, 40GB+; repeatable.", metavar="GPU")] = (
        None
    )
    instance: Annotated[Words, _offer("Only this instance type; repeatable.", metavar="NAME")] = (
        None
    )
    deny: Annotated[
        Words,
        _offer(
            "Exclude this type, GPU, region or provider; * matches; repeatable.", metavar="NAME"
        ),
    ] = None
    market: Annotated[
        Word, _offer("Market to rent in (any).", metavar="any|spot|on-demand|reserved")
    ] = None
    no_spot: Annotated[
        bool, _offer("Only what nobody interrupts: on demand or reserved.", "--no-spot")
    ] = False
    failover: Annotated[
        Word,
        _offer(
            "Where to look next after an interruption, or for scarce on-demand machines (region).",
            metavar="none|zone|region",
        ),
    ] = None
    mix: Annotated[
        bool | None,
        _offer(
            "Search all mixes of instance types and markets, or none (otherwise a few likely ones; "
            "all under quotas, with --elastic and with --prove).",
            "--mix/--no-mix",
        ),
    ] = None
    checkpoint_to: Annotated[
        Word,
        _offer(
            "Where checkpoints are stored: auto, object_store, anchor, memory_tier, none.",
            metavar="PATH",
        ),
    ] = None
    accelerator: Annotated[
        Word, _offer("Vendor of the GPUs (nvidia).", metavar="nvidia|amd|aws|any")
    ] = None
    arch: Annotated[
        Word, _offer("Processor architecture (x86_64).", metavar="x86_64|arm64|any")
    ] = None
    quoted_only: Annotated[
        bool, _offer("Exclude prices that were derived, not quoted.", "--quoted-only")
    ] = False
    confidential: Annotated[
        bool, _offer("Confidential VMs only (otherwise they are excluded).", "--confidential")
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
            "File of your account's quotas (others: 0), or default-new or granted.",
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
        Word,
        _own("Where the data are stored, and their size: aws:us-east-1,150GB.", metavar="PLACE"),
    ] = None
    mtbf: Annotated[
        Word,
        _own(
            "Mean time between interruptions of a spot machine: 3 (hours) or 90m.", metavar="HOURS"
        ),
    ] = None
    assume_on_demand: Annotated[
        Word,
        _own(
            "Probability that an on-demand machine with eight GPUs is available at once.",
            metavar="SHARE",
        ),
    ] = None
    prices_as_quoted: Annotated[
        bool,
        _own("Ignore that prices may have changed since they were quoted.", "--prices-as-quoted"),
    ] = False
    compare: Annotated[
        Word,
        _own(
            'Machines that you rent today: "8x p4d.24xlarge on-demand us-east-1".',
            metavar="MACHINES",
        ),
    ] = None
    done: Annotated[Word, _own("Share of the job that is done: 40%.", metavar="SHARE")] = None
    elapsed: Annotated[Word, _own("Time since the job started.", metavar="TIME")] = None
    spent: Annotated[Word, _own("Money spent so far.", metavar="USD")] = None


@dataclass(frozen=True, slots=True)
class JobFlags:
    """Fields of the job, changed for this call."""

    model: Annotated[
        Word,
        _job(
            "Network: a known model such as Qwen/Qwen2.5-7B, or a config.json file.",
            metavar="MODEL",
        ),
    ] = None
    examples: Annotated[Word, _job("Examples in the data set (one epoch).", metavar="N")] = None
    tokens: Annotated[Word, _job("Tokens to train on: 15T, 1e9.", metavar="N")] = None
    samples: Annotated[Word, _job("Samples to train on.", metavar="N")] = None
    epochs: Annotated[Word, _job("Passes over the data set.", metavar="N")] = None
    steps: Annotated[Word, _job("Optimiser steps.", metavar="N")] = None
    batch: Annotated[Word, _job('Samples (or "4M tokens") per optimiser step.', metavar="N")] = None
    batch_per_gpu: Annotated[
        Word, _job("Samples per step and GPU; the global batch grows with the GPUs.", metavar="N")
    ] = None
    max_global_batch: Annotated[
        Word, _job("Largest global batch, with --batch-per-gpu.", metavar="N")
    ] = None
    params: Annotated[Word, _job("Parameters of the network: 8B.", metavar="N")] = None
    seq_len: Annotated[Word, _job("Mean length of a sequence in tokens.", metavar="N")] = None
    image_size: Annotated[Word, _job("Image side in pixels: 384.", metavar="N")] = None
    precision: Annotated[
        Word,
        _job(
            "Numeric precision of training.",
            metavar="auto|mixed|fp8|mxfp8|nvfp4|bf16|fp16|tf32|fp32",
        ),
    ] = None
    method: Annotated[
        Word, _job("Train all weights, or adapters only.", metavar="full|lora|qlora")
    ] = None
    lora_rank: Annotated[Word, _job("Rank of the adapters.", metavar="N")] = None
    optimizer: Annotated[
        Word, _job("Optimiser (its states need memory).", metavar="adamw|sgd|lamb|adafactor")
    ] = None
    sharding: Annotated[
        Word,
        _job("How weights are sharded over the GPUs.", metavar="|".join(SHARDINGS)),
    ] = None
    machines: Annotated[Word, _job("Use exactly this number of machines.", metavar="N")] = None
    elastic: Annotated[
        bool | None,
        _job(
            "Continue with fewer machines if possible, or run on all machines or none.",
            "--elastic/--gang",
        ),
    ] = None
    stack: Annotated[
        Word,
        _job(
            "Training software: its name, a vendor's recipe, or scripts.",
            metavar="NAME|tuned|typical",
        ),
    ] = None
    image: Annotated[
        Word,
        _job(
            "Container pulled at each start, or part of the machine image.", metavar="cold|prebuilt"
        ),
    ] = None
    setup: Annotated[
        Word, _job("Time from a machine's start to the first step: 5m.", metavar="TIME")
    ] = None


@dataclass(frozen=True, slots=True)
class SearchFlags:
    """Which catalog is searched and how hard."""

    catalog: Annotated[
        Word,
        _flag("Search", "Catalog folder, store, or https://…/manifest.json.", metavar="PATH"),
    ] = None
    max_age: Annotated[
        Word, _flag("Search", "Exclude prices older than this: 30d.", metavar="TIME")
    ] = None
    prove: Annotated[
        bool,
        _flag(
            "Search",
            "Search until the best plan is proven; Ctrl-C stops with the best so far.",
            "--prove",
        ),
    ] = False
    verify: Annotated[
        bool, _flag("Search", "Simulate the plans again with another seed.", "--verify")
    ] = False
    save_lp: Annotated[
        Word, _flag("Search", "Write the linear program to FILE.", metavar="FILE")
    ] = None
    seed: Annotated[Word, _flag("Search", "Seed of the simulated runs (7).", metavar="N")] = None


@dataclass(frozen=True, slots=True)
class OutputFlags:
    """How an answer is written."""

    output: Annotated[
        Word, _out("Output format.", "-o", "--output", metavar="table|json|csv|markdown")
    ] = None
    json: Annotated[bool, _out("Same as --output json.", "--json")] = False
    quiet: Annotated[bool, _out("Print the plans only.", "-q", "--quiet")] = False
    color: Annotated[Word, _out("Colour on the terminal.", metavar="auto|always|never")] = None


@dataclass(frozen=True, slots=True)
class PageFlags:
    """How a list is written."""

    output: Annotated[Word, _out("Output format.", "-o", "--output", metavar="table|json")] = None
    json: Annotated[bool, _out("Same as --output json.", "--json")] = False
    color: Annotated[Word, _out("Colour on the terminal.", metavar="auto|always|never")] = None


@dataclass(frozen=True, slots=True)
class SheetFlags:
    """How a list is written that is a table of figures as well."""

    output: Annotated[Word, _out("Output format.", "-o", "--output", metavar="table|json|csv")] = (
        None
    )
    json: Annotated[bool, _out("Same as --output json.", "--json")] = False
    color: Annotated[Word, _out("Colour on the terminal.", metavar="auto|always|never")] = None


@dataclass(frozen=True, slots=True)
class TraceFlags:
    """Which series of trace files are read."""

    series: Annotated[
        Words, _flag("Trace", "Only this series; * matches; repeatable.", metavar="NAME")
    ] = None


@dataclass(frozen=True, slots=True)
class WorkerFlags:
    """Where many pieces of work are done."""

    workers: Annotated[
        Word,
        _flag(
            "Workers",
            "Processes of this machine that work (1; of batch and fleet one per core).",
            metavar="N",
        ),
    ] = None
    scheduler: Annotated[
        Word,
        _flag(
            "Workers",
            "Dask cluster that works: its scheduler's address, or local for one of these "
            "processes.",
            metavar="ADDRESS|local",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class AnswerFlags:
    """How much of an answer is shown."""

    table: Annotated[bool, _out("All plans as a table, and what limits are worth.", "--table")] = (
        False
    )
    top: Annotated[Word, _out("Number of plans of the table (5).", metavar="N")] = None
    all_regions: Annotated[
        bool, _out("The table with every region a plan could run in.", "--all-regions")
    ] = False
    explain: Annotated[Word, _out("Plan N term by term: why, risk, bill, proof.", metavar="N")] = (
        None
    )
    currency: Annotated[
        Word, _out("Show costs in this currency too, at your rate.", metavar="EUR=0.86")
    ] = None


@dataclass(frozen=True, slots=True)
class WriteFlags:
    """Files that show the answer or run the plan."""

    report: Annotated[
        Word, _out("Write the answer with charts as one HTML file.", metavar="FILE")
    ] = None

    write: Annotated[Word, _out("Write the files that run the plan.", metavar="DIR")] = None
    to: Annotated[
        Word, _out("Tool that will run the plan (skypilot).", metavar="|".join(TARGETS))
    ] = None


F = TypeVar("F")

_KEYS = {
    "provider": "providers",
    "region": "regions",
    "country": "countries",
}  # flag: setting, where they differ


def changed_settings(errors: ErrorCollector) -> Mapping[str, str | tuple[str, ...]]:
    """The settings that differ from the defaults, as text."""
    from recommender.inputs.settings import load
    from recommender.plan.limits import ACCOUNTS

    found = errors.attempt(lambda: load({}, Path()), {})
    changed = {key: each.value for key, each in found.items() if each.origin != "default"}
    account = changed.pop("account", None)
    return changed if account is None else {"quota": ACCOUNTS[f"{account}"], **changed}


def with_settings(flags: F, settings: Mapping[str, str | tuple[str, ...]]) -> F:
    """The flags, with settings where nothing was typed."""
    changes: dict[str, Any] = {}
    for each in fields(flags):  # type: ignore[arg-type]
        value = settings.get(_KEYS.get(each.name, each.name))
        if getattr(flags, each.name) is None and value is not None:
            changes[each.name] = value if isinstance(value, str) else list(value)
    return replace(flags, **changes)  # type: ignore[type-var]
