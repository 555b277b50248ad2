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
from recommender.export.machine_script import MACHINE, MachineSteps, machine_script
from recommender.export.quoting import shell
from recommender.export.start import SECRETS, start_line, usual_target
from recommender.export.train_command import changed_by_fallback
from recommender.export.watch_script import (
    Steps,
    assignment,
    shell_function,
    watch_script,
)
from recommender.plan.plan import Fallback, Machines

SCRIPT = "launch.sh"
_COUNTED = f"{SCRIPT} counts USD from the start of machines on; they end themselves as well. "
_SECRETS_HOW = (
    f"{SCRIPT} puts those of your environment into the bucket ($NAME/secrets), from which machines "
    "read them, and removes them at the end"
)
RUN_KEY = "recommend-run"  # tag or label by which the machines of a run are found
_EACH_PLACE = 'for place in "${%s[@]}"; do'
_TRY = (
    'echo "$NAME: asking for $count x $machine_type $market in $region $zone"',
    "if start_machines; then return 0; fi",
    'stop_machines "$run_tag" || true  # some of them may have started',
)
# Not with the boot file, which whoever may look at a machine can read.
_PASS_SECRETS = (
    "local name done=0",
    f"for name in {' '.join(SECRETS)}; do",
    '  if [ -n "${!name:-}" ]; then printf \'export %s=%q\\n\' "$name" "${!name}"; fi',
    'done > "$secrets_file"',
    'if [ -s "$secrets_file" ]; then put "$NAME/secrets" "$secrets_file" || done=1; fi',
    ': > "$secrets_file"',
    'return "$done"',
)
_ASK_TO_END = (
    "# once they have saved and uploaded what they trained",
    'echo asked > "$boot_file"',
    'put "$NAME/end-$1" "$boot_file" || stop_machines "$1" || true',
)
# Of the region that holds the checkpoints: its name, and since when it has no machines.
_GONE = (
    'if [ -s "$held" ] && [ "$(wc -w < "$held")" -eq 1 ]; then',
    '  echo "$(< "$held") $(date +%s)" > "$held"',
    "fi",
)
_TOO_EARLY = (
    "local last since",
    '[ -s "$held" ] || return 1',
    'read -r last since < "$held"',
    '[ "$region" != "$last" ] && [ $(( $(date +%s) - since )) -lt "$MOVE_AFTER_S" ]',
)


@dataclass(frozen=True, slots=True)
class CloudSteps:
    """What a cloud does for `launch.sh`, as lines of bash.

    Machines of a phase ("plan" or "fallback") carry the tag $NAME-$began-$phase, `run_tag`.
    """

    remarks: tuple[str, ...]  # what the tool needs first
    setup: tuple[str, ...]  # variables, with what cannot be known named
    start: tuple[str, ...]  # $region $zone $machine_type $market $count $left_s $boot_file
    running: tuple[str, ...]  # print the machines of `run_tag` that run or start, one a line
    stop: tuple[str, ...]  # all of `run_tag`
    upload_code: tuple[str, ...]  # the folder $code
    show: tuple[str, ...]  # print a file of the bucket, by its key
    put: tuple[str, ...]  # a file $2 to that key
    drop: tuple[str, ...]  # the file of a key
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
    fallback = run.fallback
    keep = (
        *_keep("plan", run.machines, run.nodes, (), fallback is not None),
        *(_GONE if run.plan.move_after_s else ()),
        _EACH_PLACE % "PLACES",
        '  read -r region zone <<< "$place"',
        *(("  if is_too_early; then continue; fi",) if run.plan.move_after_s else ()),
        *(f"  {line}" for line in (_TRY_AND_NOTE if run.plan.move_after_s else _TRY)),
        "done",
        "return 1",
    )
    return Steps(
        setup=(*_setup(run), *cloud.setup, "", *_functions(cloud, fallback is not None))[:-1],
        keep_plan=keep,
        stop_plan=(
            'stop_machines "$NAME-$began-plan" || true',
            'drop "$NAME/secrets" > /dev/null 2>&1 || true  # there may be none',
        ),
        state=_STATE,
        keep_fallback=() if fallback is None else _keep_fallback(run, fallback),
        stop_fallback=('stop_machines "$NAME-$began-fallback" || true',),
        let_plan_end=('ask_to_end "$NAME-$began-plan"',),
        let_fallback_end=('ask_to_end "$NAME-$began-fallback"',),
    )


