"""Plans of clusters with their closed-form rates, made once for all limits of a refusal.

Neither a deadline nor a budget changes which plans a cluster has or how they go without a fallback:
only when a fallback takes over. So questions about one value of a limit after the other share them.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import field, replace

import numpy as np

from recommender.arrays import Ints
from recommender.catalogs.frozen import dataclass
from recommender.optimize.columns import (
    Cluster,
    cluster_of_each,
    counts_table,
    fallback_rates,
)
from recommender.optimize.evaluate import (
    Plans,
    Reduced,
    fallback_drafts_of,
    plans_without_fallback,
    reduced,
    with_fallbacks,
)
from recommender.optimize.fallback_choices import fallback_choices
from recommender.optimize.renewal_rates import FallbackRates, Rates, rates, with_fallback
from recommender.optimize.search_state import Candidate
from recommender.optimize.space import Site, Space
from recommender.plan.limits import Limits
from recommender.risk.path_inputs import PathInputs


@dataclass(frozen=True, slots=True)
class RatedPlans:
    """Plans of clusters of one site with their closed-form rates; shape (plans,)."""

    index: int  # of the site
    clusters: Sequence[Cluster]
    cluster: Ints  # which of these
    checkpoint_path: Ints
    fallback: Ints
    inputs: PathInputs
    alone: Rates  # without a fallback, of the plans that differ in more than that
    of: Ints  # which of these
    terms: FallbackRates | None = None  # for a deadline of 0; None: no plan has a fallback

    def rates(self, deadline_s: float | None) -> Rates:
        """Their rates under a deadline."""
        alone = self.alone.take(self.of)
        if self.terms is None or deadline_s is None:
            return alone
        return with_fallback(alone, self.terms.due(deadline_s))

    def of_clusters(self, wanted: Collection[Cluster]) -> "RatedPlans":
        """The plans of some clusters."""
        chosen = np.array([each in wanted for each in self.clusters])[self.cluster]
        return self if chosen.all() else self._take(np.flatnonzero(chosen))

    def _take(self, rows: Ints) -> "RatedPlans":
        return replace(
            self,
            cluster=self.cluster[rows],
            checkpoint_path=self.checkpoint_path[rows],
            fallback=self.fallback[rows],
            inputs=self.inputs.take(rows),
            of=self.of[rows],
            terms=None if self.terms is None else self.terms.take(rows),
        )

    def candidate(self, row: int) -> Candidate:
        """One of the plans."""
        cluster = self.clusters[int(self.cluster[row])]
        return Candidate(
            site=self.index,
            entries=cluster.entries,
            counts=cluster.counts,
            checkpoint_path=int(self.checkpoint_path[row]),
            fallback=int(self.fallback[row]),
        )


@dataclass(frozen=True, slots=True)
class _Alone:
    """The allowed plans of clusters of one site without a fallback."""

    site: Site  # with their entries only
    plans: Plans  # shape (allowed,)
    found: Reduced  # of all plans
    allowed: Ints  # which of these
    rated: RatedPlans


@dataclass(frozen=True)
class RatedClusters:
    """The clusters of one space rated so far, under any limits."""

    alone: dict[Limits, list[_Alone]] = field(default_factory=dict)
    helped: dict[tuple[Limits, int], RatedPlans | None] = field(default_factory=dict)
    done: dict[Limits, set[Cluster]] = field(default_factory=dict)

    def plans_of(self, space: Space, clusters: Sequence[Cluster]) -> Iterator[RatedPlans]:
        """The plans of some clusters, each without a fallback and with those worth trying."""
        wanted, own = set(clusters), _for_clusters(space.limits)
        tables, done = self.alone.setdefault(own, []), self.done.setdefault(own, set())
        new = [each for each in dict.fromkeys(clusters) if each not in done]
        tables += _rated_alone(replace(space, limits=own), new)
        done |= wanted
        for number, table in enumerate(tables):
            for part in (table.rated, self._with_fallbacks(space, number, table)):
                some = None if part is None else part.of_clusters(wanted)
                if some is not None and len(some.of):
                    yield some

    def _with_fallbacks(self, space: Space, number: int, table: _Alone) -> RatedPlans | None:
        if space.limits.deadline_s is None:
            return None
        limits = _for_fallbacks(space.limits)
        if (limits, number) not in self.helped:
            rated = _rated_with_fallbacks(replace(space, limits=limits), table)
            self.helped[limits, number] = rated
        return self.helped[limits, number]


def _for_clusters(limits: Limits) -> Limits:
    """Those limits that decide which plans without a fallback are allowed."""
    return Limits(hourly_usd=limits.hourly_usd, max_machines=limits.max_machines)


def _for_fallbacks(limits: Limits) -> Limits:
    """Those limits that decide which fallbacks plans have, some deadline among them."""
    return replace(_for_clusters(limits), deadline_s=0.0, confidence=limits.confidence)


def _rated_alone(space: Space, clusters: Sequence[Cluster]) -> list[_Alone]:
    """The plans of clusters without a fallback, site by site."""
    sites: dict[int, list[Cluster]] = {}
    for cluster in clusters:
        sites.setdefault(cluster.site, []).append(cluster)
    found = (_alone_at(space, index, mine) for index, mine in sites.items())
    return [each for each in found if len(each.allowed)]


def _alone_at(space: Space, index: int, clusters: Sequence[Cluster]) -> _Alone:
    rows, counts = counts_table(clusters)
    site = space.sites[index].only(rows)
    plans = plans_without_fallback(space, site, counts)
    cluster = cluster_of_each(plans, counts)
    found = reduced(space, site, plans)
    allowed = np.flatnonzero(found.allowed)
    plans, inputs = plans.take(allowed), found.inputs.take(allowed)
    rated = RatedPlans(
        index=index,
        clusters=clusters,
        cluster=cluster[allowed],
        checkpoint_path=plans.checkpoint_path,
        fallback=plans.fallback,
        inputs=inputs,
        alone=rates(inputs),
        of=np.arange(len(allowed)),
    )
    return _Alone(site, plans, found, allowed, rated)


def _rated_with_fallbacks(space: Space, alone: _Alone) -> RatedPlans | None:
    """The plans of clusters with each fallback worth trying; None if there is none."""
    site, found, fall = alone.site, alone.found, alone.site.fallbacks
    if not len(fall):
        return None
    choices = fallback_choices(fall, found.step_s[alone.allowed], space.steps_left)
    plans, of = with_fallbacks(space, site, alone.plans, choices)
    inputs, allowed = fallback_drafts_of(space, site, plans.fallback, alone.allowed[of], found)
    some = np.flatnonzero(allowed)
    if not len(some):
        return None
    plans, of = plans.take(some), of[some]
    return replace(
        alone.rated,
        cluster=alone.rated.cluster[of],
        checkpoint_path=plans.checkpoint_path,
        fallback=plans.fallback,
        inputs=inputs.take(some),
        of=of,
        terms=fallback_rates(space, site, found, alone.allowed[of], plans.fallback),
    )
