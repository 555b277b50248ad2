"""Many simulated users calibrate; their true steps lie where plans say, nine times of ten.

The users' machines follow formulas of this file (docs/models.md, "The formulas": compute, DDP,
late), with constants of their own and runs that scatter by 3 %. Whether spans are too wide is
no question for such tidy users: published runs answer it (`recommend accuracy`).
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from recommender.job.job import TimedRun
from recommender.performance.calibration import calibrate
from recommender.performance.clusters import spread_of
from recommender.performance.priors import load_priors
from recommender.performance.step import steps
from tests.recommender.optimize.samples import sampled
from tests.recommender.performance.parts import G4DN, P3, clusters, columns, resnet

TYPES = (G4DN, P3)  # T4 timed, V100 not; one GPU a machine, TCP
GPU_OF = tuple(t.gpu for t in TYPES)
JOB = resnet(sharding="ddp")  # 102 MB of gradients in 4 bytes each
USERS = 60
SCATTER = 0.03
TIMED = ((1,), (1, 2), (1, 2, 4), (1, 2, 4, 8))


@dataclass(frozen=True)
class Truth:
    """What one user's machines really do."""

    sample_s: tuple[float, float]  # of one GPU of either type
    batch_penalty: float
    tensor_s: float
    network_bytes_per_s: tuple[float, float]
    latency_s: float
    overlap: float
    late: float

    def step_s(self, kind: int, machines: int, batch: int) -> float:
        """Data parallel, one GPU a machine; the test's GPUs hold any batch of 64 a GPU."""
        each = np.ceil(batch / machines)
        rounds = np.ceil(each / MICRO)
        busy = (each + rounds * self.batch_penalty) * self.sample_s[kind]
        busy += rounds * self.tensor_s * JOB.gradient_tensors
        sent = 2 * (machines - 1) / machines * 4 * JOB.trainable_parameters
        wire = sent / self.network_bytes_per_s[kind] + self.latency_s * np.log2(machines)
        hidden = self.overlap * 2 / 3 * busy / rounds
        return float(busy * (1 + self.late * np.log2(machines)) + max(wire - hidden, 0.0))


def micro_batch() -> float:
    found = columns(JOB, TYPES)
    return float(steps(JOB, found, clusters(found, {0: 1})).micro_batch[0])


MICRO = micro_batch()


def truth_of(rng):
    prior, found = load_priors()["cnn", "typical"], columns(JOB, TYPES)
    job = np.exp(rng.normal(0, 0.2))
    sample_s = tuple(job * np.exp(rng.normal(0, 0.15, 2)) / found.compute_per_s)
    share = rng.uniform(0.5, 1.5)
    return Truth(
        sample_s=sample_s,
        batch_penalty=prior.batch_penalty * np.exp(rng.normal(0, 0.3)),
        tensor_s=prior.tensor_s * np.exp(rng.normal(0, 0.5)),
        network_bytes_per_s=tuple(share * found.network_bytes_per_s),
        latency_s=5e-4 * np.exp(rng.normal(0, 1.5)),
        overlap=rng.uniform(0.0, 0.2),
        late=rng.uniform(0.0, 0.01),
    )


def off_by(rng, sizes):
    """ln(true / predicted) in sd as printed: of one machine, doublings, and another GPU."""
    truth, batch, found = truth_of(rng), JOB.global_batch, columns(JOB, TYPES)
    runs = tuple(
        TimedRun(f"line {n}", found.names[0], GPU_OF[0], n, n, batch,
            truth.step_s(0, n, batch) * float(np.exp(rng.normal(0, SCATTER))))
        for n in sizes
    )  # fmt: skip
    own = calibrate(JOB, runs, found, GPU_OF, "2026-11-21").calibration
    job = replace(JOB, calibration=own)
    plans = columns(job, TYPES)
    asked = [(0, 1), *((0, 2**i * sizes[-1]) for i in (1, 2, 3)), (1, 1), (1, 4)]
    missed = []
    for kind, machines in asked:
        reported = steps(job, plans, clusters(plans, {kind: machines})).step_s[0]
        counts = np.zeros((1, 2), dtype=np.int64)
        counts[0, kind] = machines
        spread = spread_of(plans, np.arange(2), counts)[0]
        missed.append(np.log(truth.step_s(kind, machines, batch) / reported) / spread)
    return missed


@pytest.mark.parametrize("sizes", sampled(TIMED, TIMED[1:2]))
def test_spans_hold_the_true_steps_of_calibrated_users(sizes):
    rng = np.random.default_rng(len(sizes))
    inside = np.abs([off_by(rng, sizes) for _ in range(USERS)]) <= 1.645
    assert inside.mean() >= 0.85
    # Of one machine, twice, four and eight times the most that were timed, another GPU, four.
    assert (inside.mean(axis=0) >= 0.8).all(), inside.mean(axis=0)
