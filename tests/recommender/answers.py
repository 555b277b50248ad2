"""Answers made by hand, in the figures of the session that the table is modelled on."""

from dataclasses import replace

from recommender.job.job import Job
from recommender.plan.answer import Answer, Infeasible, PriceDate, Proof, SensitivityStep
from recommender.plan.limits import Choice, Limits
from recommender.plan.plan import (
    BillItem,
    Checkpointing,
    Estimate,
    Fallback,
    Machines,
    Need,
    Plan,
    Site,
    SpotFacts,
    Spread,
    StepSplit,
    TimeSplit,
)
from recommender.report.answer_frame import PlanRequest

HOUR = 3600.0
NOTHING_SAVED = Checkpointing("none", 0, 0, 0, 0, 0, False, (0, 0))
BUCKET = Checkpointing("object_store", 900, 5, 38, 45, 30, False, (600, 1200))

JOB = Job(
    name="llama3-8b-pretrain",
    title="Llama 3 8B, continued pre-training",
    family="decoder",
    parameters=8.03e9,
    active_parameters=8.03e9,
    trainable_parameters=8.03e9,
    sample_unit="sequence",
    tokens_per_sample=8192,
    flop_per_sample=4.18e14,
    samples=122_070,
    global_batch=64,
    gradient_tensors=291,
    hidden=4096,
    layers=32,
    vocabulary=128_256,
    activation_bytes_per_sample=3.2e10,
    recomputed_activation_bytes_per_sample=2.1e9,
    checkpoint_bytes=1.12e11,
    precision="bf16",
)
QUESTION = PlanRequest(JOB, Limits(deadline_s=24 * HOUR), Choice(), catalog="2026-11")


