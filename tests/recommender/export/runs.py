"""Plans made by hand as they are exported, and how an exported plan is priced again."""

from dataclasses import replace

from recommender.export.description import RunDescription, description_of
from recommender.plan.as_run import LIST_ENDS_ON_DEMAND, NO_SWITCH, ON_VOLUME, ONE_ZONE
from recommender.plan.limits import Limits
from recommender.plan.plan import AsRun, Need, Plan
from tests.recommender import answers

HOUR = 3600.0
LIMITS = Limits(deadline_s=24 * HOUR)


def described(plan: Plan, limits: Limits = LIMITS) -> RunDescription:
    """A plan of the made-up answers as it is run."""
    return description_of(
        plan, "plan 1", answers.JOB, limits, tool="recommend 0.1.0", catalog="2026-11"
    )


WITH_FALLBACK = replace(
    answers.GCP,
    as_run=(
        AsRun((NO_SWITCH,), 61.0, 9 * HOUR, 0.91, 0.0),
        AsRun((LIST_ENDS_ON_DEMAND,), 97.0, 7 * HOUR, 0.992, 0.3),
        AsRun((NO_SWITCH, ONE_ZONE, ON_VOLUME), 66.0, 11 * HOUR, 0.84, 0.0),
    ),
)
GCP = described(WITH_FALLBACK)
AZURE = described(answers.AZURE)
ON_DEMAND = described(answers.ON_DEMAND)
TWO_MACHINES = described(answers.TWO_MACHINES)
AWS = described(
    replace(
        answers.AWS_H100,
        sites=tuple(
            replace(site, zone=zone)
            for site, zone in zip(
                answers.AWS_H100.sites,
                ("use2-az3", "use1-az1", "usw2-az2", "eun1-az1"),
                strict=True,
            )
        ),
        needs=(Need("All P5 Spot Instance Requests", 192, "vcpu", "us-east-2", 0),),
    )
)
MIXED = described(
    replace(
        answers.AWS_H100,
        machines=(*answers.AWS_H100.machines, *answers.ON_DEMAND.machines),
    )
)
ALL = {
    "gcp": GCP,
    "azure": AZURE,
    "on-demand": ON_DEMAND,
    "two-machines": TWO_MACHINES,
    "aws": AWS,
}
# With a job that trains as long as the made-up plan says: that of the others takes 1.1 h.
GCP_LONG = replace(
    GCP,
    job=replace(GCP.job, samples=GCP.job.samples * GCP.plan.estimate.split.work_s / GCP.work_s),
)
