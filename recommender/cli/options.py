"""The flags of `recommend`, as typed: text until `request` reads it."""

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from recommender.catalogs.frozen import dataclass
from recommender.cli.error_collector import ErrorCollector
from recommender.cli.flags import Word, Words, flag, switch
from recommender.export.start import TARGETS
from recommender.inputs.settings import load
from recommender.job.job import SHARDINGS
from recommender.plan.limits import ACCOUNTS
from recommender.report.formats import FORMATS

CATALOG = flag("PATH", "Catalog folder, store, or https://…/manifest.json.")
STORE = flag("PATH", "Store to use instead of your own.")
PROVIDERS = flag("aws|lambda|…", "Only this provider; repeatable.")
TOP = flag("N", "Number of offers shown (20).")
COLOURS = ("auto", "always", "never")
FORCE = switch("Overwrite an existing file.")


@dataclass(frozen=True, slots=True)
class LimitFlags:
    """Limits on the whole job and how they are weighed."""

    PANEL: ClassVar = "Limits (all must hold)"
    deadline: Word = flag("TIME", "Finish in 24h, 1d12h, or by 'tomorrow 08:00'.")
    budget: Word = flag("USD", "Maximum cost of the whole job: 200, $1.5k.")
    hourly: Word = flag("USD/H", "Maximum total price per hour: 30, $30/h.")
    confidence: Word = flag("SHARE", "Probability of meeting all limits (95%).")
    max_overhead: Word = flag(
        "SHARE", "Maximum time for checkpoints, lost work and restarts, relative to the work: 20%."
    )
    max_machines: Word = flag("N", "Maximum number of machines at once (16).")
    objective: Word = flag(
        "auto|cost|time", "What to minimise; auto: cost with a deadline, else time."
    )


@dataclass(frozen=True, slots=True)
class OfferFlags:
    """Which offers may be used."""

    PANEL: ClassVar = "What may be rented"
    provider: Words = PROVIDERS
    region: Words = flag("NAME", "Only this region; repeatable.")
    country: Words = flag("DE|US|EU|…", "Only in this country, or EU; repeatable.")
    zone: Words = flag("NAME", "Only this zone; repeatable.")
    gpu: Words = flag("GPU", "Only these: H100, A100:8, 40GB+; repeatable.")
    instance: Words = flag("NAME", "Only this instance type; repeatable.")
    deny: Words = flag("NAME", "Exclude this type, GPU, region or provider; * matches; repeatable.")
    market: Word = flag("any|spot|on-demand|reserved", "Market to rent in (any).")
    no_spot: bool = switch("Only what nobody interrupts: on demand or reserved.")
    failover: Word = flag(
        "none|zone|region",
        "Where to look next after an interruption, or for scarce on-demand machines (region).",
    )
    mix: bool | None = switch(
        "Search all mixes of instance types and markets, or none (otherwise a few likely ones; "
        "all under quotas, with --elastic and with --prove).",
        "--mix/--no-mix",
        default=None,
    )
    checkpoint_to: Word = flag(
        "PATH", "Where checkpoints are stored: auto, object_store, anchor, memory_tier, none."
    )
    accelerator: Word = flag("nvidia|amd|aws|any", "Vendor of the GPUs (nvidia).")
    arch: Word = flag("x86_64|arm64|any", "Processor architecture (x86_64).")
    quoted_only: bool = switch("Exclude prices that were derived, not quoted.")
    confidential: bool = switch("Confidential VMs only (otherwise they are excluded).")


@dataclass(frozen=True, slots=True)
class OwnFlags:
    """What the user knows better than the catalog."""

    PANEL: ClassVar = "Your own figures"
    measured: Words = flag("SPEED", 'A speed you measured: "8xH100: 3.1 s/step"; repeatable.')
    quota: Word = flag(
        "FILE", "File of your account's quotas (others: 0), or default-new or granted."
    )
    offers: Word = flag("FILE", "CSV file of machines you own or rent elsewhere.")
    discount: Words = flag("NAME=SHARE", "Discount on on-demand prices: aws=0.2; repeatable.")
    data_at: Word = flag("PLACE", "Where the data are stored, and their size: aws:us-east-1,150GB.")
    mtbf: Word = flag(
        "HOURS", "Mean time between interruptions of a spot machine: 3 (hours) or 90m."
    )
    assume_on_demand: Word = flag(
        "SHARE", "Probability that an on-demand machine with eight GPUs is available at once."
    )
    prices_as_quoted: bool = switch("Ignore that prices may have changed since they were quoted.")
    compare: Word = flag(
        "MACHINES", 'Machines that you rent today: "8x p4d.24xlarge on-demand us-east-1".'
    )
    done: Word = flag("SHARE", "Share of the job that is done: 40%.")
    elapsed: Word = flag("TIME", "Time since the job started.")
    spent: Word = flag("USD", "Money spent so far.")


