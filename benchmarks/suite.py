"""Runs a suite: where it runs, how long it takes and what that costs, every case, the record."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

from benchmarks import backend, collectives, metadata, nvidia
from benchmarks.blocks import blocks
from benchmarks.checkpoint import checkpoint
from benchmarks.errors import BenchError, Skipped
from benchmarks.estimate import probe, profile_seconds, suite_seconds
from benchmarks.inputs import BATCH, inputs
from benchmarks.machine import Machine, look, software
from benchmarks.matmul import cpus, matmul
from benchmarks.memory import memory
from benchmarks.metadata import Place
from benchmarks.method import FULL, QUICK, Result, Rule, measure, measure_in_turns
from benchmarks.record import Record
from benchmarks.stalls import KINDS, Kind, Profile, profile, time_runs, what_ifs
from benchmarks.subject import Bench, Case, Subject, Suite, Trial
from benchmarks.training import BuiltIn, find_training
from benchmarks.transfer import transfer

SUBJECTS: tuple[Subject, ...] = (
    matmul, memory, transfer, blocks, checkpoint, inputs, collectives.collectives,
)  # fmt: skip
_STEPS, _WARM_UP = 60, 12
_BUSY = 0.05  # of a GPU's time: more was another program

# The last two: torch's 8-bit products change names and arguments between versions, and a rented
# GPU must not lose its other figures for that.
_FAILURES = (Skipped, OSError, RuntimeError, MemoryError, TypeError, AttributeError)

Say = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the command line asked for."""

    suite: Suite = "quick"
    device: str | None = None  # "cpu", "cuda"; None: a GPU where there is one
    folder: str = "."
    mount: str = ""
    s3: str = ""
    s3_endpoint: str = ""
    profile: str = ""  # a built-in network or module:function; empty: none
    ask_metadata: bool = True
    place: Place = Place()  # flags win over what the machine tells
    usd_per_hour: float | None = None


@dataclass(frozen=True, slots=True)
class Ready:
    """A suite that may start."""

    wishes: Wishes
    bench: Bench
    place: Place
    machine: Machine
    seconds: float  # it will take about

    @property
    def announcement(self) -> str:
        """How long it takes and what that costs, said before the first repetition."""
        minutes = f"{self.seconds / 60:.0f} min" if self.seconds >= 90 else f"{self.seconds:.0f} s"
        said = f"suite {self.bench.suite}: about {minutes}"
        rate = self.wishes.usd_per_hour
        if rate is None:
            return f"{said}; no price is known for this machine"
        cost = rate * self.seconds / 3600
        return f"{said}, about {cost:.2g} USD at {rate:g} USD/h"


def prepare(wishes: Wishes) -> Ready:
    """Find the device, the place and the cases. Raises BenchError where the wish cannot be met."""
    torch = backend.find_torch()
    device = backend.choose_device(torch, wishes.device)
    rank, world, local = backend.place()
    if world > 1 and torch is None:
        raise BenchError("started by torchrun, but torch is not installed here")
    gpu = None
    if device == "cuda":
        torch.cuda.set_device(local)
        gpu = backend.gpu_facts(torch, local)
    for flag, named in (("--folder", wishes.folder), ("--mount", wishes.mount)):
        if named and not Path(named).is_dir():
            raise BenchError(f"{flag} {named}: is no folder; name one on the disk to measure")
    folder, mount = Path(wishes.folder), Path(wishes.mount) if wishes.mount else None
    bench = Bench(
        wishes.suite, device, torch, folder, wishes.s3, wishes.s3_endpoint, rank, world,
        backend.machines(world), gpu, mount,
    )  # fmt: skip
    where = find_place(wishes)
    return Ready(wishes, bench, where, look(bench, where.machine), seconds_of(bench, wishes))


def find_place(wishes: Wishes) -> Place:
    """What the metadata service tells, flags over it."""
    told = Place()
    if wishes.ask_metadata:
        told = metadata.find_place(metadata.provider_of())
    given = {
        name: value
        for name in ("provider", "instance_type", "region", "zone", "market", "machine")
        if (value := getattr(wishes.place, name))
    }
    return replace(told, **given)


def seconds_of(bench: Bench, wishes: Wishes) -> float:
    """About how long the suite takes on this machine."""
    every = (each for subject in SUBJECTS for each in subject(bench))
    cases = [each for each in every if isinstance(each, Case)]
    rule = QUICK if bench.quick else FULL
    gpu, now = bench.gpu is not None, probe()
    found = suite_seconds(cases, rule, gpu, now)
    if _has_ring(bench):
        found += collectives.ring_seconds(bench)
    if wishes.profile:
        steps = _STEPS + _WARM_UP
        found += profile_seconds(wishes.profile, steps, BATCH, cpus(), gpu, now)
    return found


