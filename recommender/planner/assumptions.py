"""The assumptions and warnings of an answer, as sentences."""

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from recommender.arrays import Z_90
from recommender.catalogs.catalog import OWN_BENCH_SOURCE
from recommender.catalogs.registry import CLOUDS, OWN, SPOT_AUCTIONS
from recommender.catalogs.schema import Achieved, OwnMachine
from recommender.job.job import LOW_PRECISIONS, Job
from recommender.performance.gpu_speed import kept_share, precision_on
from recommender.performance.machines import machine_columns
from recommender.performance.measured import MAX_OF_MATMUL, UNIT_ERROR, times_slower
from recommender.performance.priors import prior_of, recipe_share
from recommender.performance.speed_spread import SIGMA_MEASURED, run_sd
from recommender.plan.limits import OTHERS
from recommender.plan.plan import OWN_TRACE, Machines, Plan
from recommender.planner.other_software import fp8_s, stacks_s
from recommender.planner.plan_builder import has_derived_price
from recommender.planner.problem import Problem
from recommender.text import duration, number

# Clusters of so many machines are reserved by contract rather than rented by the hour: AWS sells
# blocks of up to 64 instances (Capacity Blocks for ML, 2026-08).
CONTRACT_MACHINES = 64
_IN_WORDS = ("stack", "precision", "attention")  # fields of the job that have their own sentences
# Classes of spot machines that hold several GPUs, in words.
_GROUPS = {"small": "T4 to RTX", "old": "P100 and older", "other": "other accelerators"}


def assumptions_of(problem: Problem, plans: tuple[Plan, ...], lead: int = 1) -> tuple[str, ...]:
    """Everything assumed that could change the answer, the most important first.

    These are whether plan 1 can be rented at all, the assumed hardware of the user's own machines,
    the availability of its capacity, and its speed.
    """
    job, spots = problem.job, _spots(plans)
    on_demand = [_on_demand(problem.choice.on_demand_obtainable, plans)] if _rents(plans) else []
    on_spot = any(plan.spot is not None for plan in plans[:1])
    capacity = [*spots, *on_demand] if on_spot else [*on_demand, *spots]
    guessed, software = _unmeasured(problem, plans), _stack(problem, plans, lead)
    doubts = (software, guessed) if _stack_decides(problem, plans) else (guessed, software)
    speed = [*_calibrated(problem, plans), *chain(*doubts), *_long_run(job)]
    derived = [name for name in job.assumed if name not in _IN_WORDS]
    sentences = chain(
        _quotas(problem, plans),
        _rented_elsewhere(problem, plans[:1]),
        _of_the_job(job, plans),
        capacity[:1],
        speed[:1],
        capacity[1:],
        speed[1:],
        _precision(problem, plans, lead),
        _of_the_runs(job),
        _elastic(job, plans),
        _own(problem, plans),
        _rented_elsewhere(problem, plans),
        ["job fields: " + ", ".join(derived)] if derived else (),
    )
    return tuple(dict.fromkeys(sentences))


def _rents(plans: tuple[Plan, ...]) -> bool:
    """Whether some machine is rented from a cloud, which has quotas and may be short of it.

    Without a plan that is unknown, and assumed.
    """
    return not plans or any(m.provider != OWN for m in _machines(plans))


def _machines(plans: tuple[Plan, ...]) -> list[Machines]:
    """The machines of the clusters of some plans."""
    return [machines for plan in plans for machines in plan.machines]


def _gpus(plans: tuple[Plan, ...]) -> list[str]:
    """The GPUs of some plans, each once, in their order."""
    return list(dict.fromkeys(machines.gpu for machines in _machines(plans)))


def _of_the_job(job: Job, plans: tuple[Plan, ...]) -> Iterator[str]:
    """What the job's batch, its timings and its precision leave open."""
    if job.batch_per_gpu:  # another optimisation on each plan
        yield (
            "as many samples train as well at any global batch, which grows with the GPUs "
            "(batch_per_gpu): large ones need another learning rate, often more samples"
        )
    if job.carried is not None and plans:
        of = f"from your own timings in {job.carried.precision} to {job.precision}"
        yield f"speed carried {of}: ± {100.0 * job.carried.sd:.0f} % in addition"
    if job.precision in LOW_PRECISIONS:
        kept = kept_share(prior_of(job))
        share = kept + recipe_share(job) * (1.0 - kept)
        gains = f"{number(share)} of what" if share < 1.0 else "all that"
        others = "" if job.stack == "tuned" else ", a vendor's recipe (--stack tuned) all of it"
        yield (
            f"{job.precision} is for the matrix products of layers: this software keeps {gains} "
            f"they gain{others}; attention, weights, gradients and optimizer states are as in "
            "mixed precision"
        )


