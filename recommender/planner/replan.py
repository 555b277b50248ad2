"""Decides whether a running job should stay on its machines or move to others.

Both are simulated from now to the end on the same runs. Staying means that the machines at the
plan's first location are up and training, at the prices of the catalog. Moving means to wait for
other machines, start, restore, repeat the work that was not saved, and pay to transfer the
checkpoint. Moving pays if it saves more than the person's hours it takes are worth
(`plan/effort.py`), or if only moving meets the limits.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property

import numpy as np

from recommender.arrays import Floats
from recommender.catalogs.catalog import Catalog
from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError
from recommender.inputs.units.times import now as clock_now
from recommender.job.job import Job
from recommender.market.offer_facts import Facts, Pool, usd_per_gb
from recommender.market.sites import SitePools
from recommender.optimize.candidate import Candidate
from recommender.optimize.watch import Watch
from recommender.performance.checkpoint import CHECKPOINT_PATHS
from recommender.plan.effort import HOUR_USD, WAIT_USD, effort_of
from recommender.plan.limits import RATE_LIMITS, Choice, Limits, Progress
from recommender.plan.plan import Machines, Plan, Site
from recommender.plan.replan import MovingCost, PriceMove, Remaining, Replan
from recommender.planner.options import AnswerOptions
from recommender.planner.pipeline import Pipeline
from recommender.planner.plan_builder import Evaluated, PlanBuilder, goal_value_of
from recommender.planner.plan_details import spread_of
from recommender.planner.plan_pool import PlanPool
from recommender.planner.problem import PRINTED, Problem, planning_problem
from recommender.planner.relaxed_limits import surest_plan
from recommender.risk.path_inputs import PathInputs
from recommender.risk.random_numbers import SEED, price_factors, random_numbers
from recommender.risk.run_statistics import quantiles
from recommender.risk.spot_capacity import ClassCapacity, drawn_cycles
from recommender.simulation.paths import SimulatedRuns, simulate
from recommender.simulation.summary import limit_chances

MIN_PRICE_CHANGE = 0.05  # relative change from which on a price has moved
# Where nothing meets the limits: a chance so much higher is worth another cluster's cost and work.
CLEARLY = 0.05
OWN_FLAGS = ("--deadline", "--budget", "--elapsed", "--spent")  # of the command that compares
MAX_CANDIDATES = 20  # plans among which the one to move to is looked for
_GB, _HOUR_S = 1e9, 3600.0
_NOT_ALL = 1.0 - 1e-6  # a job of which all is done needs no plan


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job that runs, the question whose answer it follows, and how far it has come."""

    plan: Plan
    job: Job
    limits: Limits  # of the whole job
    choice: Choice
    progress: Progress  # what is done, counted from the first start
    unsaved_s: float | None = None  # training since the last checkpoint; None: half an interval

    @property
    def work_s(self) -> float:
        """All of the training on these machines, as predicted."""
        return self.job.seconds_on(self.plan.gpus, self.plan.estimate.step.step_s)

    @property
    def lost_share(self) -> float:
        """The share of the job that a move loses: no more than was ever done."""
        half_s = self.plan.checkpointing.interval_s / 2.0
        lost_s = half_s if self.unsaved_s is None else self.unsaved_s
        share = lost_s / self.work_s if np.isfinite(lost_s) else np.inf
        return min(share, self.progress.done_share)


def replan(
    running: RunningJob,
    *,
    catalog: Catalog,
    before: Catalog | None = None,
    now: datetime | None = None,
    watch: Watch | None = None,
) -> Replan:
    """Compare finishing on the current machines with the best alternatives.

    `before`: the catalog to compare prices with (default: the plan's prices).

    Raises:
        UsageError: nothing is left of the job or of a limit, or the machines are no longer sold.
    """
    moment = clock_now() if now is None else now
    return _Comparison(running, catalog, moment, watch or Watch()).made(before)


@dataclass(frozen=True)
class _Option:
    """An option, and what happened on each of its paths from now on."""

    evaluated: Evaluated
    runs: SimulatedRuns
    chance: float

    def remaining(self) -> Remaining:
        runs = self.runs
        cost = spread_of(runs.cost_usd, float(runs.expected_usd.mean()))
        time = spread_of(runs.time_s, float(runs.time_s.mean()))
        return Remaining(self.evaluated.plan, cost, time, self.chance)


