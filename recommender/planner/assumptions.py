"""The assumptions and warnings of an answer, as sentences."""

import math
from dataclasses import replace

from recommender.arrays import Z_90
from recommender.catalogs.catalog import OWN_BENCH_SOURCE
from recommender.catalogs.registry import CLOUDS, OWN, SPOT_AUCTIONS
from recommender.catalogs.schema import Achieved, OwnMachine
from recommender.job.job import LOW_PRECISIONS
from recommender.performance.job_spread import run_sd
from recommender.performance.low_precision import kept_share
from recommender.performance.machines import machine_columns, precision_on
from recommender.performance.measured import MAX_OF_MATMUL, SIGMA_MEASURED, UNIT_ERROR, times_slower
from recommender.performance.priors import prior_of, recipe_share
from recommender.plan.limits import OTHERS
from recommender.plan.plan import OWN_TRACE, Plan
from recommender.planner.other_software import fp8_s, stacks_s
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
    job, choice = problem.job, problem.choice
    spots, waits = _spots(plans), _on_demand(choice.on_demand_obtainable, plans)
    on_demand = [waits] if _rents(plans) else []
    capacity = [*spots, *on_demand] if _on_spot(plans[:1]) else [*on_demand, *spots]
    guessed, software = _unmeasured(problem, plans), _stack(problem, plans, lead)
    doubts = [*software, *guessed] if _stack_decides(problem, plans) else [*guessed, *software]
    speed = [*_calibrated(problem, plans), *doubts, *_long_run(problem)]
    sentences = [*_quotas(problem, plans), *_rented_elsewhere(problem, plans[:1])]
    sentences += _convergence(problem)
    sentences += [*_carried(problem, plans), *_low_precision(problem)]
    sentences += [*capacity[:1], *speed[:1], *capacity[1:], *speed[1:]]
    sentences += _precision(problem, plans, lead)
    sentences += _attention(problem)
    if not job.data.at:
        sentences.append("data location unknown, egress and staging not included (--data-at)")
    if job.setup_s is None and job.image == "cold":
        sentences.append("cold container (image pull 310 s)")
    sentences += _elastic(problem, plans)
    sentences += _own(problem, plans)
    sentences += _rented_elsewhere(problem, plans)
    derived = [name for name in job.assumed if name not in _IN_WORDS]
    if derived:
        sentences.append("job fields: " + ", ".join(derived))
    return tuple(dict.fromkeys(sentences))


def _rents(plans: tuple[Plan, ...]) -> bool:
    """Whether some machine is rented from a cloud, which has quotas and may be short of it.

    Without a plan that is unknown, and assumed.
    """
    return not plans or any(m.provider != OWN for plan in plans for m in plan.machines)


def _on_spot(plans: tuple[Plan, ...]) -> bool:
    return any(plan.spot is not None for plan in plans)


def _convergence(problem: Problem) -> list[str]:
    """That a batch which grows with the GPUs is another optimisation on each plan."""
    if not problem.job.batch_per_gpu:
        return []
    return [
        "as many samples train as well at any global batch, which grows with the GPUs "
        "(batch_per_gpu): large ones need another learning rate, often more samples"
    ]


def _low_precision(problem: Problem) -> list[str]:
    """What training in 8 or 4 bits gains, and what it does not change."""
    job = problem.job
    if job.precision not in LOW_PRECISIONS:
        return []
    kept = kept_share(prior_of(job))
    share = kept + recipe_share(job) * (1.0 - kept)
    gains = f"{number(share)} of what" if share < 1.0 else "all that"
    others = "" if job.stack == "tuned" else ", a vendor's recipe (--stack tuned) all of it"
    return [
        f"{job.precision} is for the matrix products of layers: this software keeps {gains} they "
        f"gain{others}; attention, weights, gradients and optimizer states are as in mixed "
        "precision"
    ]