def _precision(problem: Problem, plans: tuple[Plan, ...], lead: int) -> Iterator[str]:
    """The formats of a job that states no precision, and what the plan takes in 8 bits."""
    if "precision" not in problem.job.assumed:
        return
    gpus = problem.catalog.gpus
    formats = {name: precision_on("mixed", gpus[name]) for name in _gpus(plans) if name in gpus}
    older = [name for name, found in formats.items() if found == "fp16"]
    lacks = f"{', '.join(older)}, which {'have' if len(older) > 1 else 'has'} no bf16"
    parts = ["bf16"] if "bf16" in formats.values() else []
    parts += [f"fp16 on {lacks}"] if older else []
    less = fp8_s(problem, plans[lead - 1]) if plans else None
    parts += [f"fp8 would take about {duration(less)} with plan {lead}"] if less else []
    listed = "; ".join(parts) or "bf16, or fp16 on GPUs without it"
    yield f"precision not stated (--precision): {listed}"


def _of_the_runs(job: Job) -> Iterator[str]:
    """What of its runs the job does not say: attention, data, and the container."""
    if "attention" in job.assumed:  # scores go through memory
        yield (
            "attention is not fused, as this software runs this network by default (if yours is: "
            "attention: fused in the job file)"
        )
    if not job.data.at:
        yield "data location unknown, egress and staging not included (--data-at)"
    if job.setup_s is None and job.image == "cold":
        yield "cold container (image pull 310 s)"


def _stack(problem: Problem, plans: tuple[Plan, ...], lead: int) -> Iterator[str]:
    """That the software is not known, what its kinds would take, and how to say which it is."""
    if "stack" not in problem.job.assumed:
        return
    times = stacks_s(problem, plans[lead - 1]) if plans else (None, None)
    kinds = ("typical, a script,", "tuned, a vendor's recipe,")
    took = [
        f"--stack {kind} takes about {duration(time)} with plan {lead}"
        for kind, time in zip(kinds, times, strict=True)
        if time is not None
    ]
    said = "; ".join(["training software not stated: speeds between scripts and recipes", *took])
    if _stack_decides(problem, plans):
        factors = _speed_factors(problem, plans[lead - 1])
        known, unstated, timed = (f"{each:.1f}" for each in factors)
        named = f"its name narrows the speed from a factor of {unstated} to {known}, a timed step"
        if known == unstated:
            named = f"a timed step narrows the speed from a factor of {unstated}"
        said = f"{said}; {named} (--measured) to {timed}"
    yield said


def _stack_decides(problem: Problem, plans: tuple[Plan, ...]) -> bool:
    """Whether a job without timings would be better known if its software were."""
    job = problem.job
    unknown = "stack" in job.assumed and not job.timings and job.calibration is None
    return bool(plans) and unknown


def _speed_factors(problem: Problem, plan: Plan) -> tuple[float, float, float]:
    """The factor within which the speed of a plan's least known machine lies.

    Of scripts; of software that is not stated; with a timed step.
    """
    job, catalog = problem.job, problem.catalog
    keys = dict.fromkeys((each.provider, each.instance_type) for each in plan.machines)
    types = tuple(catalog.instance_types[key] for key in keys)
    several = sum(each.count for each in plan.machines) > 1
    sds = []
    for each in (job.as_script, job):
        columns = machine_columns(each, types, catalog.gpus, catalog.achieved)
        spread = columns.speed_sigma_several if several else columns.speed_sigma
        sds.append(float(spread.max()))
    timed = math.hypot(SIGMA_MEASURED, run_sd(job))
    return math.exp(Z_90 * sds[0]), math.exp(Z_90 * sds[1]), math.exp(Z_90 * timed)


def _long_run(job: Job) -> Iterator[str]:
    """That a long run's time depends on more than its steps."""
    factor = f"{math.exp(Z_90 * run_sd(job)):.1f}"
    if factor != "1.0":
        yield (
            f"the time of a run of this size is known within a factor of {factor} at best: "
            "evaluations, stops and repeated work are taken for "
            f"{100.0 * (1.0 - job.steps / job.run_steps):.0f} % of it"
        )