def machines(name: str, gpu: str, place: str, market: str = "spot", **changes: object) -> Machines:
    """One machine of eight GPUs, at ten USD per hour by default."""
    provider, region = place.split(":")
    made = Machines(
        1, provider, name, market, gpu, 8, region, region + "-a", 10.2, "quote", "", "2026-08-21"
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def spread(mean: float, low: float, high: float, unit: float = 1.0) -> Spread:
    """A distribution by mean and span."""
    return Spread(mean * unit, low * unit, mean * unit, high * unit, mean * unit)


def estimate(cost: Spread, time: Spread, chance: float, split: TimeSplit) -> Estimate:
    """What a plan costs and takes, with a step of two seconds."""
    step = StepSplit(
        2.1, 1.5, 0.3, 0.2, 0.05, 0.0, 2, 4, "fsdp", 71.2,
        (("states", 15.0), ("activations", 51.2), ("logits", 4.0), ("reserve", 1.0)),
    )  # fmt: skip
    bill = (
        BillItem("machines, spot", cost.mean * 0.9),
        BillItem("boot disks", cost.mean * 0.04),
        BillItem("checkpoint storage", cost.mean * 0.06),
    )
    return Estimate(cost, time, chance, chance, 4.2, 0.34, split, step, bill, 0.23, 0.11, 0.9, 11.0)


def plan(
    rented: Machines,
    regions: tuple[str, ...],
    cost: tuple[float, float, float],
    hours: tuple[float, float, float],
    chance: float,
    **changes: object,
) -> Plan:
    """A plan with its figures; spot plans save to the bucket and can fall back."""
    spot = rented.market == "spot"
    waiting = 1.9 * HOUR if spot else 0.0
    split = TimeSplit(0.1 * HOUR, 4.5 * HOUR, 60, 0.6 * HOUR if spot else 0.0, HOUR, waiting)
    made = Plan(
        machines=(rented,),
        sites=tuple(Site(r, r + "-a", rented.usd_per_hour, "") for r in regions) if spot else (),
        checkpointing=BUCKET if spot else NOTHING_SAVED,
        fallback=None,
        estimate=estimate(spread(*cost), spread(*hours, unit=HOUR), chance, split),
        usd_per_hour=rented.usd_per_hour,
        max_usd_per_hour=rented.usd_per_hour,
        gpus=rented.count * rented.gpus,
        flopp=8.1e17,
        needs=(),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


GCP = plan(
    machines("a3-highgpu-8g", "H100", "gcp:europe-north1"),
    ("europe-north1", "europe-west9", "asia-south2"),
    (64, 38, 108), (8.0, 4.2, 13.8), 0.991,
    fallback=Fallback(
        (machines("a3-highgpu-8g", "H100", "gcp:europe-north1", "on_demand"),), 97, 1, 1440, 0.01
    ),
    needs=(Need("Preemptible NVIDIA H100 GPUs", 8, "gpu", "europe-north1", 0),),
    saving=0.74,
    labels=("best of gcp",),
    spot=SpotFacts(
        "h100", 3240, 3240, 1800, 0.63, 0.95, "measured", "2025-10-31",
        waiting_p50_s=4200, waiting_p95_s=22_000, never_waits=0.2,
    ),
)  # fmt: skip
AWS_A100 = plan(
    machines("p4d.24xlarge", "A100", "aws:eu-north-1", usd_per_hour=4.9),
    ("eu-north-1", "us-east-1", "us-east-2", "eu-west-1"),
    (84, 45, 209), (18.0, 10.6, 24.0), 0.972, saving=0.66,
)  # fmt: skip
AWS_H100 = plan(
    machines("p5.48xlarge", "H100", "aws:us-east-2", usd_per_hour=19.9),
    ("us-east-2", "us-east-1", "us-west-2", "eu-north-1"),
    (98, 61, 144), (8.0, 4.1, 13.9), 0.993, saving=0.61,
)  # fmt: skip
AZURE = plan(
    machines("Standard_ND96isr_H100_v5", "H100", "azure:eastus2", usd_per_hour=18.2,
             price_kind="derived", price_flag="zone_median"),
    ("eastus2", "westus3", "swedencentral"),
    (113, 71, 166), (9.1, 4.2, 16.8), 0.984, saving=0.55, labels=("best of azure",),
)  # fmt: skip
ON_DEMAND = plan(
    machines("p4d.24xlarge", "A100", "aws:us-east-1", "on_demand", usd_per_hour=21.96),
    (), (249, 168, 351), (11.3, 7.6, 16.0), 0.995, saving=0.0, labels=("all on-demand",),
)  # fmt: skip
ONE_GPU = plan(
    machines("p5.4xlarge", "H100", "aws:us-east-2", gpus=1, usd_per_hour=2.5),
    ("us-east-2",), (71, 40, 101), (36.0, 30.0, 52.0), 0.02, labels=("one GPU",),
)  # fmt: skip
TWO_MACHINES = plan(
    machines("a3-highgpu-8g", "H100", "gcp:europe-north1", count=2),
    ("europe-north1",), (83, 50, 140), (5.0, 2.4, 9.0), 0.99, labels=("two machines",),
)  # fmt: skip
PROOF = Proof("optimal", 0.0, 9_800, 41_210, 0)
PRICES = (
    PriceDate("aws", "on_demand", "2026-08-21", 888),
    PriceDate("aws", "spot", "2026-08-21", 1354),
    PriceDate("gcp", "on_demand", "2026-07-30", 837),
    PriceDate("gcp", "spot", "2026-07-30", 987),
    PriceDate("azure", "on_demand", "2026-05-20", 665),
    PriceDate("azure", "spot", "2026-05-20", 590),
)
ANSWER = Answer(
    status="ok",
    goal="cost",
    plans=(GCP, AWS_A100, AWS_H100, AZURE, ON_DEMAND),
    baselines=(ONE_GPU, ON_DEMAND, TWO_MACHINES),
    compared=None,
    lower_bound_usd=46.2,
    lower_bound_s=1.3 * HOUR,
    sensitivity=(
        SensitivityStep("one timed step on any H100 (--measured)",
             "the spans rest on a speed known to ±23 %; they shrink by half", None),
        SensitivityStep("--deadline 9h",
             "plan 1 still, 121 USD: on-demand is then needed in 3 runs of 10", GCP),
        SensitivityStep("spot price of plan 1 above 13.4 USD/h", "plan 2", AWS_A100),
    ),
    proof=PROOF,
    infeasible=None,
    prices=PRICES,
    assumptions=(
        "data location unknown, egress not included (--data-at)",
        "H100 spot runs like those of 13 GCP zones in Oct 2025 (1 GPU each, carried over to "
        "8-GPU VMs)",
        "cold container",
        "on-demand H100 to be had within the hour in 70 % of cases",
    ),
    warnings=(),
    more_plans=214,
    more_regions=38,
    seed=1,
)  # fmt: skip

HURT = PlanRequest(
    JOB,
    Limits(deadline_s=2 * HOUR, hourly_usd=60),
    Choice(providers=("aws",), market="on_demand"),
    catalog="2026-11",
)


def owned(count: int, cost: float, hours: float) -> Plan:
    """`count` p5.48xlarge on-demand."""
    rented = machines(
        "p5.48xlarge", "H100", "aws:us-east-2", "on_demand", usd_per_hour=55.04, count=count
    )
    return plan(rented, (), (cost, cost * 0.8, cost * 1.3), (hours, hours * 0.8, hours * 1.4), 0.95)


INFEASIBLE = replace(
    ANSWER,
    status="infeasible",
    plans=(),
    baselines=(),
    sensitivity=(),
    assumptions=(),
    more_plans=0,
    more_regions=0,
    infeasible=Infeasible(
        binding=(
            "--hourly 60: one p5.48xlarge (55.04 USD/h) is the most it buys",
            "it takes 4.9 h typically, 6.8 h with 95 % chance: 4.8 h over the deadline",
        ),
        relaxed=(
            SensitivityStep("--deadline 6h50m", "one machine is then enough", owned(1, 267, 4.9)),
            SensitivityStep("--hourly 221", "four machines", owned(4, 313, 1.4)),
            SensitivityStep("--confidence 0.5 --hourly 166", "three machines", owned(3, 301, 1.8)),
            SensitivityStep("allowing spot", "interruptions eat the slack", None, offers=True),
            SensitivityStep("--measured", "6.8 h becomes 6.0 h", None),
        ),
        fastest=owned(16, 528, 0.6),
    ),
)
