"""What an answer contains besides its plans, and how far the search goes for it."""

from pathlib import Path

from recommender.catalogs.frozen import dataclass
from recommender.inputs.units import Comparison


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """Options of one answer, besides the question itself.

    `program` describes the linear program of the question (`Answer.program`), which refusals always
    have; `worth` plans again to find the value of a little more of each limit there.
    `report` collects what `report.html.page` draws, and implies `worth`.
    """

    top: int = 5  # plans in the table
    compare: Comparison | None = None  # machines the user rents today
    prove: bool = False  # search until the best plan is proven
    verify: bool = False  # simulate the plans on paths of another seed as well (`Answer.checks`)
    explain: int = 0  # number of the plan whose fallback policy is computed (`Answer.policy`)
    program: bool = True
    worth: bool = False
    simulated_plans: bool = False  # collect every promising plan with its runs (`Answer.report`)
    report: bool = False
    save_lp: Path | None = None  # file for the linear program