def _on_demand(given: float | None, plans: tuple[Plan, ...]) -> str:
    """How soon on-demand machines are taken to be there, and booked capacity to begin."""
    share = "99 % small GPUs, 90 % A100, 70 % H100 and newer"
    if given is not None:
        share = f"{100.0 * given:g} % (--assume-on-demand)"
    markets = {m.market for m in _machines(plans)}
    flex = "; flex-start machines as on demand" if "flex_start" in markets else ""
    blocks = "; half of all reserved blocks begin within a day"
    blocks = blocks if "reserved_block" in markets else ""
    most = max((sum(m.count for m in plan.machines) for plan in plans), default=0)
    contract = given is None and most >= CONTRACT_MACHINES
    return (
        f"on-demand machines with eight GPUs are available at once in a region: {share}; otherwise "
        "after a median of an hour, sometimes much later; larger clusters less often and later"
        f"{flex}{blocks}"
        f"{' (if yours are reserved by contract: --assume-on-demand 100%)' if contract else ''}"
    )


def _quotas(problem: Problem, plans: tuple[Plan, ...]) -> Iterator[str]:
    """Whose quotas were not checked."""
    if not problem.choice.quotas_known:
        if _rents(plans):
            yield "quotas not checked (--quota)"
        return
    given, used = problem.facts.quotas.given, {m.provider for m in _machines(plans)}
    unknown = [info.label for name, info in CLOUDS.items() if name in used - given]
    if unknown:
        yield f"quotas of {', '.join(unknown)} not checked: the file of --quota has none"
    others = (q.provider for q in problem.choice.quotas if q.quota_family.casefold() == OTHERS)
    opened = [info.label for name, info in CLOUDS.items() if name in set(others) & used]
    if opened:
        yield f"quotas of {', '.join(opened)} beyond those given not checked (others: unlimited)"


def _elastic(job: Job, plans: tuple[Plan, ...]) -> Iterator[str]:
    """Whether clusters of both markets train in part, if one is shown or it was requested."""
    mixed = any(len({m.market for m in plan.machines}) > 1 for plan in plans)
    if mixed or job.elastic is not None:
        yield (
            "on-demand machines continue while their cluster's spot machines are away (--gang)"
            if job.resizes
            else "a cluster trains with all of its machines only (--elastic)"
        )


def _unmeasured(problem: Problem, plans: tuple[Plan, ...]) -> Iterator[str]:
    """The GPUs of the plans whose matrix speed is a share of the vendor's peak, if any."""
    timed = {timing.gpu for timing in problem.job.timings}
    rows = {name: _speed(problem, name) for name in _gpus(plans) if name not in timed}
    guessed = [name for name, row in rows.items() if row and row.kind == "fallback"]
    if guessed:
        yield f"speed of {', '.join(guessed)} from the vendor's peak, not measured"


def _rented_elsewhere(problem: Problem, plans: tuple[Plan, ...]) -> Iterator[str]:
    """Assumed hardware of shown machines from an offers file that does not describe it."""
    late = (m for plan in plans if plan.fallback for m in plan.fallback.machines)
    names = {m.instance_type for m in (*_machines(plans), *late) if m.provider == OWN}
    types = [problem.catalog.instance_types[OWN, name] for name in sorted(names)]
    for t in types:
        if isinstance(t, OwnMachine) and t.assumed:
            usual = "links as usual for the GPU, all else the least that is usual"
            like = f"as {t.like}" if t.like else usual
            yield f"{t.instance_type}: {', '.join(t.assumed)}, {like} (columns of --offers)"
    alone = [t.instance_type for t in types if t.network_basis == "unknown"]
    if alone:
        yield f"network of {', '.join(alone)} unknown (column network_gbit_per_s)"


def _own(problem: Problem, plans: tuple[Plan, ...]) -> Iterator[str]:
    """The GPUs of the plans whose matrix speed the user measured, and the machines' links."""
    source, types = OWN_BENCH_SOURCE.source, problem.catalog.instance_types
    rows = {name: _speed(problem, name) for name in _gpus(plans)}
    own = [name for name, row in rows.items() if row and row.source == source]
    if own:
        yield f"speed of {', '.join(own)} from your own benchmarks"
    used = {(m.provider, m.instance_type) for m in _machines(plans)}
    mine = [key[1] for key in sorted(used) if key in types and types[key].source == source]
    if mine:
        yield f"links of {', '.join(mine)} from your own benchmarks"


def _calibrated(problem: Problem, plans: tuple[Plan, ...]) -> Iterator[str]:
    """That the user's own runs speak in the figures, and for which GPUs of the plans none does."""
    own = problem.job.calibration
    if own is not None:
        timed = {name for name, _ in own.gpus}
        others = [name for name in _gpus(plans) if name not in timed]
        none = f", none of them on {', '.join(others)}" if others else ""
        yield f"speed calibrated on {own.rows} of your own runs on {own.as_of}{none}"


def _speed(problem: Problem, name: str) -> Achieved | None:
    """The matrix speed that the plan of a GPU rests on."""
    gpu = problem.catalog.gpus.get(name)
    if gpu is None:
        return None
    return problem.catalog.achieved.get((name, precision_on(problem.job.precision, gpu)))