def _precision(problem: Problem, plans: tuple[Plan, ...], lead: int) -> list[str]:
    """The formats of a job that states no precision, and what the plan takes in 8 bits."""
    if "precision" not in problem.job.assumed:
        return []
    names = dict.fromkeys(machine.gpu for plan in plans for machine in plan.machines)
    known = {name: problem.catalog.gpus[name] for name in names if name in problem.catalog.gpus}
    formats = {name: precision_on("mixed", gpu) for name, gpu in known.items()}
    older = [name for name, found in formats.items() if found == "fp16"]
    lacks = f"{', '.join(older)}, which {'have' if len(older) > 1 else 'has'} no bf16"
    parts = ["bf16"] if "bf16" in formats.values() else []
    parts += [f"fp16 on {lacks}"] if older else []
    less = fp8_s(problem, plans[lead - 1]) if plans else None
    parts += [f"fp8 would take about {duration(less)} with plan {lead}"] if less else []
    listed = "; ".join(parts) or "bf16, or fp16 on GPUs without it"
    return [f"precision not stated (--precision): {listed}"]


def _attention(problem: Problem) -> list[str]:
    """That scores go through memory, where the job does not say so."""
    if "attention" not in problem.job.assumed:
        return []
    return [
        "attention is not fused, as this software runs this network by default (if yours is: "
        "attention: fused in the job file)"
    ]


def _stack(problem: Problem, plans: tuple[Plan, ...], lead: int) -> list[str]:
    """That the software is not known, what its kinds would take, and how to say which it is."""
    if "stack" not in problem.job.assumed:
        return []
    times = stacks_s(problem, plans[lead - 1]) if plans else (None, None)
    kinds = ("typical, a script,", "tuned, a vendor's recipe,")
    took = [
        f"--stack {kind} takes about {duration(time)} with plan {lead}"
        for kind, time in zip(kinds, times, strict=True)
        if time is not None
    ]
    said = "; ".join(["training software not stated: speeds between scripts and recipes", *took])
    if not _stack_decides(problem, plans):
        return [said]
    known, unstated, timed = (f"{each:.1f}" for each in _speed_factors(problem, plans[lead - 1]))
    named = f"its name narrows the speed from a factor of {unstated} to {known}, a timed step"
    if known == unstated:
        named = f"a timed step narrows the speed from a factor of {unstated}"
    return [f"{said}; {named} (--measured) to {timed}"]


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
    found = []
    for each in (job.as_script, job):
        columns = machine_columns(each, types, catalog.gpus, catalog.achieved)
        spread = columns.speed_sigma_several if several else columns.speed_sigma
        found.append(float(spread.max()))
    known, unstated = found
    timed = math.hypot(SIGMA_MEASURED, run_sd(job))
    return math.exp(Z_90 * known), math.exp(Z_90 * unstated), math.exp(Z_90 * timed)


def _long_run(problem: Problem) -> list[str]:
    """That a long run's time depends on more than its steps."""
    factor = f"{math.exp(Z_90 * run_sd(problem.job)):.1f}"
    lost = f"{100.0 * (1.0 - problem.job.steps / problem.job.run_steps):.0f} %"
    if factor == "1.0":
        return []
    return [
        f"the time of a run of this size is known within a factor of {factor} at best: "
        f"evaluations, stops and repeated work are taken for {lost} of it"
    ]


def _on_demand(given: float | None, plans: tuple[Plan, ...]) -> str:
    """How soon on-demand machines are taken to be there."""
    most = max((sum(m.count for m in plan.machines) for plan in plans), default=0)
    contract = given is None and most >= CONTRACT_MACHINES
    share = (
        "99 % small GPUs, 90 % A100, 70 % H100 and newer"
        if given is None
        else f"{100.0 * given:g} %"
    )
    whose = "" if given is None else " (--assume-on-demand)"
    return (
        (
            "on-demand machines with eight GPUs are available at once in a region: "
            f"{share}{whose}; otherwise after a median of an hour, sometimes much later; larger "
            "clusters less often and later"
        )
        + _blocks(plans)
        + (" (if yours are reserved by contract: --assume-on-demand 100%)" if contract else "")
    )


def _blocks(plans: tuple[Plan, ...]) -> str:
    """When booked capacity is taken to begin, where plans rent some."""
    markets = {m.market for plan in plans for m in plan.machines}
    flex = "; flex-start machines as on demand" if "flex_start" in markets else ""
    begin = (
        "; half of all reserved blocks begin within a day" if "reserved_block" in markets else ""
    )
    return flex + begin