@dataclass(frozen=True, slots=True)
class JobFlags:
    """Fields of the job, changed for this call."""

    PANEL: ClassVar = "The job"
    model: Word = flag(
        "MODEL", "Network: a known model such as Qwen/Qwen2.5-7B, or a config.json file."
    )
    examples: Word = flag("N", "Examples in the data set (one epoch).")
    tokens: Word = flag("N", "Tokens to train on: 15T, 1e9.")
    samples: Word = flag("N", "Samples to train on.")
    epochs: Word = flag("N", "Passes over the data set.")
    steps: Word = flag("N", "Optimiser steps.")
    batch: Word = flag("N", 'Samples (or "4M tokens") per optimiser step.')
    batch_per_gpu: Word = flag(
        "N", "Samples per step and GPU; the global batch grows with the GPUs."
    )
    max_global_batch: Word = flag("N", "Largest global batch, with --batch-per-gpu.")
    params: Word = flag("N", "Parameters of the network: 8B.")
    seq_len: Word = flag("N", "Mean length of a sequence in tokens.")
    image_size: Word = flag("N", "Image side in pixels: 384.")
    precision: Word = flag(
        "auto|mixed|fp8|mxfp8|nvfp4|bf16|fp16|tf32|fp32", "Numeric precision of training."
    )
    method: Word = flag("full|lora|qlora", "Train all weights, or adapters only.")
    lora_rank: Word = flag("N", "Rank of the adapters.")
    optimizer: Word = flag("adamw|sgd|lamb|adafactor", "Optimiser (its states need memory).")
    sharding: Word = flag(SHARDINGS, "How weights are sharded over the GPUs.")
    machines: Word = flag("N", "Use exactly this number of machines.")
    elastic: bool | None = switch(
        "Continue with fewer machines if possible, or run on all machines or none.",
        "--elastic/--gang",
        default=None,
    )
    stack: Word = flag(
        "NAME|tuned|typical", "Training software: its name, a vendor's recipe, or scripts."
    )
    image: Word = flag(
        "cold|prebuilt", "Container pulled at each start, or part of the machine image."
    )
    setup: Word = flag("TIME", "Time from a machine's start to the first step: 5m.")


@dataclass(frozen=True, slots=True)
class SearchFlags:
    """Which catalog is searched and how hard."""

    PANEL: ClassVar = "Search"
    catalog: Word = CATALOG
    max_age: Word = flag("TIME", "Exclude prices older than this: 30d.")
    prove: bool = switch("Search until the best plan is proven; Ctrl-C stops with the best so far.")
    verify: bool = switch("Simulate the plans again with another seed.")
    save_lp: Word = flag("FILE", "Write the linear program to FILE.")
    seed: Word = flag("N", "Seed of the simulated runs (7).")


@dataclass(frozen=True, slots=True)
class PageFlags:
    """How a page is written."""

    PANEL: ClassVar = "Output"
    output: Word = flag(FORMATS, "Output format.", "-o", "--output")
    json: bool = switch("Same as --output json.")
    color: Word = flag(COLOURS, "Colour on the terminal.")


@dataclass(frozen=True, slots=True)
class OutputFlags(PageFlags):
    """How an answer is written."""

    quiet: bool = switch("Print the plans only.", "-q", "--quiet")


@dataclass(frozen=True, slots=True)
class TraceFlags:
    """Which series of trace files are read."""

    PANEL: ClassVar = "Trace"
    series: Words = flag("NAME", "Only this series; * matches; repeatable.")


@dataclass(frozen=True, slots=True)
class WorkerFlags:
    """Where many pieces of work are done."""

    PANEL: ClassVar = "Workers"
    workers: Word = flag(
        "N", "Processes of this machine that work (1; of batch and fleet one per core)."
    )
    scheduler: Word = flag(
        "ADDRESS|local",
        "Dask cluster that works: its scheduler's address, or local for one of these processes.",
    )


@dataclass(frozen=True, slots=True)
class AnswerFlags:
    """How much of an answer is shown."""

    PANEL: ClassVar = "Output"
    table: bool = switch("All plans as a table, and what limits are worth.")
    top: Word = flag("N", "Number of plans of the table (5).")
    all_regions: bool = switch("The table with every region a plan could run in.")
    explain: Word = flag("N", "Plan N term by term: why, risk, bill, proof.")
    currency: Word = flag("EUR=0.86", "Show costs in this currency too, at your rate.")


@dataclass(frozen=True, slots=True)
class WriteFlags:
    """Files that show the answer or run the plan."""

    PANEL: ClassVar = "Output"
    report: Word = flag("FILE", "Write the answer with charts as one HTML file.")

    write: Word = flag("DIR", "Write the files that run the plan.")
    to: Word = flag(TARGETS, "Tool that will run the plan (skypilot).")


F = TypeVar("F")

_KEYS = {
    "provider": "providers",
    "region": "regions",
    "country": "countries",
}  # flag: setting, where they differ


def changed_settings(errors: ErrorCollector) -> Mapping[str, str | tuple[str, ...]]:
    """The settings that differ from the defaults, as text."""

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
