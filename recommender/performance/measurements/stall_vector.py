"""Builds one stall vector from the profiles of several records: one GPU, one machine, several."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from recommender.benchmarks import stalls
from recommender.benchmarks.errors import BenchError
from recommender.benchmarks.record import Record
from recommender.catalogs.files import replace_file
from recommender.errors import UsageError
from recommender.inputs.files import writing
from recommender.performance.measurements.pool import StalledTime, StallVector, TimedRun
from recommender.text import shown, shown_path

_WANTED = {
    "interconnect": "a run of one GPU and one of all GPUs of a machine",
    "network": "a run on several machines and one on one machine",
    "preparation": "runs on cached data as well as on synthetic data",
    "fetch": "runs on cold data as well as on cached data",
}
Shape = tuple[stalls.Kind, int, int]  # kind, machines, GPUs of all


def vector_of(records: Sequence[tuple[str, Record]], gpus: Sequence[str]) -> StallVector:
    """Merge the profiles of named records; `gpus` are the catalog's names, "" for processors.

    If a run is in two records the newer one counts. A record of one process gives the run of one
    GPU. Raises UsageError if a record has no profile or they cannot be compared.
    """
    _refuse(records)
    newest = sorted(zip(records, gpus, strict=True), key=lambda r: r[0][1].taken_at)
    widest = max(run.gpus for _, r in records if r.profile for run in r.profile.runs)
    runs: dict[Shape, tuple[stalls.Run, TimedRun]] = {}
    for (_, record), gpu in newest:
        assert record.profile is not None
        for run in record.profile.runs:
            alone = run.gpus == 1 < widest and run.kind == "synthetic_all"
            kind: stalls.Kind = "synthetic_one" if alone else run.kind
            made = stalls.Run(kind, run.gpus, run.batch_per_gpu, run.seconds, run.machines)
            runs[kind, run.machines, run.gpus] = made, _timed(run, record, gpu)
    most = max(machines for _, machines, _ in runs)
    used = [run for shape, (run, _) in runs.items() if _counts(shape, runs, most)]
    try:
        found = stalls.profile(used)
    except BenchError as error:
        raise UsageError(str(error)) from None
    names = {each.name for each in found.stalls}
    first = records[0][1]
    training = next(
        (r.profile.training for _, r in records if r.profile and r.profile.training), ""
    )
    return StallVector(
        training=training,
        device=next((name for name in gpus if name), first.machine.processor),
        machines=most,
        gpus=max(run.gpus for run in used),
        step_s=found.step_s,
        stalls=tuple(StalledTime(s.name, s.seconds, s.low, s.high, s.share) for s in found.stalls),
        runs=tuple(timed for _, timed in runs.values()),
        what_ifs=tuple((each.change, each.step_s) for each in stalls.what_ifs(found)),
        missing=tuple(f"{name}: needs {why}" for name, why in _WANTED.items() if name not in names)
        + _of_one_machine(used, most),
    )


def _of_one_machine(used: Sequence[stalls.Run], most: int) -> tuple[str, ...]:
    """Says so where real data were run on fewer machines than synthetic data."""
    real = [run.machines for run in used if run.kind in ("cached", "cold")]
    if not real or max(real) == most:
        return ()
    return (f"real data on {most} machines: each is assumed to wait like the one that was timed",)


def _counts(shape: Shape, runs: dict[Shape, tuple[stalls.Run, TimedRun]], most: int) -> bool:
    """One GPU, and all GPUs of one machine and of the most machines; nothing between.

    Real data count on one machine where they were not run on the most.
    """
    kind, machines, gpus = shape
    if kind == "synthetic_one":
        return True
    widest = max(g for k, m, g in runs if m == machines and k != "synthetic_one")
    elsewhere = any(k == kind and m == most for k, m, _ in runs)
    wanted = machines == most or (machines == 1 and (kind == "synthetic_all" or not elsewhere))
    return wanted and gpus == widest


def _timed(run: stalls.Run, record: Record, gpu: str) -> TimedRun:
    data = "synthetic" if run.kind.startswith("synthetic") else run.kind
    batch = run.gpus * run.batch_per_gpu
    instance = record.place.instance_type
    return TimedRun(instance, gpu, run.machines, run.gpus, batch, run.step_s, data)


def _refuse(records: Sequence[tuple[str, Record]]) -> None:
    bare = [name for name, record in records if record.profile is None]
    if bare:
        raise UsageError(
            *(f"{shown(name)}: holds no stall profile; run it with --profile" for name in bare)
        )
    for what, values in (
        ("training", {r.profile.training for _, r in records if r.profile} - {""}),
        (
            "batch per GPU",
            {str(run.batch_per_gpu) for _, r in records if r.profile for run in r.profile.runs},
        ),
        ("GPU", {r.machine.gpu or r.machine.processor for _, r in records}),
    ):
        if len(values) > 1:
            listed = ", ".join(sorted(map(shown, values)))
            raise UsageError(
                f"these records are of more than one {what} ({listed}): stalls are differences "
                "of runs that are alike; name the records of one"
            )


def write_timings(found: StallVector, path: Path, known: Sequence[str], force: bool) -> None:
    """Write the runs as the table that `recommend calibrate` reads; `known` instance types."""
    if path.exists() and not force:
        raise UsageError(f"{shown_path(path)} exists; name another file, or add --force")
    if not all(run.gpu for run in found.runs):
        raise UsageError("--timings: runs on processors calibrate no job; plans rent GPUs")
    text = io.StringIO(newline="")
    out = csv.writer(text, lineterminator="\n")
    out.writerow(("instance", "gpu", "machines", "gpus", "batch", "step_s", "data"))
    for run in found.runs:
        named = run.instance in known
        row = (run.instance, "") if named else ("", run.gpu)
        out.writerow((*row, run.machines, run.gpus, run.batch, f"{run.step_s:.6g}", run.data))
    with writing(shown_path(path)):
        replace_file(path, text.getvalue().encode("utf-8"))
