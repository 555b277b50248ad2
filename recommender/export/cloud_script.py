"""A plan by the command-line tool of its cloud: the script that starts machines, and theirs.

`launch.sh` requests machines place after place in the order of the plan, looks at them every
minute, starts them again when one is lost, makes the switch to on-demand in time, and stops them.
"""

from recommender.catalogs.frozen import dataclass
from recommender.export.checkpoint_upload import upload_words
from recommender.export.cluster_network import cluster_network_words
from recommender.export.description import Location, RunDescription, locations_of
from recommender.export.files import ExportFile
from recommender.export.header import (
    as_run_words,
    cap_words,
    disk_words,
    fallback_words,
    header,
    move_after_words,
    saves_elsewhere_words,
    yours_words,
)
from recommender.export.machine_script import MachineSteps, machine_script
from recommender.export.quoting import assignment, shell
from recommender.export.start import start_line, usual_target
from recommender.export.templates import MACHINE, part, shell_function
from recommender.export.train_command import changed_by_fallback
from recommender.export.watch_script import Steps, watch_script
from recommender.plan.plan import Fallback, Machines

SCRIPT = "launch.sh"
_COUNTED = f"{SCRIPT} counts USD from the start of machines on; they end themselves as well. "
_SECRETS_HOW = (
    f"{SCRIPT} puts those of your environment into the bucket ($NAME/secrets), from which machines "
    "read them, and removes them at the end"
)


@dataclass(frozen=True, slots=True)
class CloudSteps:
    """What a cloud does for `launch.sh`, as lines of bash.

    Machines of a phase ("plan" or "fallback") carry the tag $NAME-$began-$phase, `run_tag`.
    """

    template: str  # has the rest of what it does
    remarks: tuple[str, ...]  # what the tool needs first
    setup: tuple[str, ...]  # variables, with what cannot be known named
    start: tuple[str, ...]  # $region $zone $machine_type $market $count $left_s $boot_file
    pass_on: tuple[str, ...] = ("CHECKPOINT_BUCKET",)  # variables that the machines get


def cloud_files(
    run: RunDescription, folder: str, target: str, cloud: CloudSteps, machine: MachineSteps
) -> tuple[ExportFile, ...]:
    """The script of a cloud, and what its machines run."""
    remarks = (
        *fallback_words(run, f"{SCRIPT} makes the switch."),
        *move_after_words(run, f"{SCRIPT} does so."),
        f"{SCRIPT} runs on a machine that stays on, and may be killed and started again; run it "
        "in the folder of your training script, or name that in CODE_DIR. Names that begin with a "
        "dot (.env, .venv, .git) are not uploaded.",
        *cloud.remarks,
        *_network_words(run),
        *saves_elsewhere_words(run),
        *as_run_words(run, target, "So this file comes to"),
        *upload_words(run),
        *disk_words(run),
        *yours_words(run, _SECRETS_HOW),
        cap_words(run, f"LONGEST_RUN_S in {SCRIPT} and {MACHINE}", _COUNTED),
    )
    head = header(run, start_line(run.plan, target, folder), remarks)
    return (
        ExportFile(SCRIPT, watch_script(run, _steps(run, cloud), head), True),
        ExportFile(MACHINE, machine_script(run, machine), True),
    )


def why_not_one_cloud(run: RunDescription, provider: str, target: str) -> str:
    """Why the tool of a provider cannot run a plan; empty where it can."""
    if run.machines.provider != provider:
        return f"it rents no machines of {run.rents_from}; export --to {usual_target(run.plan)}"
    if run.mixed:
        return (
            "the script starts machines of one type and market, and this plan mixes them; export "
            "--to torchrun, or plan with --no-mix"
        )
    fallback = run.fallback
    if fallback is not None and (
        len(fallback.machines) > 1 or fallback.machines[0].provider != provider
    ):
        return (
            f"the fallback is not of one kind of machine of {run.rents_from}; export --to torchrun"
        )
    return ""


def _network_words(run: RunDescription) -> tuple[str, ...]:
    """How machines that train together are started, and what they get of the network."""
    if not run.trains_on_several:
        return ()
    together = "Several machines: they are started in one zone, all or none."
    return (together, *cluster_network_words(run, SCRIPT, "free; they stay"))


def _steps(run: RunDescription, cloud: CloudSteps) -> Steps:
    fallback, moves = run.fallback, bool(run.plan.move_after_s)
    keep = _keep("plan", run.machines, run.nodes, (), fallback is not None, moves)
    return Steps(
        setup=(*_setup(run), *cloud.setup, "", *_functions(cloud, fallback is not None))[:-1],
        keep_plan=keep,
        stop_plan=part("launch.sh", "stop_plan"),
        state=part("launch.sh", "state"),
        keep_fallback=() if fallback is None else _keep_fallback(run, fallback),
        stop_fallback=part("launch.sh", "stop_fallback"),
        let_plan_end=('ask_to_end "$NAME-$began-plan"',),
        let_fallback_end=('ask_to_end "$NAME-$began-fallback"',),
    )


