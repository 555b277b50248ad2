"""`recommend init`: a job file for one's own training, from questions, flags or a tool's file."""

import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import ClassVar

import typer

from recommender.catalogs.files import replace_file
from recommender.catalogs.frozen import dataclass
from recommender.cli.flags import Word, flag, switch
from recommender.cli.groups import command_app
from recommender.cli.open_catalog import NEW_ACCOUNT
from recommender.cli.options import FORCE, PageFlags
from recommender.cli.output import show_page
from recommender.errors import UsageError
from recommender.inputs import units
from recommender.inputs.files import writing
from recommender.inputs.project_software import (
    FoundSoftware,
    find_software,
    find_trainings,
    training_scripts,
)
from recommender.inputs.training_configs.read import read_together
from recommender.inputs.training_configs.training_config import TrainingConfig
from recommender.inputs.units.times import now
from recommender.job.draft import (
    MODEL,
    Draft,
    Question,
    StatedJob,
    draft_job,
    network_of,
    questions,
)
from recommender.job.jobfile import job_from_text
from recommender.job.merge_layers import FILE
from recommender.networks.hub import fetch_config
from recommender.report.draft_page import draft_page
from recommender.text import shown, shown_path


@dataclass(frozen=True, slots=True)
class InitFlags:
    """What flags may state about the job, so that it is not asked."""

    PANEL: ClassVar = "The job"
    model: Word = flag(
        "MODEL", "Network: a known model such as Qwen/Qwen2.5-7B, or a config.json file."
    )
    method: Word = flag("full|lora|qlora", "Train all weights, or adapters only.")
    lora_rank: Word = flag("N", "Rank of the adapters.")
    tokens: Word = flag("N", "Instead: tokens to train on, all passes.")
    samples: Word = flag("N", "Instead: samples to train on, all passes.")
    examples: Word = flag("N", "Examples in the data set (one epoch).")
    tokens_per_example: Word = flag("N", "Mean number of tokens in an example.")
    image_size: Word = flag("N", "Image side in pixels.")
    epochs: Word = flag("N", "Passes over the data set.")
    batch: Word = flag("N", "Examples per optimiser step on all GPUs together.")
    batch_per_gpu: Word = flag("N", "Instead: examples per step and GPU.")
    gpus: Word = flag("N", "Number of GPUs that the file of --from is used with.")
    post_training: Word = flag(
        "dpo|kto|reward|grpo|ppo|distillation", "Training on preferences or rewards."
    )
    data_at: Word = flag("PLACE", "Where the data lie, and their size: aws:us-east-1,150GB.")
    stack: Word = flag("NAME", "Training software, such as trl; else what the folder's files show.")


def init(
    flags: InitFlags,
    page: PageFlags,
    source: list[str] | None = flag(
        "FILE",
        "Configuration or script of your training tool: axolotl, TRL or transformers, "
        "LLaMA-Factory, torchtune, litgpt, torchtitan, NeMo, Megatron-LM, llm-foundry, verl, "
        "OpenRLHF, Lightning, DeepSpeed, accelerate, a Python or shell script; again for a "
        "second file beside it.",
        "--from",
    ),
    fetch: bool = switch("Download the model's config.json from the hub."),
    deadline: Word = flag("TIME", "Deadline in the printed command: 24h."),
    to: str = flag("FILE", "Job file to write.", default=FILE),
    force: bool = FORCE,
    yes: bool = switch("Ask no questions; use common values for the rest.", "--yes", "-y"),
) -> None:
    """Write a job file for your own training, from questions, flags, or your tool's file.

    \b
    recommend init
    recommend init --model Qwen/Qwen2.5-7B --examples 50k --tokens-per-example 600 --epochs 3
    recommend init --from axolotl.yaml --gpus 8 --examples 50k
    """

    path = Path(to)
    _refuse_early(path, deadline, force)
    config = _training_config(source)
    if config is None and flags.model is None:
        config, source = _of_folder(path.parent)
    stated = StatedJob(**{f.name: getattr(flags, f.name) for f in fields(flags)})
    if fetch:
        stated = _fetched(stated, path.parent)
    project, new = find_software(path.parent), False
    if not yes and sys.stdin is not None and sys.stdin.isatty():
        stated = _asked(stated, config, path.parent, project)
        deadline = deadline or _answer(_DEADLINE, _is_deadline)
        new = _answer(_ACCOUNT, _is_account) == "new"
    if stated.model is None and config is None:
        _refuse_unread(path.parent)
    draft = draft_job(stated, config, path.parent, project)
    job = job_from_text(draft.text, shown_path(path), path.stem, path.parent)
    _write(path, draft)
    next_ = _next(path, deadline, new)
    show_page(draft_page(draft, job, shown_path(path), next_, source), page)


