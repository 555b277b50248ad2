"""What a question is answered with: the planner's answer as a document or a page, in bytes."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from recommender.catalogs.catalog import Catalog
from recommender.job.jobfile import find_job
from recommender.job.merge_layers import JobFlags
from recommender.market.account_quotas import quotas_of_account
from recommender.plan.answer import Answer
from recommender.plan.frontier import frontier_of
from recommender.planner.options import AnswerOptions
from recommender.planner.recommend import recommend
from recommender.report import frontier as frontier_view
from recommender.report import json_output
from recommender.report.answer_frame import PlanRequest
from recommender.report.html.page import render
from recommender.serve.question import Kind, Question, stated

NOWHERE = Path("/nonexistent")  # no file is read for a caller


def made(kind: Kind, question: Question, catalog: Catalog) -> bytes:
    """The answer to a question, as a page or as JSON."""
    flags = JobFlags(**dict(question.own), measured=question.measured)  # type: ignore[arg-type]
    found = find_job(question.job or None, NOWHERE, flags)
    job, choice = replace(found, machines=question.machines), question.choice
    if question.account:
        choice = replace(choice, quotas=quotas_of_account(question.account, catalog))
    request = PlanRequest(job, question.limits, choice, catalog=catalog.version)
    if kind == "plan":
        return _plan(request, catalog)
    if kind == "frontier":
        return _frontier(request, catalog)
    return _report(request, catalog, stated(question))


def _plan(request: PlanRequest, catalog: Catalog) -> bytes:
    answer = _answer(request, catalog, AnswerOptions(worth=True))
    return json_output.dumps(json_output.document(answer, request)).encode("utf-8")


def _frontier(request: PlanRequest, catalog: Catalog) -> bytes:
    answer = _answer(request, catalog, AnswerOptions(simulated_plans=True))
    simulated = () if answer.report is None else answer.report.simulated_plans
    found = frontier_of(simulated, request.limits)
    return json_output.dumps(frontier_view.document(found, answer, request)).encode("utf-8")


def _report(request: PlanRequest, catalog: Catalog, ask: Mapping[str, str]) -> bytes:
    answer = _answer(request, catalog, AnswerOptions(report=True))
    return render(answer, request, ask).encode("utf-8")


def _answer(request: PlanRequest, catalog: Catalog, options: AnswerOptions) -> Answer:
    return recommend(request.job, request.limits, request.choice, options, catalog=catalog)
