"""No mix of any region beats the bound of all regions as one."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.optimize.merged_regions import min_mix_goal, of_all_regions
from recommender.optimize.space import Entries, Site, Space
from tests.recommender.optimize.palette import (
    at_the_edge,
    evaluate,
    every_cluster,
    every_plan,
    fallbacks_of,
    single_steps,
    space,
)
from tests.recommender.optimize.samples import one_in, sampled

ROUNDING = 1e-3
CHUNKS, PER_CHUNK = 8, 30
ENOUGH = 10**5


def question(seed: int) -> Space:
    asked = space(seed, entries=2 + seed % 3, most=4)
    return at_the_edge(asked, seed) if seed % 5 == 4 else asked


def regions(asked: Space, seed: int) -> list[Site]:
    """Three regions with the same machines, at prices and with capacity of their own."""
    site, rng, found = asked.sites[0], np.random.default_rng([seed, 2]), []
    for _ in range(3):
        e, order = site.entries, rng.permutation(len(site.entries))
        drawn = {
            "usd_per_hour": e.usd_per_hour * rng.uniform(0.7, 1.4, len(e)),
            "boot_s": np.full(len(e), float(rng.choice([60.0, 420.0]))),
            "zone_count": np.full(len(e), float(rng.choice([1.0, 2.0, 4.0]))),
            "correlation": np.full(len(e), float(rng.choice([0.1, 0.5]))),
        }
        laws = ("run_mean_s", "run_sigma", "outage_sigma", "availability_logit", "zone_sd")
        other = replace(e, **drawn, **{name: getattr(e, name)[order] for name in laws})
        here = replace(other, max_usd_per_hour=other.usd_per_hour)
        local = replace(site, entries=here)
        step = single_steps(asked.job, asked.columns, asked.limits.max_machines)
        found.append(replace(local, fallbacks=fallbacks_of(local, step)))
    # The fallbacks of a provider are those of its cheapest region.
    return [replace(local, fallbacks=found[0].fallbacks) for local in found]


def provider(local: list[Site]) -> Site:
    """All regions in one site, as the bound reads them."""
    entries = Entries(
        *(np.concatenate([getattr(s.entries, n) for s in local]) for n in Entries.__slots__)
    )
    use = np.concatenate([s.quota_use for s in local], axis=1)
    return replace(local[0], entries=entries, quota_use=use)


def best_mix(asked: Space, local: list[Site]) -> float:
    """Looking at every plan of every cluster of several entries in each region."""
    best = np.inf
    for site in local:
        counts = every_cluster(site, asked.limits.max_machines)
        counts = counts[(counts > 0).sum(axis=1) > 1]
        if len(counts):
            here = replace(asked, sites=(site,))
            plans = every_plan(here, site, counts)
            best = min(best, float(evaluate(here, site, plans).goal_value.min(initial=np.inf)))
    return best


def alike(site: Site) -> bool:
    """Whether a type stands in a market once: in a region there are no two."""
    e = site.entries
    return len(np.unique(e.kind * 2 + e.spot)) == len(e)


@pytest.mark.parametrize("objective", sampled(("auto", "time"), ("auto",)))
@pytest.mark.parametrize("chunk", one_in(8, CHUNKS))
def test_no_mix_of_any_region_is_below_the_bound_of_all(chunk: int, objective: str) -> None:
    tight = 0
    for seed in range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK):
        asked = question(seed)
        if not alike(asked.sites[0]):
            continue
        asked = replace(asked, limits=replace(asked.limits, objective=objective))  # type: ignore[arg-type]
        local = regions(asked, seed)
        asked = replace(asked, sites=(local[0],))
        best = best_mix(asked, local)
        if not np.isfinite(best):
            continue
        for sets in (0, 3, ENOUGH):
            for cutoff in (best * (1.0 + ROUNDING), 1.5 * best):
                least = min_mix_goal(asked, [provider(local)], cutoff, sets)
                assert least <= best * (1.0 + ROUNDING), (seed, sets)
        tight += least > 0.5 * best
    assert tight > 0


def test_where_no_mix_is_below_the_cutoff_the_cutoff_is_the_bound() -> None:
    for seed in range(40):
        asked = question(seed)
        cutoff = 1e-9
        assert min_mix_goal(asked, asked.sites, cutoff, ENOUGH) == cutoff


def test_a_merged_site_has_the_best_of_each_machine() -> None:
    asked = next(q for q in map(question, range(40)) if alike(q.sites[0]))
    local = regions(asked, 1)
    merged = of_all_regions(provider(local)).entries
    first = local[0].entries
    for row in range(len(merged)):
        same = (first.kind == merged.kind[row]) & (first.spot == merged.spot[row])
        place = int(np.flatnonzero(same)[0])
        prices = [site.entries.usd_per_hour[place] for site in local]
        chances = [site.entries.availability_logit[place] for site in local]
        assert merged.usd_per_hour[row] == min(prices)
        assert merged.availability_logit[row] == max(chances)
