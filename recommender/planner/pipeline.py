"""Builds an answer: the pool of its plans, and everything that is selected from it."""

from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError
from recommender.inputs.files import writing
from recommender.optimize.linear_program import write
from recommender.optimize.watch import Watch
from recommender.plan.answer import (
    Answer,
    Infeasible,
    ProgramFacts,
    SensitivityStep,
    Trio,
)
from recommender.plan.plan import Plan
from recommender.plan.report_data import ReportData
from recommender.planner.assumptions import assumptions_of, warnings_of
from recommender.planner.baselines import (
    baselines,
    lower_bounds_of,
    more_regions,
    price_dates,
    proof_of,
)
from recommender.planner.current_setup import current_setup
from recommender.planner.options import AnswerOptions
from recommender.planner.plan_builder import Evaluated, ranks_in
from recommender.planner.plan_pool import PlanPool
from recommender.planner.problem import Problem
from recommender.planner.program_facts import ReportedProgram, program_facts, reported_program
from recommender.planner.ranking import HORIZON_S, Ranked, ranked_plans
from recommender.planner.sensitivity import sensitivity, tail_cut
from recommender.planner.ties import best_shares
from recommender.planner.trio import TrioPlans, choose_trio, surer_step, table_of
from recommender.planner.trio_candidates import TrioCandidates
from recommender.text import duration, shown_path


