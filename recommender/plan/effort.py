"""The work and risk of a plan for the person who rents it, in addition to its cost.

A plan that is a dollar cheaper but needs a quota of 96 vCPU, a job that resumes and four machines
that communicate is no saving. So the sensible plan minimises

    cost + hour · effort + waiting + surprise · (mean of the worst twentieth above the mean)

An hour of waiting counts a fraction of an hour of work, because the job runs by itself. It counts
twice as much for a user who pays for speed (a budget, no deadline), and a quarter where the money
is what counts: who gives a deadline has said when the result is needed. Hours without a source are
assumptions.
"""

from math import exp, hypot, log, log2

from recommender.catalogs.frozen import dataclass
from recommender.plan.evidence import Evidence
from recommender.plan.limits import Goal
from recommender.plan.plan import Plan

# Median of software developers in the United States: 132,270 USD a year of 2,080 hours (BLS,
# Occupational Employment and Wage Statistics, May 2023).
HOUR_USD = 64.0
WAIT_USD = HOUR_USD / 8.0  # an hour of waiting for a job that runs by itself
URGENCY: dict[Goal, float] = {"time": 2.0, "frontier": 1.0, "cost": 0.25}  # times that
UNCOUNTED_H = 0.5  # less than this does not count
RISK_SHARE = 0.25  # of what one in twenty pays above the mean and waits above what is usual
QUOTA_H = 0.25  # to ask for a quota that a new account lacks
QUOTA_PER_GPU_H = 1.0 / 16.0  # of a first machine of eight: more needs a reason
# Of the GPUs beyond it, quota or none: such requests are not granted by themselves but argued for
# with the provider, split, cut or refused, and capacity for all at once is looked for besides.
ARGUE_PER_GPU_H = 1.0 / 8.0
ONE_MACHINE = 8  # GPUs of the largest machines that clouds rent
RESUME_H = 0.5  # to see that the job resumes from its checkpoints: on spot, on a stranger's host
CLUSTER_H = 0.5  # to start two machines that find each other, and for each doubling again
# What nobody measured, traced or quoted may be off by. An untimed GPU adds an sd of ln speed of
# 0.18 and that of its rate (`performance/speed_spread.py`); of the others nothing is known.
GUESS = 0.25
INTERRUPTION_H = 1.0 / 30.0  # at each interruption


@dataclass(frozen=True, slots=True)
class Effort:
    """Hours of a person's work, by cause."""

    quota_h: float
    resume_h: float
    cluster_h: float
    interruptions_h: float

    @property
    def total_h(self) -> float:
        """The sum of all hours."""
        return self.quota_h + self.resume_h + self.cluster_h + self.interruptions_h


def effort_of(plan: Plan) -> Effort:
    """Estimate the work that a plan takes."""
    kept = all(m.market != "spot" for m in plan.machines) and plan.is_promised
    beyond = 0 if plan.needs or plan.is_owned else max(plan.gpus - ONE_MACHINE, 0)
    own_h = quota_h(plan.gpus) if _lacks_quota(plan, False) else 0.0
    late = plan.fallback  # may need a quota besides that of the plan
    late_h = quota_h(late.gpus) if late and _lacks_quota(plan, True) else 0.0
    return Effort(
        quota_h=own_h + late_h,
        resume_h=0.0 if kept else RESUME_H,
        cluster_h=CLUSTER_H * log2(sum(m.count for m in plan.machines)) + ARGUE_PER_GPU_H * beyond,
        interruptions_h=INTERRUPTION_H * plan.estimate.interruptions,
    )


def _lacks_quota(plan: Plan, fallback: bool) -> bool:
    """Whether a quota has to be requested for its machines, or those of its fallback."""
    closed = plan.on_request and not fallback
    return closed or any(need.missing for need in plan.needs if need.fallback == fallback)


