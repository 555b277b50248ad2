"""The value of deflatable machines: slowed down under pressure instead of being reclaimed.

No cloud sells a deflatable GPU machine; the class says what one would be worth. A machine is
under pressure a share φ of the time, in episodes, and then runs at 1 - δ of its speed
(Fuerst et al., Cloud-scale VM Deflation, HPDC'20, arXiv 2006.00508; Sharma et al., Resource
Deflation, EuroSys'19, for DNN training). Nothing is lost and nothing restarts; synchronous
training goes at the speed of its slowest worker, so a gang of n is whole (1 - φ)^m of the time,
m = 1 + (n - 1)(1 - ρ) machines that come under pressure on their own.

For the engine that is an elastic cluster: while the gang is not whole it trains at 1 - δ, and
every second is paid.
"""

from dataclasses import replace

import numpy as np

from recommender.catalogs.frozen import dataclass
from recommender.risk.path_inputs import PathInputs

MIN_RUN_S = 1.0


@dataclass(frozen=True, slots=True)
class Deflatable:
    """The market class `deflatable`."""

    pressure: float  # share of the time under pressure, of one machine
    depth: float  # share of the speed lost then
    episode_s: float  # mean length of an episode of pressure
    usd_per_hour: float | None = None  # of one machine; None: as the spot machine it replaces


def deflated(p: PathInputs, market: Deflatable, machines: int, co_pressure: float) -> PathInputs:
    """Path inputs of a plan on deflatable machines; its checkpoints stay as they are.

    Time and bill of the first start stay outside the engine's process: see `Scenario.start_s`.
    """
    alone = 1.0 + (machines - 1) * (1.0 - co_pressure)
    phi = min(max(market.pressure, 1e-9), 1.0 - 1e-9)
    whole = (1.0 - phi) ** alone
    run_s = max(market.episode_s * (1.0 - phi) / phi / alone, MIN_RUN_S)
    price = market.usd_per_hour
    hourly = p.spot_usd_per_hour if price is None else p.spot_usd_per_hour * 0.0 + machines * price
    zero = np.zeros(1)
    start_s = p.changeover_s
    base = p.base_usd_per_hour + hourly
    return replace(
        p,
        base_usd_per_hour=base,
        spot_usd_per_hour=zero,
        spot_price_sigma=zero,
        fixed_usd=p.fixed_usd + base * start_s / 3600.0,
        usd_per_move=zero,
        move_after_s=zero,
        run_mean_s=np.array([run_s]),
        run_sigma=np.ones(1),
        outage_sigma=np.ones(1),
        availability_logit=np.array([np.log(whole / (1.0 - whole))]),
        zone_sd=zero,
        zone_count=np.ones(1),
        correlation=zero,
        runs_from_start=np.zeros(1, dtype=bool),
        changeover_s=zero,
        notice_saves=np.ones(1),
        elastic_share=np.array([1.0 - market.depth]),
        boot_s=zero,
        resize_s=zero,
        minimum_s=zero,
        free_s=zero,
        fallback_speed=zero,
    )
