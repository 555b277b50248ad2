"""Well-known whole training runs: GPU-hours from the first to the last token.

The runs, and what is stated of each, were written down before any was predicted
(`data/whole_runs.csv`, 2026-11-23). The recommender is given the network, the tokens, the batch,
the stack and the cluster, but nothing about the run's speed. Since 2026-11-26 also, in the words of
a job file, the sharding and whether every layer was recomputed, for every run whose authors or
published code state it (four runs; `auto` for the others). Published hours include restarts,
evaluations and discarded work; the prediction adds faults at the rate that answers assume (one in
6,250 hours of a machine: the 419 of Llama 3.1, arXiv 2407.21783), each with the restart, the
restore and the lost work of an answer.

Spans include the spread that long runs have in addition to their steps, estimated on all other runs
(`fitted_sd`); the one that ships is estimated on all of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import numpy as np

from recommender.job.job import Job, long_run_share
from recommender.market.offer_facts import Facts
from recommender.optimize.evaluate import RENDEZVOUS_S
from recommender.performance.checkpoint import best_interval, object_store, progress, transfer_of
from recommender.performance.clusters import Clusters, clusters_of, spread_of
from recommender.performance.machines import machine_columns
from recommender.performance.step import steps
from recommender.plan.accuracy import Score, Target
from recommender.plan.limits import Choice
from tests.research.accuracy.study import Held, Study, score
from tests.research.accuracy.tables import table
from tests.shipped import snapshot

MACHINES = {"A100": "p4d.24xlarge", "A100-80GB": "p4de.24xlarge", "H100": "p5.48xlarge"}
PER_MACHINE = 8
NOW = datetime(2026, 11, 21, tzinfo=UTC)  # of the catalog's prices, which play no part
RUN_SIGMA = 1.0  # of the law of runs that only faults end, as in `evaluate.gang_of`


def job_of(row: Mapping[str, str]) -> Job:
    """The job of a run."""
    parameters, hidden, layers = float(row["parameters"]), int(row["hidden"]), int(row["layers"])
    tokens, each = int(row["tokens_per_sample"]), float(row["tokens_per_sample"]) * hidden
    multiplied = parameters - float(row["vocabulary"]) * hidden  # the embedding is looked up
    flop = 6.0 * multiplied * tokens + 6.0 * hidden * layers * float(tokens) ** 2
    return Job(
        name="run",
        title=row["run"],
        family="decoder",
        parameters=parameters,
        active_parameters=parameters,
        trainable_parameters=parameters,
        sample_unit="sequence",
        tokens_per_sample=tokens,
        flop_per_sample=flop,
        samples=float(row["tokens"]) / tokens,
        global_batch=round(float(row["batch_tokens"]) / tokens),
        gradient_tensors=9 * layers + 3,
        hidden=hidden,
        layers=layers,
        vocabulary=int(row["vocabulary"]),
        activation_bytes_per_sample=34.0 * each * layers,
        recomputed_activation_bytes_per_sample=(2.0 * layers + 34.0) * each,
        checkpoint_bytes=14.0 * parameters,
        asynchronous_save=True,  # as an answer assumes of decoders
        stack="tuned" if row["stack"] == "tuned" else "typical",
        sharding=row["sharding"],  # type: ignore[arg-type]
        recomputation=row["recomputation"],  # type: ignore[arg-type]
    )


@dataclass(frozen=True, slots=True)
class RunHours:
    """GPU-hours of a run."""

    predicted: float  # infinite where no layout fits
    published: float
    step_sd: float  # sd of ln of the steps alone
    share: float  # of the spread of a long run that it has

    @property
    def missed(self) -> float:
        """ln(predicted / published)."""
        return float(np.log(self.predicted / self.published))


@cache
def hours() -> tuple[RunHours, ...]:
    """Every run, as predicted and as published."""
    return tuple(
        RunHours(*predicted(row), long_run_share(job_of(row).total_flop))
        for row in table("whole_runs")
    )


def fitted_sd(runs: Iterable[RunHours]) -> float:
    """Sd of ln hours that long runs show in addition to that of their steps.

    By the method of moments: what their mean square error exceeds the mean variance of the steps.
    """
    excess = [run.missed**2 - run.step_sd**2 for run in runs if run.share == 1.0]
    return float(np.sqrt(max(np.mean(excess), 0.0)))


def predicted(row: Mapping[str, str]) -> tuple[float, float, float]:
    """GPU-hours of a run, those published, and the sd of ln of its steps."""
    job, catalog, gpus = job_of(row), snapshot(), int(row["gpus"])
    machine = catalog.instance_types["aws", MACHINES[row["gpu"]]]
    machine = replace(machine, network_gbit_per_s=float(row["network_gbit_per_s"]))
    short = replace(job, samples=float(job.global_batch))
    columns = machine_columns(short, (machine,), catalog.gpus, catalog.achieved)
    counts = np.array([[gpus // PER_MACHINE]])
    fleet = clusters_of(columns, counts)
    taken = float(steps(job, columns, fleet).step_s[0]) * job.run_steps / 3600.0
    taken /= goodput(
        job, fleet, Facts(catalog, Choice(), job, NOW).boot_s(machine.provider, machine.gpus)
    )
    spread = float(spread_of(columns, np.zeros(1, dtype=np.int64), counts)[0])
    return taken * gpus, float(row["gpu_hours"]), spread


def goodput(job: Job, fleet: Clusters, boot_s: float) -> float:
    """Share of the time that faults of its machines leave a cluster for work that is not lost."""
    saves = object_store(job, fleet, 0.0, transfer_of("own"))
    mean_s = 3600.0 / (job.fault_rate_per_hour * fleet.machines)
    law = mean_s, np.full_like(mean_s, RUN_SIGMA), boot_s + RENDEZVOUS_S + saves.restore_s
    between = best_interval(*law, saves.stall_s, saves.transfer_s, saves.notice_saves)
    kept = progress(between, *law, saves.stall_s, saves.notice_saves) / mean_s
    return float(kept[0] if np.isfinite(kept[0]) else 1.0)


def held(_: Path | None = None) -> Held:
    """Every run next to its published hours."""
    runs = hours()
    left_out = [fitted_sd(other for other in runs if other is not run) for run in runs]
    return Held(
        tuple(row["run"] for row in table("whole_runs")),
        np.array([run.predicted for run in runs]),
        np.array([run.published for run in runs]),
        np.array([np.hypot(r.step_sd, r.share * sd) for r, sd in zip(runs, left_out, strict=True)]),
    )


def _score(reference: Path | None) -> Score:
    return score(held(reference))


STUDIES: tuple[Study, ...] = (
    Study(
        key="runs-whole",
        subject="GPU-hours of published training runs, nothing measured",
        split="nothing fitted on these runs but their spread, one run left out; inputs frozen",
        target=Target(near=1.0),
        published="none known",
        source="llm.c, TinyLlama, Llama 1 to 3.1, OPT, BLOOM: as their authors state them",
        run=_score,
    ),
)