def quota_h(gpus: int) -> float:
    """Hours that a quota for so many GPUs takes."""
    few = min(gpus, ONE_MACHINE)
    return QUOTA_H + QUOTA_PER_GPU_H * few + ARGUE_PER_GPU_H * (gpus - few)


def generalised_cost_usd(plan: Plan, goal: Goal) -> float:
    """Total cost of a plan: money, effort, waiting and risk, by what is sought."""
    cost, time = plan.estimate.cost, plan.estimate.time
    usual_h = _counted_h(time.trimmed_mean)
    return (
        cost.mean
        + HOUR_USD * effort_of(plan).total_h
        + WAIT_USD * URGENCY[goal] * usual_h
        + risk_usd(cost.p95 - cost.mean, _counted_h(time.p95) - usual_h)
    )


def doubted_cost_usd(plan: Plan, goal: Goal) -> float:
    """Its total cost where what is known of it alone errs by a standard deviation against it.

    What its figures rest on may be wrong, a person's work is not.
    """
    work_usd = HOUR_USD * effort_of(plan).total_h
    rest_usd = generalised_cost_usd(plan, goal) - work_usd
    return work_usd + rest_usd * exp(own_error(plan))


def own_error(plan: Plan) -> float:
    """Standard deviation of ln cost by what this plan rests on, and plans on other machines not.

    A spot law decides what is lost to interruptions and waits: so much of the time errs with it.
    """
    if plan.evidence is None:
        return 0.0
    split = plan.estimate.split
    lost_s = split.checkpoint_s + split.lost_s + split.restart_s + split.waiting_s
    return evidence_error(
        plan.evidence, lost_s / max(split.start_up_s + split.work_s + lost_s, 1.0)
    )


def evidence_error(known: Evidence, lost: float = 0.0) -> float:
    """Standard deviation of ln cost by evidence, `lost` being the share of time that spot takes."""
    guesses = [log(1.0 + GUESS)] * len(known.guesses)
    return hypot(known.speed_sd, known.price_sd, known.hazard_sd * lost, *guesses)


def risk_usd(more_usd: float, more_h: float) -> float:
    """What it counts that one run in twenty costs and takes so much more than usual."""
    return RISK_SHARE * (max(more_usd, 0.0) + WAIT_USD * max(more_h, 0.0))


def screened_cost_usd(
    cost_usd: float,
    time_s: float,
    gpus: int,
    machines: int,
    spot: bool,
    goal: Goal,
    fallback_gpus: int = 0,
    error: float = 0.0,
) -> float:
    """Lower estimate of the total cost of a plan that was not built in full.

    It assumes that every quota must be requested, for so many GPUs, and leaves out interruptions
    and the worst twentieth.
    """
    effort_h = (quota_h(gpus) if gpus else 0.0) + RESUME_H * spot + CLUSTER_H * log2(machines)
    effort_h += quota_h(fallback_gpus) if fallback_gpus else 0.0
    waiting_usd = WAIT_USD * URGENCY[goal] * _counted_h(time_s)
    return (cost_usd + waiting_usd) * exp(error) + HOUR_USD * effort_h


def _counted_h(seconds: float) -> float:
    return max(seconds / 3600.0, UNCOUNTED_H)


def reasons_of(plan: Plan) -> tuple[str, ...]:
    """The advantages of a plan and what it needs, in a few words each."""
    effort, estimate = effort_of(plan), plan.estimate
    sentences = []
    if not effort.resume_h:
        sentences.append("no interruptions")
    if sum(m.count for m in plan.machines) == 1:
        sentences.append("one machine")
    idle = estimate.split.start_up_s + estimate.split.restart_s + estimate.split.waiting_s
    share = idle / max(estimate.time.p50, 1.0)  # the split is of runs around the median
    if share >= 0.2:
        sentences.append(f"{100.0 * share:.0f} % of the time is start-up and waiting")
    if effort.quota_h:
        sentences.append("a quota to ask for")
    return tuple(sentences)