def run(ready: Ready, say: Say) -> Record | None:
    """Measure everything; give the record, or None on all processes but the first."""
    bench = ready.bench
    rule = QUICK if bench.quick else FULL
    results: list[Result] = []
    skipped: list[str] = []
    watch = nvidia.Watch(bench.gpu.uuid) if bench.gpu and not bench.rank else None
    collectives.start(bench)
    try:
        for subject in SUBJECTS:
            if bench.rank and subject is not collectives.collectives:
                continue
            measured = _measured(subject(bench), bench, rule)
            if subject is collectives.collectives:
                measured = _in_turns(subject(bench), rule)
            for found in measured:
                _keep(found, results, skipped, say)
        if _has_ring(bench):
            for each in collectives.ring(bench):
                _keep(each, results, skipped, say)
        stalls = _stalls(ready, skipped, say)
    finally:
        collectives.stop(bench)
        states = watch.stop() if watch else ()
    if bench.rank:
        return None
    _doubts(states, say)
    return Record(
        datetime.now(UTC).isoformat(timespec="seconds"),
        bench.suite,
        bench.device,
        ready.machine,
        ready.place,
        software(bench),
        tuple(results),
        tuple(skipped),
        collectives.links(results),
        states,
        stalls,
    )


def _doubts(states: Sequence[nvidia.GpuState], say: Say) -> None:
    if states and (states[0].busy or 0.0) > _BUSY:
        say(f"another program used {states[0].busy:.0%} of the GPU's time when the run began")
    slowed = sum(state.slowed for state in states)
    if slowed:
        say(f"power or heat held the GPU's clock down in {slowed} of {len(states)} readings")


def _has_ring(bench: Bench) -> bool:
    return bench.world == 1 and bench.device == "cpu"


def _measured(
    cases: Iterator[Case | Skipped], bench: Bench, rule: Rule
) -> Iterator[Result | Skipped]:
    """Measure case after case; what fails for want of memory, disk or a kernel is left out."""
    wait = backend.synchroniser(bench.torch, bench.device)
    for case in cases:
        if isinstance(case, Skipped):
            yield case
            continue
        try:
            yield measure(case, rule, wait)
        except _FAILURES as error:
            yield _left_out(case, error)


def _in_turns(cases: Iterator[Case | Skipped], rule: Rule) -> Iterator[Result | Skipped]:
    """Measure all sizes of a collective in turns; its line is fitted through them."""
    for _, own in groupby(cases, lambda c: c.facts["collective"] if isinstance(c, Case) else ""):
        ready: list[tuple[Case, Trial]] = []
        for case in own:
            if isinstance(case, Skipped):
                yield case
                continue
            try:
                ready.append((case, case.setup()))
            except _FAILURES as error:
                yield _left_out(case, error)
        yield from measure_in_turns(ready, rule)


def _left_out(case: Case, error: Exception) -> Skipped:
    if isinstance(error, Skipped):
        return error
    said = " ".join(str(error).split())[:120] or type(error).__name__
    return Skipped(f"{case.subject} {case.name}: {said}")


def _keep(found: Result | Skipped, results: list[Result], skipped: list[str], say: Say) -> None:
    if isinstance(found, Skipped):
        skipped.append(str(found))
        say(f"skipped: {found}")
        return
    results.append(found)
    low, high = found.interval
    share = f" {found.share:4.0%} of ceiling" if found.share is not None else ""
    doubt = " (disturbed)" if found.interference and found.interference.seen else ""
    width = (high - low) / 2 / found.median
    say(
        f"{found.benchmark:12}{found.case:36}{found.median:11.4g} {found.unit:10}"
        f"± {width:4.0%}{share}{doubt}"
    )


def _stalls(ready: Ready, skipped: list[str], say: Say) -> Profile | None:
    """Time a training on four kinds of data, if one was named."""
    bench, name = ready.bench, ready.wishes.profile
    if not name:
        skipped.append("stall profile: no training named; --profile")
        return None
    say(f"stall profile of {name}: runs on {', '.join(KINDS)}")
    training = find_training(bench, name)
    kinds: tuple[Kind, ...] = KINDS
    if bench.world == 1:
        skipped.append("interconnect stall: one process; start it under torchrun")
    try:
        runs = time_runs(
            training, kinds, _STEPS, _WARM_UP, bench.world, BATCH, machines=bench.machines
        )
    finally:
        if isinstance(training, BuiltIn):
            with suppress(OSError):
                training.close()
    if bench.world == 1:
        runs = tuple(run for run in runs if run.kind != "synthetic_one")
    found = profile(runs, name)
    for each in found.stalls:
        say(
            f"{'stall':12}{each.name:36}{each.seconds * 1e3:11.4g} ms/step   "
            f"{each.share:4.0%} of the step, {each.low * 1e3:.3g} to {each.high * 1e3:.3g} ms"
        )
    for change in what_ifs(found):
        say(f"{'what if':12}{change.change:36}{change.step_s * 1e3:11.4g} ms/step   predicted")
    return found
