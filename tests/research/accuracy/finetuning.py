"""Fine-tuning as most people do it: small micro-batches, adapters, 4-bit weights, one machine.

`data/finetuning.csv` holds 267 steps that tools and laboratories published with their micro-batch
(2023-09 to 2026-07). Rules: every row of a table with a network, GPU, method, micro-batch, tokens
and time, on one machine, without offload to the host, with LoRA or all weights, on GPUs of the
catalog. Left out are therefore tables that state a data set but not its tokens (ms-swift's, and
litgpt's on A10G), machines whose links the source calls slow without a figure (two RTX 3090 under
FSDP), and 4-bit weights that are multiplied in 32 bits (universal-llm-trainer, where they take more
memory than 16 bits).
`length`: exact, packed or padded as the source says, mean, or estimated (Alpaca with its prompt). A
first look at the errors of ten of the first eleven sources preceded the last two rules. IBM's and
LLaMA-Factory's tables (2026-11-29) were predicted before anything was chosen on them; IBM's rows
with kernels that no job states (foak, liger) are left out. `attention`: what a job must state.
universal-llm-trainer fills sequences that it padded, whose mask it keeps (its `gpu_test`,
v1.6.4), which was found by looking at the errors of its rows.

A job states what its user knows: network, method, rank, tokens, micro-batch, recomputation,
sharding and tool. Of the law's constants, the time to start the kernels of a layer is that of other
sources (`overheads.py`; fitted here 1.03 times as much). The other two are fitted on adapters of
all sources but one, and so is the spread. Both are printed by

    python -P tests/run.py tests.research.accuracy.finetuning
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from recommender.arrays import Floats
from recommender.catalogs.schema import InstanceType
from recommender.inputs.own_hardware import Links, bare, links, reference
from recommender.inputs.training_software import software
from recommender.job.job import Job
from recommender.job.jobfile import job_from_text
from recommender.performance.clusters import Clusters, clusters_of
from recommender.performance.machines import machine_columns
from recommender.performance.priors import Prior, prior_of
from recommender.performance.speed_spread import adapters_sd
from recommender.performance.step import terms_of
from recommender.plan.accuracy import Score, Target
from tests.research.accuracy.splits import check, splits_of
from tests.research.accuracy.study import Held, Study, score
from tests.research.accuracy.tables import table
from tests.research.fits.held_out import conformal, without
from tests.shipped import snapshot

CONSTANTS = ("gathered_launch_s", "quantized_bytes")  # of adapters; of full training the first
FACTORS = np.geomspace(0.25, 4.0, 97)  # of a shipped constant that are tried
ROUNDS = 8  # of one constant after the other
ROOM = 3.0  # times the memory: micro-batches are known to have fitted
FIGURES = ("params", "lookup_params", "hidden", "layers", "vocab", "heads")


@dataclass(frozen=True, slots=True)
class Tuning:
    """One published step, with what is predicted for it."""

    source: str
    label: str
    job: Job
    fleet: Clusters
    sigma: float  # of one machine, as answers have it without what adapters add
    seconds: float

    def predicted_s(self, factors: Floats) -> float:
        """Seconds of a step with multiples of the shipped constants."""
        scaled = scaled_prior(prior_of(self.job), factors)
        return float(terms_of(self.job, scaled, self.fleet).step_s.min())


def scaled_prior(prior: Prior, factors: Floats) -> Prior:
    """A prior with other constants of fine-tuning: two of adapters, and one of full training."""
    values = zip(CONSTANTS, factors[:2] if prior.adapters else (factors[2], 1.0), strict=True)
    return replace(prior, **{name: getattr(prior, name) * float(by) for name, by in values})


@cache
def tunings() -> tuple[Tuning, ...]:
    """Every published step."""
    return tuple(map(_tuning, table("finetuning")))


def _tuning(row: Mapping[str, str]) -> Tuning:
    job, machine, catalog = job_of(row), _machine(row), snapshot()
    columns = machine_columns(job, (machine,), catalog.gpus, catalog.achieved)
    columns = replace(columns, memory_bytes=ROOM * columns.memory_bytes)
    return Tuning(
        source=row["source"],
        label=f"{row['network']}, {row['method']}, {row['tokens']} tokens, {row['gpu']}",
        job=job,
        fleet=clusters_of(columns, np.array([[1]])),
        sigma=float(np.sqrt(columns.speed_sigma[0] ** 2 - adapters_sd(job) ** 2)),
        seconds=float(row["seconds"]),
    )


def job_of(row: Mapping[str, str]) -> Job:
    """The job file that the user of a published step would write."""
    own = next((n for n in table("finetuning_networks") if n["network"] == row["network"]), None)
    lines = [f"model: {row['network']}"]
    if own:
        lines = ["family: decoder", "gated: yes", *(f"{name}: {own[name]}" for name in FIGURES)]
    samples = int(row["micro_batch"]) * int(row["accumulation"]) * int(row["gpus"])
    known = row["software"] if row["software"] in software() else "transformers"
    lines += ["schema: recommend.job/v1", f"method: {row['method']}", f"stack: {known}"]
    lines += [f"seq_len: {row['tokens']}", f"batch: {samples}", "steps: 1000"]
    lines += [f"micro_batch: {row['micro_batch']}"]
    lines += [f"lora_rank: {row['rank']}"] if row["rank"] else []
    lines += ["recomputation: full"] if row["recomputation"] == "full" else []
    lines += [f"sharding: {row['sharding']}"] if row["sharding"] != "auto" else []
    lines += [f"attention: {row['attention']}"] if row["attention"] else []
    return job_from_text("\n".join(lines))


def _machine(row: Mapping[str, str]) -> InstanceType:
    """A user's own machine with the GPUs of a row; those of workstations have no NVLink."""
    gpu, gpus, known = row["gpu"], int(row["gpus"]), snapshot().instance_types.values()
    found = reference(gpu, gpus, known) or bare(gpu, gpus)
    found = replace(found, gpu_memory_mib=snapshot().gpus[gpu].memory_mib)
    between = links(found, Links("pcie" if gpu.startswith("RTX") else "", None), known, "row")
    return replace(found, intra_kind=between.kind, intra_gb_per_s=between.gb_per_s)


