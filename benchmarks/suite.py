"""Runs a suite: where it runs, how long it takes and what that costs, every case, the record."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from itertools import groupby
from pathlib import Path

from . import backend, collectives, metadata, nvidia
from .blocks import blocks
from .checkpoint import checkpoint
from .errors import BenchError, Skipped, error_text, guard
from .estimate import probe, profile_seconds, suite_seconds
from .input_pipeline import BATCH, inputs
from .machine import Machine, look, software
from .matmul import matmul
from .memory import memory, transfer
from .metadata import Place
from .method import FULL, QUICK, Result, Rule, measure, measure_in_turns
from .progress_log import Notify, ProgressLog
from .record import Record
from .rendezvous import join
from .subject import Bench, Case, Subject, Suite, Trial
from .training import find_training, stalls_of, steps_of, workers_of

SUBJECTS: tuple[Subject, ...] = (
    matmul, memory, transfer, blocks, checkpoint, inputs, collectives.collectives,
)  # fmt: skip
_MEASURED = "the first process has measured its machine"
_TIMEOUT_S = 2 * 3600.0  # with that; a failing process reports it, and torchrun ends one that died
_BUSY = 0.05  # of a GPU's time: more was another program


@dataclass(frozen=True, slots=True)
class SuiteOptions:
    """The options of the command line."""

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

    options: SuiteOptions
    bench: Bench
    place: Place
    machine: Machine
    seconds: float  # it will take about

    @property
    def announcement(self) -> str:
        """How long it takes and what that costs, printed before the first repetition."""
        minutes = f"{self.seconds / 60:.0f} min" if self.seconds >= 90 else f"{self.seconds:.0f} s"
        text = f"suite {self.bench.suite}: about {minutes}"
        rate = self.options.usd_per_hour
        if rate is None:
            return f"{text}; no price is known for this machine"
        n = self.bench.machines
        cost = n * rate * self.seconds / 3600
        each = f" for each of {n} machines" if n > 1 else ""
        return f"{text}, about {cost:.2g} USD at {rate:g} USD/h{each}"


def prepare(options: SuiteOptions) -> Ready:
    """Find the device, the place and the cases. Raises BenchError if the request cannot be met."""
    torch = backend.find_torch()
    device = backend.choose_device(torch, options.device)
    rank, world, local = backend.place()
    if world > 1 and torch is None:
        raise BenchError("started by torchrun, but torch is not installed here")
    gpu = None
    if device == "cuda":
        gpu = backend.take_gpu(torch, local)
    for flag, named in (("--folder", options.folder), ("--mount", options.mount)):
        if named and not Path(named).is_dir():
            raise BenchError(f"{flag} {named}: is no folder; name one on the disk to measure")
    folder, mount = Path(options.folder), Path(options.mount) if options.mount else None
    bench = Bench(
        options.suite, device, torch, folder, options.s3, options.s3_endpoint, rank, world,
        backend.machines(world), gpu, mount,
    )  # fmt: skip
    if rank:  # the first process speaks for all; probes of many at once would tell too little
        return Ready(options, bench, Place(), look(bench), 0.0)
    where = find_place(options)
    return Ready(options, bench, where, look(bench, where.machine), seconds_of(bench, options))


def find_place(options: SuiteOptions) -> Place:
    """What the metadata service tells, flags over it."""
    reported = Place()
    if options.ask_metadata:
        reported = metadata.find_place(metadata.provider_of())
    given = {
        name: value
        for name in ("provider", "instance_type", "region", "zone", "market", "machine")
        if (value := getattr(options.place, name))
    }
    return replace(reported, **given)


def seconds_of(bench: Bench, options: SuiteOptions) -> float:
    """About how long the suite takes on this machine."""
    every = (each for subject in SUBJECTS for each in subject(bench))
    cases = [each for each in every if isinstance(each, Case)]
    gpu, now = bench.gpu is not None, probe(bench.folder)
    found = suite_seconds(cases, _rule(bench), gpu, now)
    if _has_ring(bench):
        found += collectives.ring_seconds(bench, now.busy)
    if options.profile:
        steps = sum(steps_of(bench))
        found += profile_seconds(options.profile, steps, BATCH, workers_of(bench), gpu, now)
    return found


def run(ready: Ready, notify: Notify) -> Record | None:
    """Measure everything; give the record, or None on all processes but the first.

    Raises BenchError on every process where one of them fails.
    """
    own = ready.bench
    bench = replace(own, rendezvous=join(own.torch, own.rank, own.world))
    with bench.rendezvous:
        return _run(replace(ready, bench=bench), notify)


def _run(ready: Ready, notify: Notify) -> Record | None:
    bench, name = ready.bench, ready.options.profile
    make = find_training(bench, name) if name else None  # a wrong name is refused at once
    bench.rendezvous.agree("the start")
    watch = nvidia.Watch(bench.gpu.uuid) if bench.gpu and not bench.rank else None
    log = ProgressLog([], [], notify)
    try:
        if bench.rank:
            bench.rendezvous.wait_for(_MEASURED, (0,), _TIMEOUT_S)
        else:
            _alone(bench, log)
            bench.rendezvous.announce(_MEASURED)
        collectives.start(bench)
        _exchange(bench, log)
        stalls = stalls_of(bench, name, make, log)
        collectives.stop(bench)
    finally:
        states = watch.stop() if watch else ()
    if bench.rank:
        return None
    _doubts(states, notify)
    return Record(
        datetime.now(timezone.utc).isoformat(timespec="seconds"),  # noqa: UP017 (3.10)
        bench.suite,
        bench.device,
        ready.machine,
        ready.place,
        software(bench),
        tuple(log.results),
        tuple(log.skipped),
        collectives.links(log.results),
        states,
        stalls,
    )


def _alone(bench: Bench, log: ProgressLog) -> None:
    """What one process measures of its machine."""
    for subject in SUBJECTS:
        if subject is not collectives.collectives:
            for each in _measured(subject(bench), bench, _rule(bench)):
                log.record(each)


def _exchange(bench: Bench, log: ProgressLog) -> None:
    """Collectives: of the processes of torchrun, else of local ones."""
    if collectives.collectives in SUBJECTS:
        here = bench.world // bench.machines
        try:
            for each in _in_turns(collectives.collectives(bench), _rule(bench), here):
                log.record(each)
        except RuntimeError as error:  # torch's, if a process has died or hangs
            why = (
                bench.rendezvous.failure()
                or f"collectives, process {bench.rank}: {error_text(error)}"
            )
            raise BenchError(why) from None
    if _has_ring(bench):
        for each in collectives.ring(bench):
            log.record(each)


def _rule(bench: Bench) -> Rule:
    return QUICK if bench.quick else FULL


def _doubts(states: Sequence[nvidia.GpuState], notify: Notify) -> None:
    if states and (states[0].busy or 0.0) > _BUSY:
        notify(f"another program used {states[0].busy:.0%} of the GPU's time when the run began")
    slowed = sum(state.slowed for state in states)
    if slowed:
        notify(f"power or heat held the GPU's clock down in {slowed} of {len(states)} readings")


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
        yield guard(partial(measure, case, rule, wait), f"{case.subject} {case.name}")


def _in_turns(
    cases: Iterator[Case | Skipped], rule: Rule, processes: int
) -> Iterator[Result | Skipped]:
    """Measure all sizes of a collective in turns; its line is fitted through them."""
    for _, own in groupby(cases, lambda c: c.facts["collective"] if isinstance(c, Case) else ""):
        ready: list[tuple[Case, Trial]] = []
        for case in own:
            if isinstance(case, Skipped):
                yield case
                continue
            try:
                ready.append((case, case.setup()))
            except Skipped as error:  # by all processes alike
                yield error
        yield from measure_in_turns(ready, rule, processes)
