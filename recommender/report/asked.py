"""What was asked, as every view needs it beside the answer."""

from dataclasses import dataclass, field

from recommender.job import Job
from recommender.limits import Choice, Limits, Progress


@dataclass(frozen=True, slots=True)
class Asked:
    """A job, its limits, the offers allowed, and what of the job is already done."""

    job: Job
    limits: Limits = field(default_factory=Limits)
    choice: Choice = field(default_factory=Choice)
    progress: Progress = field(default_factory=Progress)
    catalog: str = ""  # version of the catalog that was read
