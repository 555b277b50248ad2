"""Random small plan spaces: a few entries, a palette of spot laws, every kind of limit."""

import itertools
from dataclasses import replace

import numpy as np

from recommender.job.job import DataSet, Job
from recommender.optimize.evaluate import (
    Plans,
    Values,
    path_inputs_of,
    plans_without_fallback,
    values_of,
)
from recommender.optimize.space import (
    Entries,
    Fallbacks,
    Site,
    Space,
    Tier,
    single_clusters,
)
from recommender.performance.clusters import MachineColumns
from recommender.plan.limits import Limits
from recommender.risk.run_statistics import OutcomeCache

PATHS = 64
# run hours, sigma, logit availability, zone sd, rho: V100, H100, an 8-GPU machine, a calm zone
LAWS = (
    (3.35, 1.48, 0.7, 1.0, 0.98),
    (1.45, 1.20, 1.2, 1.2, 0.9),
    (0.92, 1.04, 0.1, 0.8, 0.9),
    (40.0, 1.0, 4.0, 0.3, 0.9),
)


def job(**changes: object) -> Job:
    """A small convolutional network."""
    facts: dict[str, object] = {
        "name": "toy",
        "title": "toy network",
        "family": "cnn",
        "parameters": 25e6,
        "active_parameters": 25e6,
        "trainable_parameters": 25e6,
        "sample_unit": "image",
        "tokens_per_sample": 1,
        "flop_per_sample": 24e9,
        "samples": 2e8,
        "global_batch": 1024,
        "gradient_tensors": 160,
        "hidden": 0,
        "layers": 50,
        "vocabulary": 0,
        "activation_bytes_per_sample": 5e7,
        "recomputed_activation_bytes_per_sample": 1e7,
        "checkpoint_bytes": 2e8,
        "data": DataSet(),
    }
    return Job(**(facts | changes))  # type: ignore[arg-type]


def transformer(**changes: object) -> Job:
    """A decoder whose states need two of the smaller GPUs, so that cutting it can pay."""
    size = 1.5e9
    facts = {
        "family": "decoder",
        "parameters": size,
        "active_parameters": size,
        "trainable_parameters": size,
        "tokens_per_sample": 1024,
        "hidden": 2048,
        "layers": 24,
        "vocabulary": 32_000,
        "activation_bytes_per_sample": 1.7e9,
        "recomputed_activation_bytes_per_sample": 1.7e8,
    }
    return job(**(facts | changes))


def space(seed: int, entries: int = 3, most: int = 4, paths: int = PATHS) -> Space:
    """One random question; the seed decides everything."""
    rng = np.random.default_rng(seed)
    kinds = max(2, entries - 1)
    columns = _columns(rng, kinds)
    checkpoint = float(rng.choice([2e8, 2e10, 1e11]))
    network = transformer if seed % 4 == 2 else job
    toy = network(checkpoint_bytes=checkpoint, elastic=bool(rng.random() < 0.4))
    site = _site(rng, columns, entries, most)
    goal = rng.choice(["deadline", "budget", "hourly", "both", "none"])
    base = Space(
        job=toy,
        limits=Limits(max_machines=most),
        columns=columns,
        sites=(site,),
        steps_left=toy.steps,
        checkpoint_paths=(0, 1, 2, 3),
        mix=True,
        cache=OutcomeCache(paths, 7),
    )
    step = single_clusters(toy, columns, most).step_s
    fallbacks = fallbacks_of(site, step)
    hours = float(step[np.isfinite(step)].min()) * toy.steps / 3600
    price = float(site.entries.usd_per_hour.mean())
    limits = Limits(
        deadline_s=hours * 3600 * float(rng.uniform(0.8, 8))
        if goal in ("deadline", "both")
        else None,
        budget_usd=price * hours * float(rng.uniform(1, 8)) if goal in ("budget", "both") else None,
        hourly_usd=price * float(rng.uniform(0.5, 4)) if goal == "hourly" else None,
        confidence=float(rng.choice([0.5, 0.8, 0.95])),
        max_overhead=float(rng.choice([0.1, 0.3])) if rng.random() < 0.2 else None,
        max_machines=most,
    )
    site = replace(site, fallbacks=fallbacks)
    return replace(base, limits=limits, sites=(site,))


