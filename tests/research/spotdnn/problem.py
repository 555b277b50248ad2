"""spotDNN's quota problem: seven GPU types of Table III, ten machines of each.

Prices: spotDNN (IWQoS 2023), Table III, us-east-1b, January 2023 (icloud-ecnu/spotDNN). The
machines and GPUs are those of the shipped catalog, speeds those of our throughput model; spot
is never taken away, as in spotDNN's optimisation.
"""

import numpy as np

from recommender.job.job import Job
from recommender.optimize.evaluate import Plans, path_inputs_of, values_of
from recommender.optimize.space import OBJECT_STORE, Entries, Site, Space, Tier
from recommender.performance.machines import machine_columns
from recommender.plan.limits import Limits
from recommender.risk.run_statistics import OutcomeCache
from tests.recommender.optimize.palette import job, no_fallbacks
from tests.shipped import snapshot

SPOT_USD = {
    "p3.2xlarge": 1.25,
    "p2.8xlarge": 2.16,
    "g4dn.12xlarge": 1.22,
    "g4dn.4xlarge": 0.36,
    "g3.16xlarge": 1.37,
    "g3.8xlarge": 0.69,
    "g3.4xlarge": 0.34,
}
QUOTA = 10  # machines of each type
HOUR = 3600.0


def training(**changes: object) -> Job:
    """ResNet-50 in 32 bits, 90 epochs of ImageNet, batch 32 per GPU of the largest cluster."""
    facts: dict[str, object] = {
        "precision": "fp32",
        "samples": 90 * 1.281e6,
        "global_batch": 32 * 256,
        "sharding": "ddp",
        "fault_rate_per_hour": 0.0,
    }
    return job(**(facts | changes))


def problem(
    limits: Limits, quota: int = QUOTA, types: tuple[str, ...] = tuple(SPOT_USD), **changes: object
) -> Space:
    """The plan space: one site, one spot entry per type, `quota` machines of each."""
    known, network = snapshot(), training(**changes)
    machines = [known.instance_types["aws", name] for name in types]
    columns = machine_columns(network, machines, known.gpus, known.achieved)
    return Space(
        job=network,
        limits=limits,
        columns=columns,
        sites=(_site(types, quota),),
        steps_left=network.steps,
        checkpoint_paths=(1,),
        mix=True,
        cache=OutcomeCache(256, 7),
    )


def goals(space: Space, counts: np.ndarray) -> np.ndarray:
    """Goal of each cluster with checkpoints in the object store; inf if a limit is missed."""
    stored, none = np.full(len(counts), OBJECT_STORE), np.full(len(counts), -1)
    inputs, allowed = path_inputs_of(space, space.sites[0], Plans(counts, stored, none))
    goal = np.full(len(counts), np.inf)
    rows = np.flatnonzero(allowed)
    goal[rows] = values_of(space, inputs.take(rows)).goal_value
    return goal


def _site(types: tuple[str, ...], quota: int) -> Site:
    count = len(types)
    ones, none = np.ones(count), np.zeros(0, dtype=np.int64)
    return Site(
        provider="aws",
        region="us-east-1",
        singles=True,
        entries=Entries(
            kind=np.arange(count),
            offer=np.arange(count),
            region=np.zeros(count, dtype=np.int64),
            spot=np.ones(count, dtype=bool),
            booked=np.zeros(count, dtype=bool),
            usd_per_hour=np.array([SPOT_USD[name] for name in types]),
            max_usd_per_hour=np.array([SPOT_USD[name] for name in types]),
            cap=np.full(count, quota),
            fixed_usd=0.0 * ones,
            usd_per_move=0.0 * ones,
            usd_per_save=0.0 * ones,
            move_after_s=0.0 * ones,
            boot_s=120.0 * ones,
            run_mean_s=1e12 * ones,
            run_sigma=ones,
            outage_sigma=ones,
            availability_logit=25.0 * ones,
            availability_slope=0.0 * ones,
            zone_sd=0.0 * ones,
            co_interruption=ones,
            zone_count=ones,
            correlation=0.0 * ones,
            runs_from_start=np.ones(count, dtype=bool),
            price_sigma=0.0 * ones,
            minimum_s=60.0 * ones,
            step_s=ones,
            maximum_s=np.inf * ones,
            free_s=0.0 * ones,
            notice_s=120.0 * ones,
            at_once=ones,
            wait_s=0.0 * ones,
        ),
        fallbacks=no_fallbacks(),
        tier=Tier(none, none, np.zeros(0), np.zeros(0), np.zeros(0)),
        quota_use=np.zeros((0, count)),
        quota=np.zeros(0),
        store_usd_per_hour=0.0,
    )