@dataclass(frozen=True)
class _Comparison:
    """A running job next to what is offered now."""

    running: RunningJob
    catalog: Catalog
    now: datetime
    watch: Watch

    def made(self, before: Catalog | None) -> Replan:
        """The whole comparison; what is lost would be done again after a move."""
        lost_share, progress = self.running.lost_share, self.running.progress
        stay = self._stay()
        pipeline = Pipeline(
            self._problem(replace(progress, done_share=progress.done_share - lost_share)),
            AnswerOptions(top=MAX_CANDIDATES),
            self.watch,
        )
        move, lost_s = self._move(pipeline), lost_share * self.running.work_s
        if move is None and not self._meets_limits(stay):
            found = pipeline.answer().infeasible
            why = () if found is None else found.binding
            binding = tuple(each for each in why if each.startswith(OWN_FLAGS))
            surest = self._surest_move(pipeline.pool)
            return self._judged(stay, surest, lost_s, before, sure=False, binding=binding)
        return self._judged(stay, move, lost_s, before, sure=move is not None)

    def _problem(self, progress: Progress) -> Problem:
        done = min(progress.done_share, _NOT_ALL)
        return planning_problem(
            self.running.job, self.running.limits, self.running.choice, self.catalog,
            replace(progress, done_share=done), self.now, SEED,
        )  # fmt: skip

    @cached_property
    def problem(self) -> Problem:
        """What is left of the job where nothing is lost."""
        return self._problem(self.running.progress)

    def _stay(self) -> _Option:
        """The plan's own machines, there and training."""
        problem, plan = self.problem, self.running.plan
        sites = self._sites()
        candidate = Candidate(
            0,
            tuple(range(len(plan.machines))),
            tuple(m.count for m in plan.machines),
            CHECKPOINT_PATHS.index(plan.checkpointing.path),
            self._fallback_row(sites),
        )
        evaluated = PlanBuilder(problem, sites).build(candidate)
        one, deadline_s = np.ones(1), problem.limits.deadline_s
        inputs = replace(
            evaluated.inputs, fixed_usd=np.zeros(1), at_once=one
        )  # the data are there, and so are the machines
        start_s = float(inputs.changeover_s[0])
        due_s = None if deadline_s is None else deadline_s + start_s
        sample = simulate(inputs, due_s, PRINTED, problem.seed, ClassCapacity(train=True))
        prices = price_factors(inputs.spot_price_sigma, random_numbers(PRINTED, problem.seed).price)
        return _option(problem, evaluated, _without_start(inputs, sample, prices), 0.0)

    def _sites(self) -> SitePools:
        """The places of the plan as the catalog has them now, its fallback among them."""
        plan = self.running.plan
        # Machines that run on demand stay where they are.
        lists = [plan.sites if m.market == "spot" else () for m in plan.machines]
        pools = [
            _pool(self.problem, m, listed, plan.move_after_s)
            for m, listed in zip(plan.machines, lists, strict=True)
        ]
        late = plan.fallback
        fallback = [_pool(self.problem, m, late.sites) for m in late.machines] if late else []
        return self.problem.site_space.builder.site_of(pools, fallback)

    def _fallback_row(self, sites: SitePools) -> int:
        """The fallback of the plan, or the nearest in size; -1 where it has none."""
        found, fallback = sites.sites[0].fallbacks, self.running.plan.fallback
        if fallback is None or not len(found):
            return -1
        return int(np.abs(found.count - fallback.machines[0].count).argmin())

    def _move(self, pipeline: Pipeline) -> _Option | None:
        """The best plan on other machines, its checkpoint brought there."""
        mine = _rented(self.running.plan)
        others = [each for each in pipeline.table if _rented(each.plan) != mine]
        if not others:
            return None
        best = min(others, key=lambda each: goal_value_of(each.plan, pipeline.problem.limits))
        return self._moved_to(best, pipeline.problem)

    def _surest_move(self, pool: PlanPool) -> _Option | None:
        """Other machines that meet the limits less often than asked, but as often as any."""
        found = surest_plan(pool.problem.limits, pool)
        if found is None or _rented(found[1].plan) == _rented(self.running.plan):
            return None
        return self._moved_to(found[1], pool.problem)

    def _moved_to(self, plan: Evaluated, problem: Problem) -> _Option:
        sample = simulate(plan.inputs, problem.limits.deadline_s, PRINTED, problem.seed)
        return _option(problem, plan, sample, self._transfer_usd(plan.plan))

    def _transfer_usd(self, to: Plan) -> float:
        """Egress of one checkpoint to where other machines are."""
        facts, here, there = self.problem.facts, self.running.plan.machines[0], to.machines[0]
        if here.provider != there.provider:
            price = facts.fee(here.provider, "egress_internet_gb")
        else:
            price = usd_per_gb(facts, here.provider, here.region, there.region)
        return self.running.job.checkpoint_bytes / _GB * price

    def _meets_limits(self, left: _Option) -> bool:
        limits = self.problem.limits
        rates = limits.given(RATE_LIMITS)
        within = all(limit.of_plan(left.evaluated.plan) <= most for limit, most in rates)
        return within and left.chance >= limits.confidence

    def _judged(
        self,
        stay: _Option,
        move: _Option | None,
        lost_s: float,
        before: Catalog | None,
        sure: bool,
        binding: tuple[str, ...] = (),
    ) -> Replan:
        """Both options, and which is better; `sure`: whether moving meets the limits."""
        facts = self.problem.facts
        then = None if before is None else replace(facts, catalog=before)
        prices = moved_prices(self.running.plan, facts, then)
        if move is None:
            meets = self._meets_limits(stay)
            return Replan("stay", meets, stay.remaining(), prices=prices, binding=binding)
        staying, other = stay.remaining(), move.remaining()
        moving = self._moving(move, lost_s)
        saved_usd = staying.cost.mean - other.cost.mean
        saved_s = staying.time.p50 - other.time.p50
        net = saved_usd - moving.effort_usd
        if self.running.limits.goal == "time":
            net += WAIT_USD * saved_s / _HOUR_S
        stays = self._meets_limits(stay)
        # Where staying misses the limits: whatever it costs, what meets them or clearly oftener.
        moves = net > 0.0 if stays else sure or move.chance >= stay.chance + CLEARLY
        return Replan(
            verdict="move" if moves else "stay",
            meets_limits=sure if moves else stays,
            stay=staying,
            move=other,
            moving=moving,
            saved_usd=saved_usd,
            saved_s=saved_s,
            cheaper=float((move.runs.cost_usd < stay.runs.cost_usd).mean()),
            sooner=float((move.runs.time_s < stay.runs.time_s).mean()),
            net_usd=net,
            prices=prices,
            binding=binding,
        )

    def _moving(self, move: _Option, lost_s: float) -> MovingCost:
        plan, inputs = move.evaluated.plan, move.evaluated.inputs
        wait_s = _first_wait_s(inputs)
        start_s, usd_per_s = float(inputs.changeover_s[0]), plan.usd_per_hour / _HOUR_S
        speed = self.running.work_s / self.running.job.seconds_on(
            plan.gpus, plan.estimate.step.step_s
        )
        effort_h = effort_of(plan).total_h
        return MovingCost(
            lost_work_s=lost_s,
            lost_usd=lost_s / speed * usd_per_s,
            at_once=float((wait_s <= 0.0).mean()),
            wait_p95_s=quantiles(wait_s, 0.95)[0],
            start_s=start_s,
            start_usd=start_s * usd_per_s,
            transfer_usd=self._transfer_usd(plan),
            effort_h=effort_h,
            effort_usd=effort_h * HOUR_USD,
        )