def _keep_fallback(run: RunDescription, fallback: Fallback) -> tuple[str, ...]:
    machines = fallback.machines[0]
    changed = tuple(assignment(each.name, each.value) for each in changed_by_fallback(run))
    return _keep("fallback", machines, machines.count, changed, True, False)


def _keep(
    phase: str, machines: Machines, count: int, changed: tuple[str, ...], ends: bool, moves: bool
) -> tuple[str, ...]:
    """Start what a phase lacks; `changed` assigns variables that the plan's script has otherwise.

    Where it `ends`, machines may have been asked to, for those of the other phase; where it
    `moves`, the region that holds the checkpoints is noted.
    """
    return part(
        "launch.sh",
        "keep",
        MACHINE_TYPE=assignment("machine_type", machines.instance_type),
        MARKET=machines.market.replace("_", "-"),
        COUNT=count,
        PHASE=phase,
        DROP_END=part("launch.sh", "drop_end") if ends else (),
        WRITE=" ".join(('write_boot_file "$count"', *map(shell, changed))),
        PLACES="PLACES" if phase == "plan" else "FALLBACK_PLACES",
        GONE=part("launch.sh", "gone") if moves else (),
        TOO_EARLY=part("launch.sh", "skip_if_too_early") if moves else (),
        TRY=part("launch.sh", "try_and_note" if moves else "try"),
    )


def _setup(run: RunDescription) -> tuple[str, ...]:
    fallback = run.fallback
    nodes = f"nodes() {{ echo {run.nodes}; }}"
    if fallback is not None:
        either = f"echo {run.nodes}; else echo {fallback.machines[0].count}; fi"
        nodes = f'nodes() {{ if [ "$phase" = plan ]; then {either}; }}'
    return (
        'here=$(cd "$(dirname "$0")" && pwd)',
        "code=${CODE_DIR:-.}  # the folder of your training script",
        ': "${CHECKPOINT_BUCKET:?export CHECKPOINT_BUCKET=your-bucket first}"',
        "boot_file=$(mktemp)",
        "secrets_file=$(mktemp)  # that you alone can read, for a moment",
        'trap \'rm -f "$boot_file" "$secrets_file"\' EXIT',
        assignment("DISK_GB", run.disk_gb),
        *_move_after(run),
        "# Asked for in this order, at every start.",
        *_places_named("PLACES", run),
        *(() if run.on_fallback is None else _places_named("FALLBACK_PLACES", run.on_fallback)),
        nodes,
    )


def _places_named(name: str, run: RunDescription) -> tuple[str, ...]:
    """An array of the places where a plan's machines are requested."""
    return (f"{name}=(", *(f"  {shell(place)}" for place in places_of(run)), ")")


def _move_after(run: RunDescription) -> tuple[str, ...]:
    """How long only the checkpoints' region is tried, where that pays."""
    move_after_s = run.plan.move_after_s
    if not move_after_s:
        return ()
    return (
        f"{assignment('MOVE_AFTER_S', f'{move_after_s:.0f}')}  # in the region of the checkpoints "
        "before they move",
        'held="${STATE_DIR:-.}/.$NAME.region"',
        *shell_function("is_too_early", part("launch.sh", "is_too_early"))[:-1],
    )


def places_of(run: RunDescription) -> tuple[str, ...]:
    """Region and zone of each entry of the failover list; a zone of AWS by its id."""
    return tuple(place for location in locations_of(run.plan) for place in _places(location))


def _places(location: Location) -> tuple[str, ...]:
    zones = location.zones or location.zone_ids
    return tuple(f"{location.region} {zone}" for zone in zones) or (location.region,)


def _functions(cloud: CloudSteps, has_fallback: bool) -> tuple[str, ...]:
    file = cloud.template
    boot = part(
        "launch.sh",
        "write_boot_file",
        NAMES=" ".join(f"{each}=%s" for each in cloud.pass_on),
        PASSED=" ".join(f'"$(printf %q "${each}")"' for each in cloud.pass_on),
    )
    functions = {
        "show": part(file, "bucket_show"),
        "put": part(file, "put"),
        "drop": part(file, "drop"),
        "pass_secrets": part("launch.sh", "pass_secrets"),
        "upload_code": part(file, "upload_code"),
        "start_machines": cloud.start,
        "running_machines": ("local run_tag=$1", *part(file, "running")),
        "stop_machines": ("local run_tag=$1", *part(file, "stop")),
        **({"ask_to_end": part("launch.sh", "ask_to_end")} if has_fallback else {}),
        "write_boot_file": boot,
    }
    return tuple(line for name, body in functions.items() for line in shell_function(name, body))
