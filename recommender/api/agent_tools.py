"""The tools that agents may call: questions of the command line, answered with its JSON documents.

Nothing here rents machines, writes files or uses the network. The only file that is read is the
user's own catalog: a job is a preset, or the text of a job file.
"""

from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from recommender.api.calls import limits_of, recommend
from recommender.catalogs.store import Store, default_root, newest_good
from recommender.errors import UsageError
from recommender.export.answer_file import answer_of
from recommender.export.start import start_line, usual_target
from recommender.export.targets import export_files
from recommender.inputs.units import parse_duration, parse_gpu, parse_money, parse_share
from recommender.inputs.units.times import now
from recommender.job.draft import StatedJob, draft_job
from recommender.job.job import Job
from recommender.job.jobfile import find_job, job_from_text
from recommender.job.preset_files import presets
from recommender.job.schema import MAX_STATED
from recommender.plan.limits import Choice, Limits, Progress
from recommender.planner.problem import planning_problem
from recommender.planner.standing import standing
from recommender.report.answer_frame import PlanRequest
from recommender.report.catalog import status
from recommender.report.draft_page import draft_page
from recommender.report.json_output import dumps
from recommender.report.short_forms import short_object
from recommender.report.standing import document
from recommender.risk.random_numbers import SEED
from recommender.text import shown, unknown

_NOWHERE = Path("/nonexistent")  # where models of a draft could be files: nowhere
_KEPT = 64  # answers of a server that can be exported


class _Answers:
    """The documents of the last answers, by a name for each."""

    def __init__(self) -> None:
        self.documents: dict[str, dict[str, Any]] = {}

    def keep(self, document: dict[str, Any]) -> str:
        """Keep a document and name it: equal answers have equal names."""
        name = sha256(dumps(document).encode()).hexdigest()[:12]
        self.documents[name] = self.documents.pop(name, document)
        for oldest in list(self.documents)[:-_KEPT]:
            del self.documents[oldest]
        return name

    def named(self, name: str) -> dict[str, Any]:
        """The document of a name; raises `UsageError` if there is none."""
        if name not in self.documents:
            again = "pass the id of an answer of recommend_plan, or call it again"
            raise UsageError(f"id {shown(name)} names none of the last {_KEPT} answers; {again}")
        return self.documents[name]


_ANSWERS = _Answers()


def recommend_plan(
    job: str,
    deadline: str | None = None,
    budget: str | None = None,
    hourly: str | None = None,
    confidence: str | None = None,
    providers: list[str] | None = None,
    regions: list[str] | None = None,
    gpus: list[str] | None = None,
    spot: bool = True,
    max_machines: int = 16,
    machines: int | None = None,
    done: str | None = None,
    elapsed: str | None = None,
    spent: str | None = None,
) -> dict[str, Any]:
    """Rank cloud GPU VMs to rent for a training job, with cost, time and the chance to finish in
    time.

    job: a preset (llama3-8b-lora, resnet50-imagenet, ...) or the YAML text of a job file from
    init_job. deadline "24h" gives the cheapest plans in time, budget "200" (USD) or hourly "30"
    (USD/h) for the fastest; machines fixes the number of machines. done "40%", elapsed "9h" and
    spent "61" plan the rest of a running job. The first of `plans` is the one to rent; each has
    its `catch`, and `first` says what to ask the provider for. `id` names the answer for
    export_plan and answer_document. If `status` is "infeasible", `why` says which limit is in the
    way, `would_work` what meets it.
    """
    progress = _progress(done, elapsed, spent)
    limits = Limits(max_machines=max_machines)
    if confidence is not None:
        limits = replace(limits, confidence=parse_share(confidence, "confidence"))
    answer = recommend(
        _on(_job(job), machines), limits, _choice(providers, regions, gpus, spot),
        deadline=deadline, budget=budget, hourly=hourly, progress=progress,
    )  # fmt: skip
    assert answer.request is not None
    return {"id": _ANSWERS.keep(answer.to_dict()), **short_object(answer, answer.request)}


def answer_document(id: str) -> dict[str, Any]:
    """Return everything about an answer of recommend_plan: all plans, bills, assumptions (90 kB).

    The document has the schema recommend.plan/v1; `lead` is the number of the plan to rent.
    """
    return _ANSWERS.named(id)