def _option(problem: Problem, evaluated: Evaluated, sample: SimulatedRuns, usd: float) -> _Option:
    """What the paths come to, some USD paid once."""
    sample = replace(sample, cost_usd=sample.cost_usd + usd, expected_usd=sample.expected_usd + usd)
    _, together = limit_chances(sample, problem.limits, evaluated.plan.max_usd_per_hour)
    return _Option(evaluated, sample, float(together.mean()))


def _without_start(p: PathInputs, sample: SimulatedRuns, prices: Floats) -> SimulatedRuns:
    """The runs without the start-up that lies before the clock (`ClassCapacity.train`).

    Its bill is at the spot price of each path: `prices`, relative to the expected one.
    """
    hours = sample.starting_s / _HOUR_S
    base, spot = p.base_usd_per_hour[0] * hours, p.spot_usd_per_hour[0] * hours
    return replace(
        sample,
        time_s=sample.time_s - sample.starting_s,
        cost_usd=sample.cost_usd - base - spot * prices,
        expected_usd=sample.expected_usd - base - spot,
        starting_s=np.zeros_like(sample.starting_s),
    )


def _first_wait_s(p: PathInputs) -> Floats:
    """How long each path waits for its first machines."""
    sample = random_numbers(PRINTED, SEED)
    _, waits = drawn_cycles(p, sample)
    spot = waits[0][0] if p.spot_usd_per_hour[0] > 0.0 else 0.0
    return np.asarray(spot + sample.queue_s(p.at_once, p.wait_s)[0])


