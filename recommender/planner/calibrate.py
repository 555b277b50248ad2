"""Calibrates a job with a file of timed runs, and writes the job file."""

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from recommender.catalogs.catalog import Catalog
from recommender.catalogs.files import replace_file
from recommender.catalogs.frozen import dataclass
from recommender.catalogs.schema import Gpu
from recommender.errors import UsageError, refuse_all
from recommender.inputs.files import read_text, writing
from recommender.job.calibration_section import calibration_text
from recommender.job.job import Calibration, Job, TimedRun
from recommender.job.jobfile import find_job, job_from_text
from recommender.job.merge_layers import FILE
from recommender.job.preset_files import presets
from recommender.job.timings import above_peak, read_runs
from recommender.performance.calibration import calibrate
from recommender.performance.calibration_model import as_timed, clusters
from recommender.performance.clusters import MachineColumns
from recommender.performance.machines import machine_columns, part_links
from recommender.performance.priors import load_priors
from recommender.performance.step import why_infeasible
from recommender.text import shown_path

_SECTION = re.compile(r"^calibration:.*\n(?:(?:[ \t].*)?\n)*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a calibration, and the shipped constants for comparison."""

    job: Job  # uncalibrated
    runs: tuple[TimedRun, ...]
    predicted_s: tuple[float, ...]
    calibration: Calibration
    efficiency: float  # the shipped constants
    tensor_s: float
    written: Path


def calibrate_file(
    word: str, timings: Path, to: Path | None, force: bool, catalog: Catalog, today: str
) -> Outcome:
    """Fit a job's constants to timed runs and write them to a job file.

    `word` names a preset or a job file. The output is `to`, or the job file itself, or
    recommend.yaml for a preset. Another existing file, or a calibration, is replaced only with
    `force`.
    """
    target = to or (Path(FILE) if word in presets() else Path(word))
    job = find_job(word)
    if not force:
        _refuse_to_replace(target, own=to is None and word not in presets())
    served = job.parameter_servers if job.sync == "parameter_server" else 0
    types_known = catalog.instance_types.values()
    runs = read_runs(timings, types_known, job.global_batch, served, job.batch_per_gpu)
    types = tuple(
        catalog.instance_types[provider, name]
        for provider, _, name in (m.partition("/") for m in sorted({r.machine for r in runs}))
    )
    bare = replace(job.as_script, calibration=None, timings=())
    columns = machine_columns(bare, types, catalog.gpus, catalog.achieved)
    columns = replace(columns, part_links=part_links(types, catalog.instance_types.values()))
    _refuse(bare, runs, columns, catalog.gpus)
    found = calibrate(bare, runs, columns, tuple(t.gpu for t in types), today)
    _write(target, _text(word, found.calibration))
    prior = load_priors()[job.family, job.stack]
    return Outcome(
        job=bare,
        runs=runs,
        predicted_s=tuple(np.asarray(found.predicted_s).tolist()),
        calibration=found.calibration,
        efficiency=prior.efficiency,
        tensor_s=prior.tensor_s,
        written=target,
    )


def _refuse_to_replace(target: Path, own: bool) -> None:
    """Refuse to write over a file, unless the job's own only gets its first calibration."""
    if own and not _SECTION.search(read_text(target)):
        return
    if own:
        raise UsageError(
            f"{shown_path(target)} has a calibration; write --force to replace it, or --to FILE"
        )
    if os.path.exists(target):
        raise UsageError(f"{shown_path(target)} exists; write --force to replace it, or --to FILE")


def _refuse(
    job: Job, runs: tuple[TimedRun, ...], columns: MachineColumns, gpus: Mapping[str, Gpu]
) -> None:
    """Refuse runs that the model says cannot be: their steps would teach it nothing."""
    refused = (
        (run, above_peak(job, run.batch / run.step_s, gpus[run.gpu], run.gpus)) for run in runs
    )
    problems = [f"{run.place}: {why}" for run, why in refused if why]
    fleet = clusters(tuple(replace(run, data="") for run in runs), columns)
    for i, run in enumerate(runs):
        why = why_infeasible(as_timed(job, run.batch, run.servers), columns, fleet, i)
        if why:
            instead = "; give memory_gib_at_batch if it did run" if "GiB" in why else ""
            problems.append(f"{run.place}: cannot have run as the job says: {why}{instead}")
    refuse_all(problems)


def _text(word: str, own: Calibration) -> str:
    """The job file with its calibration; what else it says stays as it is."""
    section = calibration_text(own)
    if word in presets():
        calibrated = f"schema: recommend.job/v1\nlike: {word}\n{section}"
        job_from_text(calibrated, word)  # what is written must be readable
        return calibrated
    before = read_text(Path(word))
    text = before.replace("\r\n", "\n").rstrip("\n") + "\n"
    calibrated = _SECTION.sub("", text).rstrip("\n") + "\n" + section
    if "\r\n" in before:
        calibrated = calibrated.replace("\n", "\r\n")
    try:
        job_from_text(calibrated, shown_path(word), folder=Path(word).parent)
    except UsageError as error:
        raise UsageError(
            f"{shown_path(word)}: a calibration cannot be added to it ({error}); write the job as "
            "plain YAML, one key a line"
        ) from None
    return calibrated


def _write(path: Path, text: str) -> None:
    with writing(shown_path(path), "name another with --to"):
        replace_file(path, text.encode("utf-8"))