def _refuse_early(path: Path, deadline: str | None, force: bool) -> None:
    """Refuse what needs no reading: a file that is there, a deadline that is none."""
    if os.path.lexists(path) and not force:
        raise UsageError(f"{shown_path(path)} exists; write --force to replace it, or --to FILE")
    if deadline is not None:
        units.parse_deadline(deadline, now())


def _training_config(sources: list[str] | None) -> "TrainingConfig | None":
    return read_together([Path(each) for each in sources]) if sources else None


def _of_folder(folder: Path) -> "tuple[TrainingConfig | None, list[str] | None]":
    """The one training that the folder's own files describe, instead of a network of nobody's."""

    found = find_trainings(folder)
    if len(found) > 1:
        names = ", ".join(shown_path(path) for path, _ in found[:5])
        raise UsageError(f"several files here describe a training ({names}); name one: --from FILE")
    return (found[0][1], [str(found[0][0])]) if found else (None, None)


def _refuse_unread(folder: Path) -> None:
    """Refuse to plan a network of nobody's where scripts train one that could not be read."""

    if scripts := training_scripts(folder):
        names = ", ".join(shown_path(path) for path in scripts[:5])
        raise UsageError(
            f"no network that is known could be read from the scripts here ({names}); name it with "
            "--model (a known model or a config.json), or a script or configuration with --from"
        )


def _fetched(stated: "StatedJob", folder: Path) -> "StatedJob":
    if stated.model is None:
        raise UsageError("--fetch needs --model: owner/name on the hub")
    return replace(stated, model=fetch_config(stated.model, folder).name)


def _asked(
    stated: "StatedJob",
    config: "TrainingConfig | None",
    folder: Path,
    project: "FoundSoftware | None",
) -> "StatedJob":
    """Ask what flags, file and project do not say; again after an invalid answer."""

    def answered(each: Question) -> "StatedJob":
        while True:
            answer = _typed(each.text, each.usual)
            found = replace(stated, **{each.field: answer})
            try:
                _checked(found, config, folder)
            except UsageError as error:
                typer.echo(f"{error}", err=True)
            else:
                return found

    if stated.model is None and (config is None or not (config.model or config.network)):
        text = "Model: a name on the Hugging Face hub, or the path of a config.json"
        stated = answered(Question("model", text, MODEL))
    _checked(stated, config, folder)
    answered_fields = _answered_by(config) | ({"batch"} if stated.batch_per_gpu else set())
    answered_fields |= {"stack"} if project else set()
    for each in questions(network_of(stated, config, folder)):
        if getattr(stated, each.field) is None and each.field not in answered_fields:
            stated = answered(each)
    return stated


def _checked(stated: "StatedJob", config: "TrainingConfig | None", folder: Path) -> None:
    """Refuse what cannot become a job, with usual values for what is still to be asked."""

    job_from_text(draft_job(stated, config, folder).text, "answers", "answers", folder)


def _answered_by(config: "TrainingConfig | None") -> frozenset[str]:
    """What the file of a tool has answered."""
    if config is None:
        return frozenset()
    answers = {
        "method": config.method,
        "epochs": config.epochs or config.steps,
        "batch": config.batch or config.micro_batch,
        "examples": config.steps or config.samples or config.total_tokens,
        "tokens_per_example": config.steps or config.total_tokens,
        "stack": config.software,
    }
    return frozenset(name for name, value in answers.items() if value)


_DEADLINE = "Deadline (24h, 3d, tomorrow 08:00; none: the whole cost-time curve)", "none"
_ACCOUNT = "Cloud account: new, or old with quotas that suffice", "old"


def _answer(question: tuple[str, str], check: "Callable[[str], str]") -> str:
    """Ask about the plan, not the job; again after an invalid answer."""
    while True:
        try:
            return check(_typed(*question).strip())
        except UsageError as error:
            typer.echo(f"{error}", err=True)


def _typed(text: str, usual: str) -> str:
    """What is typed; at the end of the input, or at Ctrl-C, the call ends as an interrupted one."""
    try:
        return str(typer.prompt(text, default=usual, err=True))
    except typer.Abort:
        raise KeyboardInterrupt from None


def _is_deadline(word: str) -> str:
    if word.lower() == "none":
        return ""
    units.parse_deadline(word, now())
    return word


def _is_account(word: str) -> str:
    if word.lower() not in ("new", "old"):
        raise UsageError(f"'{shown(word)}' is neither new nor old")
    return word.lower()


def _next(path: Path, deadline: str | None, new_account: bool) -> str:
    """The command of the first answer."""
    words = ["recommend", *(["--deadline", deadline] if deadline else [])]
    words += ["--quota", NEW_ACCOUNT] if new_account else []
    named = [] if path == Path(FILE) else [str(path) if path.suffix else f"./{path}"]
    return shlex.join([*words, *named])


def _write(path: Path, draft: "Draft") -> None:
    with writing(shown_path(path), "name another with --to"):
        replace_file(path, draft.text.encode("utf-8"))


command = command_app("init", init)
