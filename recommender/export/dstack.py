"""A plan as a task of dstack.

dstack's rules, as its configuration of version 0.22 has them (read 2026-11): offers are tried from
the cheapest on, `retry` starts a run again after an interruption for so long, `max_duration` ends
it. After errors it would do so without end, renting again for a script that cannot run: crashes are
counted by the commands. Paths of `files` begin where the task's own file lies; `repos` takes git
repositories with a remote only, since 0.20. It knows no order of regions but the price, and no
deadline. A network volume, of AWS or Google Cloud, lies in one zone and is attached to one machine.
"""

import math
from dataclasses import replace

from recommender.export.description import RunDescription
from recommender.export.files import ExportFile
from recommender.export.header import (
    as_run_words,
    cap_words,
    commented,
    fallback_words,
    header,
    yours_words,
)
from recommender.export.launchers import RankVariables
from recommender.export.quoting import scalar, sequence
from recommender.export.start import DSTACK_FILES, SECRETS, start_line
from recommender.export.templates import part
from recommender.export.train_command import repeated_lines, variables
from recommender.performance.checkpoint import VOLUME_BYTES_PER_S
from recommender.plan.as_run import WITH_VOLUMES
from recommender.text import duration

TASK, VOLUME = DSTACK_FILES
_MOUNT, _CODE = "/checkpoints", "/code"
_RANKS = RankVariables(
    "$DSTACK_NODES_NUM", "$DSTACK_NODE_RANK", "$DSTACK_MASTER_NODE_IP", "$DSTACK_GPUS_PER_NODE"
)
_COUNTED = (
    "max_duration counts each start anew; USD are counted while it trains: boots and installations "
    "come on top. "
)
_SECRETS_HOW = "dstack takes them from your environment, empty ones as not given"


def files(run: RunDescription, folder: str) -> tuple[ExportFile, ...]:
    """The task, and the volume that its checkpoints are on."""
    run = replace(run, slowest_save_s=run.job.checkpoint_bytes / VOLUME_BYTES_PER_S)
    return (ExportFile(TASK, _task(run, folder)), ExportFile(VOLUME, _volume(run)))


def _volume(run: RunDescription) -> str:
    head = [
        f"{run.name}: the volume of {TASK}, kept when the run ends. Create it first, delete it "
        "last:",
        f"  dstack apply -f {VOLUME}",
        f"  dstack volume delete {run.name}",
    ]
    lines = part(
        "dstack.yml",
        "volume",
        HEAD=commented(head),
        NAME=run.name,
        BACKEND=run.machines.provider,
        REGION=scalar(run.locations[0].region),
        ZONE=[f"availability_zone: {scalar(zone)}" for zone in run.locations[0].zones[:1]],
        DISK_GB=run.disk_gb,
    )
    return "\n".join(lines) + "\n"


def _task(run: RunDescription, folder: str) -> str:
    first, place = run.machines, run.locations[0]
    stated = variables(run, f"{_MOUNT}/{run.name}")
    named = [f"- {scalar(f'{each.name}={each.value}')}  # {each.meaning}" for each in stated]
    lines = part(
        "dstack.yml",
        "task",
        HEAD=commented(header(run, start_line(run.plan, "dstack", folder), _remarks(run))),
        NAME=run.name,
        NODES=run.nodes,
        BACKENDS=sequence([first.provider]),
        REGIONS=sequence([place.region]),
        ZONES=[f"availability_zones: {sequence([zone])}" for zone in place.zones[:1]],
        TYPES=sequence([first.instance_type]),
        MARKET="spot" if first.market == "spot" else "on-demand",
        GPUS=first.gpus,
        HOURS=math.ceil(run.longest_s / 3600.0),
        CODE=_CODE,
        VOLUME=VOLUME,
        MOUNT=_MOUNT,
        VARIABLES=[*named, *(f"- {name}" for name in SECRETS)],
        COMMANDS=(*part("train.sh", "install"), *repeated_lines(run, _RANKS)),
    )
    return "\n".join(lines) + "\n"


def why_not(run: RunDescription) -> str:
    """Why dstack cannot run a plan; empty where it can."""
    if run.provider is None:
        return f"it rents no machines of {run.rents_from}; export --to torchrun"
    if run.mixed:
        return "its nodes are of one machine type, and this plan mixes them; export --to torchrun"
    if run.machines.confidential:
        return "it sets no security type, which confidential VMs need; export --to torchrun"
    if run.nodes > 1 or run.machines.provider not in WITH_VOLUMES:
        return (
            "its volumes, which would hold the checkpoints, are of one machine of AWS or Google "
            "Cloud; export --to skypilot"
        )
    return ""


def _remarks(run: RunDescription) -> tuple[str, ...]:
    found = [
        *fallback_words(
            run,
            "dstack knows no deadline: you stop this run and start one on demand then.",
        ),
        f"Copy this file next to your training script; it uploads that folder. Create the volume "
        f"for the checkpoints first: dstack apply -f {VOLUME}",
    ]
    if run.spot or len(run.locations) > 1:
        found.append(
            "A volume is of one zone: this run stays in the first place of the plan's list and "
            f"waits longer for {'spot' if run.spot else 'machines'} than the estimate counts."
        )
    found.append(
        f"Checkpoints go to the volume, counted at {VOLUME_BYTES_PER_S / 1e6:.0f} MB/s: "
        f"{duration(run.slowest_save_s)} each, for which training waits unless it saves in the "
        "background; the plan counts on uploads to a bucket instead."
    )
    found += as_run_words(run, "dstack", "So this file comes to")
    cap = cap_words(run, "LONGEST_RUN_S and max_duration", _COUNTED)
    return (*found, *yours_words(run, _SECRETS_HOW), cap)
