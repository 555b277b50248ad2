"""How near to the multi-region optimum any policy can come.

    python -P tests/run.py tests.recommender.policies.study_zones_bounds

The market of `study_zones.py` without its dominant zone. Series are drawn from the law of each
judged half (one regime, true ages, zones independent) and the policy knows these laws: nothing
is left to learn. Next to it, on the three cheapest zones, the programme over all states of all
zones in the place of the lumped one. Needs RECOMMEND_REFERENCE_DATA; two minutes of one core.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from unittest.mock import patch

import numpy as np

from recommender.arrays import Floats
from recommender.policies import optimal
from recommender.policies.availability import AggregatedStates, Availability, Chain, chain
from recommender.policies.hindsight import optimum
from recommender.policies.optimal import MultiZone
from recommender.policies.replay import RecordedZones, replay
from recommender.policies.rules import Greedy
from recommender.policies.state import Decide, Offers, Policy, Task
from tests.recommender.policies.markets import simulated
from tests.recommender.policies.study_bounds import one_regime
from tests.recommender.policies.study_zones import TASK, market

SEEDS, FEW_SEEDS, FEW = 12, 6, 3


@dataclass(frozen=True)
class Exact:
    """The same policy with a programme over every state of every zone."""

    laws: tuple[Availability, ...]
    name: str = "exact"

    def begin(self, task: Task, zones: Offers, count: int) -> Decide:
        """No lumps: each state that occurs stands for itself."""
        with patch.object(optimal, "_aggregated", partial(_whole, zones=zones)):
            return MultiZone(self.laws).begin(task, zones, count)


def _whole(laws: Sequence[Availability], *_: object, zones: Offers) -> list[AggregatedStates]:
    return [itself(chain(law, zones.tick_s)) for law in laws]


def itself(law: Chain) -> AggregatedStates:
    """Every state that occurs, down first."""
    states = np.flatnonzero(law.usual > 1e-9)
    states = states[np.argsort(law.up[states], kind="stable")]
    member = np.zeros((len(law.up), len(states)))
    member[states, np.arange(len(states))] = 1.0
    step = law.step[np.ix_(states, states)]
    return AggregatedStates(member, step / step.sum(axis=1, keepdims=True), law.up[states])


def some(zones: RecordedZones, kept: Sequence[int]) -> RecordedZones:
    """Some zones; on-demand at the lowest price of all."""
    offers = zones.offers
    rent = np.full(len(kept), offers.on_demand_usd_per_hour.min())
    move_usd = offers.move_usd[np.ix_(kept, kept)]
    few = Offers(offers.spot_usd_per_hour[kept], rent, move_usd, offers.tick_s)
    return RecordedZones(zones.available[kept], few)


def drawn(zones: RecordedZones, laws: Sequence[Availability], seed: int) -> RecordedZones:
    """The same market with series of known law."""
    tick_s, ticks = zones.offers.tick_s, zones.ticks
    series = [simulated(law, tick_s, ticks, 77 * seed + i) for i, law in enumerate(laws)]
    return replace(zones, available=np.stack(series))


def above(zones: RecordedZones, policies: Sequence[Policy]) -> Floats:
    """How far above the optimum each policy is, as a share."""
    starts = zones.windows(TASK, 8 * 3600.0)
    best = optimum(zones, starts, TASK).mean()
    usd = [replay(policy, zones, starts, TASK).cost_usd.mean() for policy in policies]
    return np.array(usd) / best - 1.0


def show(title: str, names: Sequence[str], found: Sequence[Floats]) -> None:
    """Mean over the draws and its standard error."""
    shares = np.array(found)
    error = shares.std(axis=0, ddof=1) / np.sqrt(len(shares))
    reported = ", ".join(
        f"{name} {mean:+.1%} (± {one:.1%})"
        for name, mean, one in zip(names, shares.mean(axis=0), error, strict=True)
    )
    print(f"{title:28} {reported}", flush=True)


def main() -> None:
    """Print both bounds for gangs of eight and sixteen."""
    for nodes in (8, 16):
        of = market(nodes, ("asia-south2-b",))
        laws = [one_regime(series, of.tick_s) for series in of.judged.available]
        policies = (Greedy(), MultiZone(tuple(laws)))
        found = [above(drawn(of.judged, laws, seed), policies) for seed in range(SEEDS)]
        show(f"{of.name}, law known", ("failover", "multi-region"), found)
        up = np.array([chain(law, of.tick_s).share_up for law in laws])
        rent = of.judged.offers.on_demand_usd_per_hour.min()
        hour = up * of.judged.offers.spot_usd_per_hour + (1.0 - up) * rent
        kept = sorted(int(zone) for zone in np.argsort(hour, kind="stable")[:FEW])
        few, own = some(of.judged, kept), tuple(laws[zone] for zone in kept)
        pair = (MultiZone(own), Exact(own))
        found = [above(drawn(few, own, seed), pair) for seed in range(FEW_SEEDS)]
        show(f"{nodes} x H100, {FEW} zones, law known", ("lumped", "all states"), found)


if __name__ == "__main__":
    main()