def _quotas(problem: Problem, plans: tuple[Plan, ...]) -> list[str]:
    """Whose quotas were not checked."""
    if not problem.choice.quotas_known:
        return ["quotas not checked (--quota)"] if _rents(plans) else []
    given, used = problem.facts.quotas.given, {m.provider for p in plans for m in p.machines}
    sentences = []
    unknown = [info.label for name, info in CLOUDS.items() if name in used - given]
    if unknown:
        sentences.append(
            f"quotas of {', '.join(unknown)} not checked: the file of --quota has none"
        )
    others = (q.provider for q in problem.choice.quotas if q.quota_family.casefold() == OTHERS)
    opened = [info.label for name, info in CLOUDS.items() if name in set(others) & used]
    if opened:
        sentences.append(
            f"quotas of {', '.join(opened)} beyond those given not checked (others: unlimited)"
        )
    return sentences


def _elastic(problem: Problem, plans: tuple[Plan, ...]) -> list[str]:
    """Whether clusters of both markets train in part, if one is shown or it was requested."""
    mixed = any(len({m.market for m in plan.machines}) > 1 for plan in plans)
    if not mixed and problem.job.elastic is None:
        return []
    if problem.job.resizes:
        return ["on-demand machines continue while their cluster's spot machines are away (--gang)"]
    return ["a cluster trains with all of its machines only (--elastic)"]


def _unmeasured(problem: Problem, plans: tuple[Plan, ...]) -> list[str]:
    """The GPUs of the plans whose matrix speed is a share of the vendor's peak, if any."""
    timed = {timing.gpu for timing in problem.job.timings}
    names = dict.fromkeys(machine.gpu for plan in plans for machine in plan.machines)
    guessed = [name for name in names if name not in timed and _is_guessed(problem, name)]
    sentence = f"speed of {', '.join(guessed)} from the vendor's peak, not measured"
    return [sentence] if guessed else []


def _rented_elsewhere(problem: Problem, plans: tuple[Plan, ...]) -> list[str]:
    """Assumed hardware of shown machines from an offers file that does not describe it."""
    shown = (m for p in plans for m in (*p.machines, *(p.fallback.machines if p.fallback else ())))
    names = sorted({m.instance_type for m in shown if m.provider == "own"})
    types = [problem.catalog.instance_types["own", name] for name in names]
    sentences = [_assumed(t) for t in types if isinstance(t, OwnMachine) and t.assumed]
    alone = [t.instance_type for t in types if t.network_basis == "unknown"]
    if alone:
        sentences.append(f"network of {', '.join(alone)} unknown (column network_gbit_per_s)")
    return sentences


def _assumed(machine: OwnMachine) -> str:
    usual = "links as usual for the GPU, all else the least that is usual"
    like = f"as {machine.like}" if machine.like else usual
    parts = ", ".join(machine.assumed)
    return f"{machine.instance_type}: {parts}, {like} (columns of --offers)"


def _own(problem: Problem, plans: tuple[Plan, ...]) -> list[str]:
    """The GPUs of the plans whose matrix speed the user measured, and the machines' links."""
    own_source = OWN_BENCH_SOURCE.source
    names = dict.fromkeys(machine.gpu for plan in plans for machine in plan.machines)
    rows = {name: _speed(problem, name) for name in names}
    own = [n for n, row in rows.items() if row and row.source == own_source]
    sentences = [f"speed of {', '.join(own)} from your own benchmarks"] if own else []
    used = {(m.provider, m.instance_type) for plan in plans for m in plan.machines}
    types = problem.catalog.instance_types
    mine = [key[1] for key in sorted(used) if key in types and types[key].source == own_source]
    if mine:
        sentences.append(f"links of {', '.join(mine)} from your own benchmarks")
    return sentences