def fitted(runs: Sequence[Tuning]) -> Floats:
    """The factors on the shipped constants with the least error in ln of steps.

    A source weighs the square root of its runs. Steps of adapters are linear in the constants but
    for what hides communication, so each is predicted once with and once without one.
    """
    used = [run for run in runs if run.job.method != "full"]
    base = np.array([run.predicted_s(np.zeros(3)) for run in used])
    parts = np.array([[run.predicted_s(one) for run in used] for one in np.eye(3)[:2]]) - base
    took, weight = np.array([run.seconds for run in used]), _weights(used)
    factors = np.ones(2)
    for _ in range(ROUNDS):
        for at in range(2):
            tried = np.repeat(factors[None], len(FACTORS), axis=0)
            tried[:, at] = FACTORS
            missed = np.abs(np.log((base + tried @ parts) / took)) @ weight
            factors = tried[int(missed.argmin())]
    return np.append(factors, _fitted_full([run for run in runs if run.job.method == "full"]))


def _fitted_full(runs: Sequence[Tuning]) -> float:
    """The same of the one constant of sharded full training, which arithmetic may hide."""
    steps = full_steps()
    missed = np.abs([np.log(steps[run.label, run.seconds] / run.seconds) for run in runs])
    return float(FACTORS[int((_weights(runs) @ missed).argmin())])


@cache
def full_steps() -> Mapping[tuple[str, float], Floats]:
    """Predicted steps of full training by what is predicted, with each factor that is tried."""
    runs = [run for run in tunings() if run.job.method == "full"]
    each = [np.append(np.ones(2), factor) for factor in FACTORS]
    return {(r.label, r.seconds): np.array([r.predicted_s(at) for at in each]) for r in runs}


def _weights(runs: Sequence[Tuning]) -> Floats:
    names = [run.source for run in runs]
    return np.array([names.count(name) ** -0.5 for name in names])


@cache
def left_out(*sources: str) -> Floats:
    """ln(true / predicted) speed of the first source, from runs of none of them."""
    factors = fitted([run for run in tunings() if run.source not in sources])
    mine = [run for run in tunings() if run.source == sources[0]]
    return np.array([np.log(run.predicted_s(factors) / run.seconds) for run in mine])


@cache
def added_sd(*also: str) -> float:
    """What 90 % of the errors of sources left out need next to the spread of answers.

    By the rule of the other spreads (`held_out.conformal`); `also` are neither seen nor judged.
    """
    names = [name for name in sources() if name not in also]
    known = {name: np.array([r.sigma for r in tunings() if r.source == name]) for name in names}
    parts = [without(left_out(name, *also), known[name]) for name in names]
    return conformal(parts, [np.full(len(part), len(part) ** -0.5) for part in parts])


def sources() -> tuple[str, ...]:
    """The frozen parts."""
    for split in splits_of("finetuning"):
        check(split, sum(run.source == split.left_out for run in tunings()))
    return tuple(split.left_out for split in splits_of("finetuning"))


def held() -> Held:
    """Steps/s of every source, predicted without it."""
    order = [run for name in sources() for run in tunings() if run.source == name]
    errors = np.concatenate([left_out(name) for name in sources()])
    rate = np.array([1.0 / run.seconds for run in order])
    nested = [added_sd(run.source) * (run.job.method != "full") for run in order]
    sigma = np.hypot([run.sigma for run in order], nested)
    return Held(tuple(run.label for run in order), rate * np.exp(-errors), rate, sigma)


def _score() -> Score:
    return score(held())


STUDIES: tuple[Study, ...] = (
    Study(
        key="finetuning",
        subject="speed of fine-tuning with a stated micro-batch, adapters and all weights",
        split="one laboratory left out of the fit",
        target=Target(mean=20.0, median=16.0),
        published="this recommender before, on 166 of these: 94, 59 %",
        source="13 laboratories' and tools' tables, 2023-09 to 2026-07: data/finetuning.csv",
        run=lambda _: _score(),
    ),
)


def main() -> None:
    """Print the constants and the spread, with each source left out."""
    print("all", *(f"{x:.3f}" for x in fitted(tunings())), f"sd {added_sd():.2f}")
    for name in sources():
        rest = [run for run in tunings() if run.source != name]
        missed = np.expm1(-left_out(name)) * 100.0
        found = f"mean {np.abs(missed).mean():.1f} median {np.median(np.abs(missed)):.1f}"
        print(name, *(f"{x:.3f}" for x in fitted(rest)), found, f"bias {np.median(missed):+.1f} %")


if __name__ == "__main__":
    main()