def at_the_edge(question: Space, seed: int) -> Space:
    """The question with a deadline or a budget that a good plan without limits just meets.

    One that it meets with 0.5 to 10 % to spare in as many paths as the chance asks for: there
    plans fall short by a path or two, and bounds that are a little too high cost the best plan.
    """
    rng = np.random.default_rng([seed, 1])
    free = replace(question, limits=Limits(max_machines=question.limits.max_machines))
    plans, values = oracle(free)
    worth = values.time_s if rng.random() < 0.5 else values.cost_usd
    able = np.flatnonzero(np.isfinite(worth))
    if not len(able):
        return question
    good = able[np.argsort(worth[able], kind="stable")[: 1 + int(rng.integers(4))]][-1:]
    inputs, _ = path_inputs_of(free, free.sites[0], plans.take(good))
    found = free.cache.outcomes(inputs, None)
    sure, spare = question.limits.confidence, float(rng.uniform(1.005, 1.1))
    deadline_s = spare * float(np.quantile(found.time_s[0], sure, method="higher"))
    budget_usd = spare * float(np.quantile(found.cost_usd[0], sure, method="higher"))
    which = rng.choice(["deadline", "budget", "both"])
    limits = replace(
        question.limits,
        deadline_s=deadline_s if which != "budget" else None,
        budget_usd=budget_usd if which != "deadline" else None,
        hourly_usd=None,
    )
    return replace(question, limits=limits)


def _columns(rng: np.random.Generator, kinds: int) -> MachineColumns:
    gpus = rng.choice([1.0, 1.0, 4.0, 8.0], kinds)
    each = rng.uniform(100, 2000, kinds)
    return MachineColumns(
        names=tuple(f"own/t{i}" for i in range(kinds)),
        gpus=gpus,
        compute_per_s=gpus * each,
        memory_bytes=rng.choice([1.4e10, 2.2e10, 7.3e10], kinds),
        device_bytes_per_s=np.full(kinds, 1e12),
        network_bytes_per_s=rng.choice([0.3e9, 1.2e9, 6e9, 5e10], kinds),
        network_half_bytes=rng.choice([1e6, 3e7], kinds),
        network_latency_s=np.full(kinds, 2e-4),
        intra_bytes_per_s=np.where(gpus > 1, rng.choice([1e10, 2e11], kinds), np.inf),
        prepare_per_s=np.full(kinds, np.inf),
        fetch_per_s=np.full(kinds, np.inf),
        host_bytes_per_s=gpus * 1.2e10,
        disk_bytes_per_s=np.full(kinds, 1e9),
        speed_sigma=(sigma := rng.choice([0.1, 0.25], kinds)),
        speed_sigma_several=0.35 - sigma,  # the other of the two
        speed_sigma_larger=((3, 0.9 * sigma),) if kinds % 2 else (),
        reasons=("",) * kinds,
        link_gpus=3.0 * gpus if kinds % 3 == 0 else None,
    )


def _site(rng: np.random.Generator, columns: MachineColumns, entries: int, most: int) -> Site:
    kind = rng.integers(0, len(columns.names), entries)
    spot = rng.random(entries) < 0.6
    law = np.array([LAWS[i] for i in rng.integers(0, len(LAWS), entries)])
    per_speed = rng.uniform(0.5, 1.5, entries) * 1e-3
    price = (
        per_speed * columns.compute_per_s[kind] * np.where(spot, rng.uniform(0.2, 0.8, entries), 1)
    )
    free = rng.choice([0.0, 3600.0])
    quota = rng.random() < 0.5
    ones = np.ones(entries)
    sites = float(rng.choice([1, 3]))
    patience = np.resize([0.0, 3600.0], entries)
    return Site(
        provider="own",
        region="here",
        singles=True,
        entries=Entries(
            kind=kind,
            offer=np.arange(entries),
            region=np.zeros(entries, dtype=np.int64),
            spot=spot,
            booked=np.zeros(entries, dtype=bool),
            usd_per_hour=price,
            max_usd_per_hour=price * np.where(spot, 1.0 + 0.1 * (np.arange(entries) % 3), 1.0),
            cap=rng.integers(1, 4, entries) if quota else np.full(entries, most),
            fixed_usd=ones * float(rng.choice([0.0, 2.0])),
            usd_per_move=np.where(spot, 0.1, 0.0),
            usd_per_save=np.zeros(len(spot)),
            move_after_s=np.where(spot & (sites > 1.0), patience, 0.0),
            boot_s=np.full(entries, float(rng.choice([60.0, 420.0]))),
            run_mean_s=law[:, 0] * 3600,
            run_sigma=law[:, 1],
            outage_sigma=ones * 1.3,
            availability_logit=law[:, 2],
            availability_slope=ones * 0.2,
            zone_sd=law[:, 3],
            co_interruption=law[:, 4],
            zone_count=ones * sites,
            correlation=ones * 0.2,
            runs_from_start=np.zeros(entries, dtype=bool),
            price_sigma=ones * 0.1,
            minimum_s=ones * 60,
            step_s=ones,
            maximum_s=ones * np.inf,
            free_s=np.where(spot, free, 0.0),
            notice_s=ones * float(rng.choice([30.0, 120.0])),
            at_once=np.where(spot, 1.0, 0.9),
            wait_s=np.where(spot, 0.0, 3600.0),
        ),
        fallbacks=no_fallbacks(),
        tier=Tier(
            offer=np.array([0]),
            region=np.array([0]),
            usd_per_hour=np.array([0.2]),
            memory_bytes=np.array([1.6e11]),
            network_bytes_per_s=np.array([1.5e9]),
        ),
        quota_use=np.ones((1, entries)) * rng.choice([1.0, 2.0], entries)[None],
        quota=np.array([float(rng.integers(2, 8))]) if quota else np.array([1e9]),
        store_usd_per_hour=float(rng.choice([0.0, 0.01])),
    )