def _rented(plan: Plan) -> tuple[tuple[str, str, str, str, int], ...]:
    """What distinguishes the machines of two plans."""
    return tuple(
        sorted((m.provider, m.instance_type, m.market, m.region, m.count) for m in plan.machines)
    )


def _pool(problem: Problem, m: Machines, listed: Sequence[Site], move_after_s: float = 0.0) -> Pool:
    """The offers of machines in the catalog of today, at the listed places in their order."""
    places = [(s.region, s.zone) for s in listed] or [(m.region, m.zone)]
    rows = tuple(row for place in places if (row := _row(problem.catalog, m, place)) is not None)
    if not rows:
        raise UsageError(
            f"{m.instance_type} {m.market.replace('_', '-')} in {m.region} is in no catalog of "
            "today; name the one that the plan was made with: --catalog PATH"
        )
    key = (m.provider, m.instance_type)
    if key not in problem.offers.kinds.of:
        raise UsageError(f"{m.instance_type} is none of the machines that the answer was allowed")
    move_after_s = move_after_s if len(rows) > 1 else 0.0
    kind, machine = problem.offers.kinds.of[key], problem.catalog.instance_types[key]
    return Pool(rows, m.market, kind, machine, move_after_s)


def _row(catalog: Catalog, m: Machines, place: tuple[str, str]) -> int | None:
    """The offer of machines at a place; None where there is none."""
    o = catalog.offers
    wanted = (m.provider, m.instance_type, m.market, *place)
    columns = zip(o.provider, o.instance_type, o.market, o.region, o.zone, strict=True)
    return next((row for row, offer in enumerate(columns) if offer == wanted), None)


def moved_prices(plan: Plan, facts: Facts, before: Facts | None) -> tuple[PriceMove, ...]:
    """Locations of a plan whose price changed by `MIN_PRICE_CHANGE` since a catalog or the plan."""
    found = []
    for m, place, usd in _priced_places(plan):
        was, now = _listed(before, m, place), _listed(facts, m, place)
        was = usd if was is None else was
        if now is None or abs(now / was - 1.0) >= MIN_PRICE_CHANGE:
            found.append(PriceMove(m.instance_type, m.market, *place, was, now))
    return tuple(found)


def _listed(facts: Facts | None, m: Machines, place: tuple[str, str]) -> float | None:
    """The price of machines at a place, own discounts off; None where it is not known."""
    if facts is None:
        return None
    row = _row(facts.catalog, m, place)
    return None if row is None else facts.listed_usd(row)


def _priced_places(plan: Plan) -> list[tuple[Machines, tuple[str, str], float]]:
    """Every place where the plan requests machines, with the price it was made with."""
    # A failover list has the prices of the first type; others of a mix have their own.
    first = next((m for m in plan.machines if m.market == "spot"), plan.machines[0])
    listed: list[tuple[Machines, tuple[Site, ...]]] = [(first, plan.sites)]
    listed += [(m, ()) for m in plan.machines if m is not first]
    if plan.fallback is not None:
        listed += [(m, plan.fallback.sites) for m in plan.fallback.machines]
    return [(m, *place) for m, sites in listed for place in _priced(m, sites)]


def _priced(m: Machines, sites: Sequence[Site]) -> list[tuple[tuple[str, str], float]]:
    """The places of a list with their prices; without one that of the machines."""
    found = [((site.region, site.zone), site.usd_per_hour) for site in sites]
    return found or [((m.region, m.zone), m.usd_per_hour)]