def _spots(plans: tuple[Plan, ...]) -> list[str]:
    """The laws behind the spot machines of all plans, those known in the same way together."""
    classes: dict[tuple[str, str], list[str]] = {}
    for law in dict.fromkeys((p.spot.name, p.spot.basis, p.spot.as_of) for p in plans if p.spot):
        classes.setdefault(law[1:], []).append(law[0])
    return [_spot(names, *known) for known, names in classes.items()]


def _spot(names: list[str], basis: str, as_of: str) -> str:
    if basis.startswith(OWN_TRACE):
        part = basis.removeprefix(OWN_TRACE)
        return f"spot law: {OWN_TRACE} of {', '.join(names)}, fitted {as_of}{part}"
    how = {
        "measured": "as recorded until",
        "transferred": "as recorded of other GPUs until",
    }.get(basis, "with the mean of --mtbf, else as recorded until")
    return f"spot of {', '.join(map(_class_words, names))}: up and away {how} {as_of}"


def _class_words(name: str) -> str:
    """A class of spot machines in words: "H100", "A100 (2-4 GPUs)"."""
    gpu, _, gpus = name.rpartition("x")
    if not gpus[:1].isdigit():
        gpu, gpus = name, ""
    many = f" ({gpus} GPUs)" if gpus else ""
    return f"{_GROUPS.get(gpu, gpu.upper())}{many}"


def warnings_of(problem: Problem, plans: tuple[Plan, ...], lead: int = 1) -> tuple[str, ...]:
    """Inputs that are not used, and what to know before trusting the leading plan."""
    of_inputs = (*problem.job.remarks, *_slow_timings(problem), *_fast_timings(problem))
    return (*of_inputs, *(_of_plan(problem, plans, lead) if plans else ()))


def _of_plan(problem: Problem, plans: tuple[Plan, ...], lead: int) -> Iterator[str]:
    """What to know of the checkpoints asked for, and of the chance and prices of a plan."""
    first = plans[lead - 1]
    asked = problem.choice.checkpoint_to
    if asked not in ("auto", "none") and all(p.checkpointing.path != asked for p in plans):
        why = "on-demand machines, which need no checkpoints, do better"
        if asked == "anchor":
            why += "; an anchor is an on-demand machine next to spot ones"
            why += " (--no-mix leaves them out)" if problem.choice.mix == "no" else ""
        yield f"no plan shown uses --checkpoint-to {asked}: {why}"
    chance, sure = first.estimate.chance, problem.limits.confidence
    if chance < sure:
        yield (
            f"plan {lead} meets the limits in only {100 * chance:.1f} % of its simulated runs: no "
            f"plan was found that meets them in {100 * sure:g} %"
        )
    if has_derived_price(first):
        yield f"plan {lead} relies on a derived price; --quoted-only leaves such prices out"
    flags = {m.price_flag for m in first.machines} | {s.price_flag for s in first.sites}
    if "floor" in flags and first.machines[0].provider in SPOT_AUCTIONS:
        yield (
            f"a zone of plan {lead} is quoted at the 10 % price floor; the median of its type is "
            "used"
        )


def _slow_timings(problem: Problem) -> Iterator[str]:
    """Warnings of timings that are so slow that their unit or batch is probably wrong."""
    job, catalog = problem.job, problem.catalog
    gpus = {timing.gpu for timing in job.timings}
    types = [t for t in catalog.instance_types.values() if t.gpu in gpus] if gpus else []
    if not types:
        return
    untimed = replace(job, timings=())
    columns = machine_columns(untimed, types, catalog.gpus, catalog.achieved)
    gpu_of = tuple(each.gpu for each in types)
    for timing in job.timings:
        times = times_slower(untimed, columns, gpu_of, timing)
        if times > UNIT_ERROR:
            yield (
                f"the timing on {timing.gpus}x{timing.gpu} is {number(times)} times slower than "
                "expected; check its unit, and that the batch is that of all GPUs"
            )


def _fast_timings(problem: Problem) -> Iterator[str]:
    """Warnings of timings that compute more than matrix multiplication alone reaches."""
    job = problem.job
    for timing in job.timings:
        known = _speed(problem, timing.gpu)
        done = timing.samples_per_s * job.flop_per_sample
        times = 0.0 if known is None else done / (timing.gpus * known.tflops * 1e12)
        if times > MAX_OF_MATMUL:
            yield (
                f"the timing on {timing.gpus}x{timing.gpu} is {number(times)} times what matrix "
                "multiplication reaches; check that its batch is that of all GPUs"
            )