def _keep_fallback(run: RunDescription, fallback: Fallback) -> tuple[str, ...]:
    machines = fallback.machines[0]
    changed = tuple(assignment(each.name, each.value) for each in changed_by_fallback(run))
    return (
        *_keep("fallback", machines, machines.count, changed, True),
        _EACH_PLACE % "FALLBACK_PLACES",
        '  read -r region zone <<< "$place"',
        *(f"  {line}" for line in _TRY),
        "done",
        "return 1",
    )


def _keep(
    phase: str, machines: Machines, count: int, changed: tuple[str, ...], changes: bool
) -> tuple[str, ...]:
    """Lines before a start; `changed` assigns variables that the plan's script has otherwise.

    With `changes` the machines may have been asked to end, for those of the other phase.
    """
    return (
        "local place region zone",
        f"local {assignment('machine_type', machines.instance_type)} "
        f"market={machines.market.replace('_', '-')} "
        f"count={count} run_tag=$NAME-$began-{phase}",
        'stop_machines "$run_tag" || return 1  # what is left of a cluster that lost a machine',
        *(('drop "$NAME/end-$run_tag" > /dev/null 2>&1 || true',) if changes else ()),
        "upload_code && pass_secrets || return 1",
        " ".join(('write_boot_file "$count"', *map(shell, changed))),
    )


_TRY_AND_NOTE = (
    _TRY[0],
    'if start_machines; then echo "$region" > "$held"; return 0; fi',
    _TRY[2],
)


_STATE = (
    "local ended tag=$NAME-$began-$phase machines",
    'ended=$(show "$NAME/ended-$began" || true)',
    'case "$ended" in done | failed | stopped) echo "$ended"; return ;; esac',
    "# Where the cloud does not answer nothing is started twice.",
    'if ! machines=$(running_machines "$tag"); then echo unknown; return; fi',
    'if [ "$(grep -c . <<< "$machines")" -ge "$(nodes)" ]; then echo running; return; fi',
    "echo missing",
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
        *shell_function("is_too_early", _TOO_EARLY)[:-1],
    )


def places_of(run: RunDescription) -> tuple[str, ...]:
    """Region and zone of each entry of the failover list; a zone of AWS by its id."""
    return tuple(place for location in locations_of(run.plan) for place in _places(location))


def _places(location: Location) -> tuple[str, ...]:
    zones = location.zones or location.zone_ids
    return tuple(f"{location.region} {zone}" for zone in zones) or (location.region,)


def _functions(cloud: CloudSteps, has_fallback: bool) -> tuple[str, ...]:
    passed = " ".join(f'"$(printf %q "${each}")"' for each in cloud.pass_on)
    names = " ".join(f"{each}=%s" for each in cloud.pass_on)
    return tuple(
        line
        for name, body in (
            ("show", cloud.show),
            ("put", cloud.put),
            ("drop", cloud.drop),
            ("pass_secrets", _PASS_SECRETS),
            ("upload_code", cloud.upload_code),
            ("start_machines", cloud.start),
            ("running_machines", ("local run_tag=$1", *cloud.running)),
            ("stop_machines", ("local run_tag=$1", *cloud.stop)),
            *((("ask_to_end", _ASK_TO_END),) if has_fallback else ()),
            (
                "write_boot_file",
                (
                    "left_s=$(left_s)",
                    "{",
                    "  printf '#!/usr/bin/env bash\\nexport RUN_ID=%s RUN_TAG=%s' \\",
                    '    "$began" "$run_tag"',
                    '  printf \' LEFT_S=%s NNODES=%s\\n\' "$left_s" "$1"',
                    f"  printf 'export {names}\\n' {passed}",
                    "  if [ $# -gt 1 ]; then printf 'export %s\\n' \"${@:2}\"; fi",
                    f'  cat "$here/{MACHINE}"',
                    '} > "$boot_file"',
                ),
            ),
        )
        for line in shell_function(name, body)
    )