def explain_machine(
    machine: str,
    job: str,
    region: str | None = None,
    deadline: str | None = None,
    budget: str | None = None,
    hourly: str | None = None,
    spot: bool = True,
) -> dict[str, Any]:
    """Explain why a machine is not recommended: what it lacks, its rank, what would make it the
    best.

    machine: an instance type such as p5.48xlarge, in `region` or anywhere. The answer has the
    schema recommend.standing/v1 and takes about ten seconds.
    """
    the_job, limits = _job(job), limits_of(Limits(), deadline, budget, hourly)
    choice, regions = _choice(None, None, None, spot), (region,) if region else ()
    catalog = newest_good(Store(default_root())).catalog
    problem = planning_problem(the_job, limits, choice, catalog, Progress(), now(), SEED)
    found = standing(machine, problem, regions)
    return document(found, PlanRequest(the_job, limits, choice, catalog=catalog.version))


def init_job(
    model: str,
    examples: str,
    tokens_per_example: str | None = None,
    epochs: str | None = None,
    batch: str | None = None,
    batch_per_gpu: str | None = None,
    method: str | None = None,
    image_size: str | None = None,
    post_training: str | None = None,
    stack: str | None = None,
) -> dict[str, Any]:
    """Write a job file for a training: its text, what was understood and what was assumed.

    model: a Hugging Face name that is known offline, such as Qwen/Qwen2.5-7B; method: full, lora or
    qlora; post_training: dpo, grpo or ppo; stack: the training software, such as trl or nemo, which
    decides the speed. Pass `text` as `job` to the other tools.
    """
    wanted = StatedJob(
        model=model, examples=examples, tokens_per_example=tokens_per_example, epochs=epochs,
        batch=batch, batch_per_gpu=batch_per_gpu, method=method, image_size=image_size,
        post_training=post_training, stack=stack,
    )  # fmt: skip
    draft = draft_job(wanted, None, _NOWHERE)
    job = job_from_text(draft.text, "the job", "my-job")
    page = draft_page(draft, job, "recommend.yaml", "recommend --deadline 24h")
    return {"text": draft.text, **page.facts}


def export_plan(id: str, to: str | None = None, plan: str | None = None) -> dict[str, Any]:
    """Return the files that run a plan of a recommend_plan answer, by name; nothing is rented.

    id: that of the answer.
    to: skypilot, dstack, slurm, torchrun, terraform, aws-cli, gcloud or azure-cli (default:
    skypilot, or a target that supports the plan); plan: a number or a role such as cheapest
    (default: the leading plan). `start` is the command that launches it, for torchrun on each
    machine.
    """
    found = answer_of(_ANSWERS.named(id))
    run = found.described(found.named(plan))
    target = to or usual_target(run.plan)
    files = {each.name: each.text for each in export_files(run, target, "")}
    return {"target": target, "files": files, "start": start_line(run.plan, target, "")}


def catalog_status() -> dict[str, Any]:
    """Return the number of offers of each provider and the age of their prices."""
    found = newest_good(Store(default_root()))
    facts = status(found.catalog, found.name or "shipped snapshot").facts
    return {**facts, "passed_over": list(found.skipped)}


TOOLS = (
    recommend_plan, answer_document, explain_machine, init_job, export_plan, catalog_status,
)  # fmt: skip


def _job(word: str) -> Job:
    """A job by its name, or by the text of its file; no file is read."""
    if "\n" in word or ":" in word:
        return job_from_text(word, "the job", "my-job")
    if word not in presets():
        raise UsageError(unknown("job", word, presets(), "or pass the YAML text of a job file"))
    return find_job(word)


def _on(job: Job, machines: int | None) -> Job:
    """A job on so many machines, or on as many as it states."""
    if machines is None:
        return job
    if not 1 <= machines <= MAX_STATED:
        raise UsageError(f"machines: {machines} is none of 1 to {MAX_STATED}")
    return replace(job, machines=machines)


def _choice(
    providers: list[str] | None, regions: list[str] | None, gpus: list[str] | None, spot: bool
) -> Choice:
    return Choice(
        providers=tuple(providers or ()),
        regions=tuple(regions or ()),
        gpus=tuple(parse_gpu(word, "gpus") for word in gpus or ()),
        market="any" if spot else "no_spot",
    )


def _progress(done: str | None, elapsed: str | None, spent: str | None) -> Progress:
    return Progress(
        done_share=0.0 if done is None else parse_share(done, "done", zero=True),
        elapsed_s=0.0 if elapsed is None else parse_duration(elapsed, "elapsed", zero=True),
        spent_usd=0.0 if spent is None else parse_money(spent, "spent", zero=True),
    )
