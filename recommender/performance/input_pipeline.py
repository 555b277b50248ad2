"""The cost of the input pipeline, from runs on synthetic, cached and cold data.

Differential runs on one machine (DS-Analyzer, VLDB 2021; Stash, ICDCS 2023): T0 synthetic on one
GPU, T1 synthetic on all, T3 on cached data, T2 on cold data, in seconds per step. T1 - T0 is the
interconnect's share, T3 - T1 that of preparation and T2 - T3 that of fetching. The stages of the
input are pipelined and the slowest sets the pace, so a step that is longer than without input *is*
the time of that input: prepare = batch / T3, fetch = batch / T2.
"""

from dataclasses import replace

import numpy as np

from recommender.arrays import Floats
from recommender.job.job import InputRates, TimedRun
from recommender.performance.clusters import MachineColumns

LONGER = 1.05  # times the step without that input: less is noise, and bounds the rate from below


def feeds_of(
    runs: tuple[TimedRun, ...], free_s: Floats, columns: MachineColumns
) -> tuple[InputRates, ...]:
    """Preparation and fetching rates of every timed type, samples/s of one machine.

    `free_s` (runs,): the model's step of each run without input; a synthetic run of the same shape
    is preferred. A run that does not wait for input gives a lower bound of the rates.
    """
    free = {run.place: _measured(run, runs, float(s)) for run, s in zip(runs, free_s, strict=True)}
    found = []
    for name in dict.fromkeys(run.machine for run in runs if run.data != "synthetic"):
        kind = columns.names.index(name)
        own = [run for run in runs if run.machine == name and run.data != "synthetic"]
        seen = max(_rate(run) for run in own)
        waiting = [r for r in own if r.data == "cached" and r.step_s > LONGER * free[r.place]]
        shipped = float(columns.prepare_per_s[kind]), float(columns.fetch_per_s[kind])
        prepare = _mean(waiting, max(shipped[0], seen))
        cold = [
            run
            for run in own
            if run.data == "cold"
            and run.step_s > LONGER * max(free[run.place], run.batch / prepare / run.machines)
        ]
        fetch = _mean(cold, max(shipped[1], seen))
        if (prepare, fetch) != shipped:
            found.append(InputRates(name, prepare, fetch))
    return tuple(found)


def with_feeds(feeds: tuple[InputRates, ...], columns: MachineColumns) -> MachineColumns:
    """Apply the input rates of the timed types to columns."""
    prepare, fetch = columns.prepare_per_s.copy(), columns.fetch_per_s.copy()
    for feed in feeds:
        if feed.machine in columns.names:
            kind = columns.names.index(feed.machine)
            prepare[kind], fetch[kind] = feed.prepare_per_s, feed.fetch_per_s
    return replace(columns, prepare_per_s=prepare, fetch_per_s=fetch)


def _measured(run: TimedRun, runs: tuple[TimedRun, ...], otherwise: float) -> float:
    """The step of the same cluster on synthetic data."""
    same = [
        r.step_s
        for r in runs
        if r.data == "synthetic"
        and (r.machine, r.machines, r.gpus, r.batch)
        == (run.machine, run.machines, run.gpus, run.batch)
    ]
    return float(np.mean(same)) if same else otherwise


def _rate(run: TimedRun) -> float:
    """Samples/s of each machine of a run."""
    return run.batch / run.step_s / run.machines


def _mean(runs: list[TimedRun], otherwise: float) -> float:
    return float(np.exp(np.mean([np.log(_rate(r)) for r in runs]))) if runs else otherwise