def _calibrated(problem: Problem, plans: tuple[Plan, ...]) -> list[str]:
    """That the user's own runs speak in the figures, and for which GPUs of the plans none does."""
    own = problem.job.calibration
    if own is None:
        return []
    timed = {name for name, _ in own.gpus}
    names = dict.fromkeys(machine.gpu for plan in plans for machine in plan.machines)
    others = [name for name in names if name not in timed]
    sentence = f"speed calibrated on {own.rows} of your own runs on {own.as_of}"
    return [f"{sentence}, none of them on {', '.join(others)}" if others else sentence]


def _carried(problem: Problem, plans: tuple[Plan, ...]) -> list[str]:
    """That the user's own timings are in another precision, and what that adds to the plans."""
    carried = problem.job.carried
    if carried is None or not plans:
        return []
    of = f"from your own timings in {carried.precision} to {problem.job.precision}"
    return [f"speed carried {of}: ± {100.0 * carried.sd:.0f} % in addition"]


def _is_guessed(problem: Problem, name: str) -> bool:
    row = _speed(problem, name)
    return row is not None and row.kind == "fallback"


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
    remarks = (*problem.job.remarks, *_slow_timings(problem), *_fast_timings(problem))
    if not plans:
        return remarks
    first = plans[lead - 1]
    flags = {m.price_flag for m in first.machines} | {s.price_flag for s in first.sites}
    sentences = list(remarks)
    sentences += _unsaved(problem, plans)
    chance, asked = first.estimate.chance, problem.limits.confidence
    if chance < asked:
        sentences.append(
            f"plan {lead} meets the limits in only {100 * chance:.1f} % of its simulated runs: no "
            f"plan was found that meets them in {100 * asked:g} %"
        )
    if any(m.price_kind == "derived" for m in first.machines):
        sentences.append(
            f"plan {lead} relies on a derived price; --quoted-only leaves such prices out"
        )
    if "floor" in flags and first.machines[0].provider in SPOT_AUCTIONS:
        sentences.append(
            f"a zone of plan {lead} is quoted at the 10 % price floor; the median of its type is "
            "used"
        )
    return tuple(sentences)


def _slow_timings(problem: Problem) -> tuple[str, ...]:
    """Warnings of timings that are so slow that their unit or batch is probably wrong."""
    job, catalog = problem.job, problem.catalog
    if not job.timings:
        return ()
    gpus = {timing.gpu for timing in job.timings}
    types = [each for each in catalog.instance_types.values() if each.gpu in gpus]
    if not types:
        return ()
    untimed = replace(job, timings=())
    columns = machine_columns(untimed, types, catalog.gpus, catalog.achieved)
    gpu_of = tuple(each.gpu for each in types)
    found = [(each, times_slower(untimed, columns, gpu_of, each)) for each in job.timings]
    return tuple(
        f"the timing on {timing.gpus}x{timing.gpu} is {number(times)} times slower than expected; "
        "check its unit, and that the batch is that of all GPUs"
        for timing, times in found
        if times > UNIT_ERROR
    )


def _fast_timings(problem: Problem) -> tuple[str, ...]:
    """Warnings of timings that compute more than matrix multiplication alone reaches."""
    job, sentences = problem.job, []
    for timing in job.timings:
        known = _speed(problem, timing.gpu)
        if known is None:
            continue
        times = timing.samples_per_s * job.flop_per_sample / (timing.gpus * known.tflops * 1e12)
        if times > MAX_OF_MATMUL:
            sentences.append(
                f"the timing on {timing.gpus}x{timing.gpu} is {number(times)} times what matrix "
                "multiplication reaches; check that its batch is that of all GPUs"
            )
    return tuple(sentences)


def _unsaved(problem: Problem, plans: tuple[Plan, ...]) -> list[str]:
    """A warning that no plan uses the requested checkpoint path, with the possible reason."""
    asked = problem.choice.checkpoint_to
    if asked in ("auto", "none") or any(plan.checkpointing.path == asked for plan in plans):
        return []
    why = "on-demand machines, which need no checkpoints, do better"
    if asked == "anchor":
        why += "; an anchor is an on-demand machine next to spot ones"
        why += " (--no-mix leaves them out)" if problem.choice.mix == "no" else ""
    return [f"no plan shown uses --checkpoint-to {asked}: {why}"]
