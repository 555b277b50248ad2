"""A plan on machines that the user starts: one script that is run on every node."""

from recommender.export.checkpoint_upload import shared_words
from recommender.export.description import RunDescription
from recommender.export.files import ExportFile
from recommender.export.header import (
    as_run_words,
    cap_words,
    commented,
    fallback_words,
    header,
    saves_elsewhere_words,
    yours_words,
)
from recommender.export.launchers import RankVariables
from recommender.export.start import start_line
from recommender.export.templates import part
from recommender.export.train_command import exports, run_lines
from recommender.plan.plan import Machines

SCRIPT = "train.sh"
_RANKS = RankVariables("$NNODES", "$NODE_RANK", "$MASTER_ADDR", "$GPUS_PER_NODE")


def files(run: RunDescription, folder: str) -> tuple[ExportFile, ...]:
    """The script of one node."""
    head = commented(header(run, start_line(run.plan, "torchrun", folder), _remarks(run)))
    lines = part(
        "torchrun.sh",
        "script",
        HEAD=head,
        NODES=run.nodes,
        VARIABLES=exports(run, f"/mnt/checkpoints/{run.name}"),
        RUN=run_lines(run, _RANKS),
    )
    return (ExportFile(SCRIPT, "\n".join(lines) + "\n", True),)


def why_not(run: RunDescription) -> str:
    """Nothing is in the way: it runs on whatever is there."""
    return ""


def _remarks(run: RunDescription) -> tuple[str, ...]:
    found = [
        "Run it on every machine with NODE_RANK and MASTER_ADDR set; machines are started, "
        "replaced after an interruption and stopped by you.",
        *fallback_words(
            run,
            "You make the switch: start this script on those machines.",
        ),
        "CHECKPOINT_DIR is a mounted bucket or a shared disk, the same on every machine.",
        *saves_elsewhere_words(run),
    ]
    if run.mixed:
        found.append(f"A mix: ranks {_ranks(run.plan.machines)}.")
    if run.spot and run.job.resizes and any(m.market != "spot" for m in run.plan.machines):
        found.append(
            "The estimate counts on a training that goes on without the spot machines while they "
            "are away: start this script again on the remaining ones, with their number as "
            "NNODES, and on all when spot is back. GLOBAL_BATCH stays; passes per step get more."
        )
    found += as_run_words(run, "torchrun", "Without the switch")
    yours = yours_words(run, "the script passes your environment on", "activate it before")
    how = "That ends the training; the machines are yours to stop. "
    return (*found, *shared_words(run), *yours, cap_words(run, how=how))


def _ranks(machines: tuple[Machines, ...]) -> str:
    """Which node ranks are which machines."""
    found, first = [], 0
    for each in machines:
        last = first + each.count - 1
        ranks = f"{first}" if last == first else f"{first}-{last}"
        found.append(f"{ranks} are {each.instance_type} {each.market.replace('_', '-')}")
        first = last + 1
    return ", ".join(found)