def no_fallbacks() -> Fallbacks:
    """A site where nothing on demand can finish a job."""
    empty, none = np.zeros(0), np.zeros(0, dtype=np.int64)
    return Fallbacks(none, none, none, empty, empty, empty, empty, empty)


def fallbacks_of(site: Site, step: np.ndarray) -> Fallbacks:
    """On-demand machines of a site that can finish its job, ordered as in `market/fallbacks.py`."""
    rows = [
        (step[k, n - 1], k, n, o, p * n, b)
        for k, s, o, p, b, cap in zip(
            site.entries.kind,
            site.entries.spot,
            site.entries.offer,
            site.entries.usd_per_hour,
            site.entries.boot_s,
            site.entries.cap,
            strict=True,
        )
        if not s
        for n in range(1, min(step.shape[1], cap) + 1)
        if np.isfinite(step[k, n - 1])
    ]
    if not rows:
        return no_fallbacks()
    rows.sort(key=lambda row: (row[0], row[4]), reverse=True)  # of one speed the cheapest last
    t = np.array(rows)
    many = np.ones(len(rows))
    return Fallbacks(
        kind=t[:, 1].astype(np.int64),
        count=t[:, 2].astype(np.int64),
        offer=t[:, 3].astype(np.int64),
        step_s=t[:, 0],
        usd_per_hour=t[:, 4],
        boot_s=t[:, 5],
        at_once=many * 0.9,
        wait_s=many * 3600.0,
    )


def within_quota(site: Site, counts: np.ndarray) -> np.ndarray:
    """Which clusters respect every cap and quota; the last machine of a quota is usable."""
    fits = np.asarray((counts <= site.entries.cap).all(axis=1))
    if len(site.quota):
        fits &= (counts @ site.quota_use.T <= site.quota + 1e-9).all(axis=1)
    return fits


def every_cluster(site: Site, most: int) -> np.ndarray:
    """All counts of all entries that caps and quotas allow, one machine at least."""
    ranges = [range(int(min(cap, most)) + 1) for cap in site.entries.cap]
    counts = np.array(list(itertools.product(*ranges)), dtype=np.int64)
    total = counts.sum(axis=1)
    counts = counts[(total >= 1) & (total <= most)]
    return counts[within_quota(site, counts)]


def every_plan(space: Space, site: Site, counts: np.ndarray) -> Plans:
    """Every plan of these clusters: all checkpoint paths, without and with each fallback."""
    alone = plans_without_fallback(space, site, counts)
    spot = (alone.counts[:, site.entries.spot] > 0).any(axis=1)
    tried = space.limits.deadline_s is not None
    of, fallback = np.nonzero(spot[:, None] & np.full(len(site.fallbacks), tried)[None])
    return Plans(
        np.concatenate([alone.counts, alone.counts[of]]),
        np.concatenate([alone.checkpoint_path, alone.checkpoint_path[of]]),
        np.concatenate([alone.fallback, fallback]),
    )


def oracle(question: Space) -> tuple[Plans, Values]:
    """Every plan of the only site that is allowed, by the full model on the paths that decide.

    Their fallbacks take over at the last moment.
    """
    site, question = question.sites[0], question.on_printed_paths()
    plans = every_plan(question, site, every_cluster(site, question.limits.max_machines))
    inputs, allowed = path_inputs_of(question, site, plans)
    rows = np.flatnonzero(allowed)
    return plans.take(rows), values_of(question, inputs.take(rows))