@dataclass(frozen=True)
class Pipeline:
    """The answer to one problem, computed part by part."""

    problem: Problem
    options: AnswerOptions = field(default_factory=AnswerOptions)
    watch: Watch = field(default_factory=Watch)  # what it shows of its progress

    @property
    def _worth(self) -> bool:
        """Whether to plan again for the value of a little more of each limit."""
        return self.options.worth or self.options.report or self.options.explain > 0

    @cached_property
    def pool(self) -> PlanPool:
        """The plans that every part of the answer selects from."""
        return PlanPool(self.problem, self.options.prove, self.watch)

    @cached_property
    def candidates(self) -> TrioCandidates:
        """Candidates for its first plans besides the best by the goal."""
        return TrioCandidates(self.pool)

    @cached_property
    def ranked(self) -> Ranked:
        """The best plans by the goal; empty if no plan meets the limits."""
        curve = self.problem.limits.goal == "frontier"
        by_value = self.problem.limits.goal == "cost" and self.problem.limits.objective == "auto"
        others = self.candidates.references if curve else ()
        others = self.candidates.worth_most if by_value else others
        found = ranked_plans(self.pool, self.options.top, others)
        return Ranked((), 0) if self.problem.limits.by_value and _is_endless(found) else found

    @cached_property
    def program(self) -> ReportedProgram | None:
        """The linear program of the answer; None if no machine can train the job."""
        return reported_program(self.pool, self.ranked.plans[:1])

    @property
    def _program_facts(self) -> ProgramFacts | None:
        """What the answer says of the program, if it is asked for or conflicts with the limits."""
        if self.ranked.plans and not self.options.program and not self._worth:
            return None
        return program_facts(self.pool, self.program, self._worth)

    @cached_property
    def trio_plans(self) -> TrioPlans | None:
        """The leading plans; None if no plan meets the limits."""
        if not self.ranked.plans:
            return None
        return choose_trio(self.candidates, self.ranked)

    @cached_property
    def table(self) -> tuple[Evaluated, ...]:
        """The printed plans, in the order of their numbers."""
        shown = table_of(self.trio_plans, self.ranked, self.problem.limits)
        return tuple(map(self.pool.builder.in_full, shown))

    @property
    def best(self) -> int:
        """Number of the best plan by the goal."""
        plans = self.ranked.plans
        return ranks_in(self.table)[plans[0].candidate] if plans else 1

    @property
    def lead(self) -> int:
        """Number of the leading plan."""
        return 1 if self.trio is None else self.trio.picks[0].rank

    @cached_property
    def trio(self) -> Trio | None:
        """The three leading plans by their numbers in the table."""
        found = self.trio_plans
        return None if found is None else found.numbered(self.table, self.problem.limits)

    def answer(self) -> Answer:
        """Everything that the answer contains."""
        # Machines that the user rents now, before the search: what cannot run the job is refused.
        compare = self.options.compare
        compared = None if compare is None else current_setup(self.problem, compare).plan
        if self.options.save_lp is not None:
            save_program(self.program, self.options.save_lp)
        return self._answer(compared, None if self.ranked.plans else self._refusal())

    def _refusal(self) -> Infeasible:
        """Why no plan meets the limits; where one does in months, why none within the horizon."""
        from recommender.planner.infeasibility import infeasible  # most answers need none

        if not self.pool.best.plans:
            return infeasible(self.pool)
        problem, best = self.problem, self.pool.best.best
        soon = replace(problem.limits, deadline_s=HORIZON_S)
        why = infeasible(PlanPool(replace(problem, limits=soon)), problem.limits)
        late = f"only plans of {duration(best.time_s)} keep it, and prices change meanwhile"
        return replace(why, binding=(late, *why.binding))

    def _answer(self, compared: Plan | None, failed: Infeasible | None) -> Answer:
        problem, ranked = self.problem, self.ranked
        table = self._with_best_shares()
        plans = tuple(evaluated.plan for evaluated in table)
        plain = () if failed else baselines(self.pool, table)
        min_usd, min_s = lower_bounds_of(self.pool)
        return Answer(
            status=status_of(failed),
            goal=problem.limits.goal,
            plans=plans,
            baselines=tuple(evaluated.plan for evaluated in plain),
            compared=compared,
            lower_bound_usd=min_usd,
            lower_bound_s=min_s,
            sensitivity=() if failed else self._changes(),
            proof=proof_of(self.pool),
            infeasible=failed,
            prices=price_dates(problem),
            assumptions=assumptions_of(problem, plans, 1 if failed else self.lead),
            warnings=warnings_of(problem, plans, self.lead),
            more_plans=ranked.more,
            more_regions=more_regions(plans),
            seed=problem.seed,
            program=self._program_facts,
            trio=None if failed else self.trio,
            best=self.best,
            by_value=problem.limits.by_value,
            report=self._report_data(table, plain),
        )

    def _changes(self) -> tuple[SensitivityStep, ...]:
        """What other limits are worth: of the plan best by the goal, and of the one that leads.

        Not of the fastest at any price, which is none of the three.
        """
        cut = tail_cut(self.pool, self.table[self.lead - 1].plan)
        asked = not self.problem.limits.by_value or self.best in self._picked
        steps = sensitivity(self.pool, self.ranked.plans[0]) if asked else ()
        if cut and self.lead != self.best:
            steps, cut = _of_plan(self.best, steps), _of_plan(self.lead, cut)
        led = self.trio_plans if self.problem.limits.objective == "auto" else None
        surer = None if led is None else surer_step(self.candidates, led.sensible)
        return (*steps, *cut, *([surer] if surer else []))

    @property
    def _picked(self) -> set[int]:
        """The numbers of the three plans."""
        return set() if self.trio is None else {pick.rank for pick in self.trio.picks}

    def _with_best_shares(self) -> tuple[Evaluated, ...]:
        """The plans of the table, with how often each of them is the best."""
        plans = tuple(evaluated.plan for evaluated in self.table)
        shares = best_shares(plans, self.problem.limits, self.problem.seed)
        return tuple(
            replace(each, plan=replace(each.plan, best_share=share))
            for each, share in zip(self.table, shares, strict=True)
        )

    def _report_data(
        self, table: tuple[Evaluated, ...], plain: tuple[Evaluated, ...]
    ) -> ReportData | None:
        options = self.options
        if not options.simulated_plans and not options.report:
            return None
        from recommender.planner.report_data import report_data  # most answers need none

        return report_data(self.pool, table, plain, self.lead, with_runs=options.report)


def _is_endless(found: Ranked) -> bool:
    """Whether every plan takes longer than anything is known ahead."""
    return bool(found.plans) and all(p.plan.estimate.time.p50 > HORIZON_S for p in found.plans)


def _of_plan(rank: int, steps: tuple[SensitivityStep, ...]) -> tuple[SensitivityStep, ...]:
    """Changes that say which plan they are compared with; what changes nothing is of every plan."""
    return tuple(
        replace(step, effect=f"plan {rank}: {step.effect}") if step.changes else step
        for step in steps
    )


def status_of(failed: Infeasible | None) -> Literal["ok", "infeasible", "unknown"]:
    """The status of an answer; "infeasible" requires a proof."""
    if failed is None:
        return "ok"
    return "unknown" if failed.unexplored else "infeasible"


def save_program(reported: ReportedProgram | None, path: Path) -> None:
    """Write the linear program of the question; raises UsageError if that fails."""
    typed = f"--save-lp {shown_path(path)}"
    if reported is None:
        raise UsageError(f"{typed}: no machine can train the job, so there is no program to write")
    program = reported.program
    with writing(typed):
        write(program.model, path, () if reported.row >= 0 else program.conflict())
