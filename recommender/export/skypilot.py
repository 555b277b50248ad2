"""A plan as a managed job of SkyPilot, and the script that applies the plan's fallback rule.

SkyPilot's rules, as its code of version 0.14.1 has them (read 2026-11-23):

* `resources.ordered` is tried from the top at every start and recovery; after a round without
  machines it waits 60 to 300 s and begins again (modules sky.optimizer; sky.jobs.recovery_strategy,
  `_launch`, RETRY_INIT_GAP_SECONDS; sky.utils.common_utils, Backoff).
* A job that fails is rented for again `max_restarts_on_errors` times, whatever its status, and
  without end where `recover_on_exit_codes` lists that; no status ends it before
  (`should_restart_on_failure`). So the commands count crashes themselves, and an error that is
  left, such as the cap's, ends the job.
* It knows no deadline. On-demand machines at the end of the list are rented as soon as no place
  above them has spot, and are kept until the job ends.
* Its clusters are of one machine type: mixes cannot be written (docs.skypilot.co, "Job Groups",
  runs tasks side by side, but recovers each alone).
"""

from collections.abc import Sequence

from recommender.catalogs.provider_info import ANY_REGION
from recommender.catalogs.registry import OWN
from recommender.export.checkpoint_upload import bucket_template, task_lines, upload_words
from recommender.export.description import Location, RunDescription
from recommender.export.files import ExportFile
from recommender.export.header import (
    as_run_words,
    cap_words,
    commented,
    disk_words,
    fallback_words,
    header,
    large_disk,
    machines_words,
    move_after_words,
    policy_words,
    saves_elsewhere_words,
    yours_words,
)
from recommender.export.launchers import RankVariables
from recommender.export.quoting import inline, scalar
from recommender.export.start import SECRETS, bucket_keys, bucket_names, sky_name, start_line
from recommender.export.templates import ROOT, part
from recommender.export.train_command import variables
from recommender.export.watch_script import Steps, watch_script
from recommender.plan.as_run import LIST_ENDS_ON_DEMAND, NO_SWITCH
from recommender.plan.plan import Machines
from recommender.plan.sky_clouds import CLUSTERS, CONTROLLER, DISKS, SPOT, lacks
from recommender.risk.policy import failover_round_s

JOB, ON_DEMAND, SCRIPT = "train.yaml", "on-demand.yaml", "launch.sh"
_RANKS = RankVariables(
    nodes="$SKYPILOT_NUM_NODES",
    rank="$SKYPILOT_NODE_RANK",
    master='$(echo "$SKYPILOT_NODE_IPS" | head -n 1)',
    gpus="$SKYPILOT_NUM_GPUS_PER_NODE",
)
_SECRETS_HOW = "--secret NAME of sky jobs launch passes one on from your environment"
_COUNTED = "USD are counted while it trains: boots and setups come on top. "
_CARDS_OF_AWS = (
    "network_tier: best turns on one EFA card of each machine; all of them, which the estimate "
    "counts on, with aws: use_internal_ips: true in ~/.sky/config.yaml."
)
_CARDS = (
    "Fast network cards of several machines (GPUDirect, InfiniBand), which the estimate counts on "
    "where the type has them, are as SkyPilot's image has them: look at its network_tier."
)


def files(run: RunDescription, folder: str) -> tuple[ExportFile, ...]:
    """The managed job; with a fallback the on-demand job and the script that switches to it."""
    if run.fallback is None:
        return (ExportFile(JOB, _job(run, folder)),)
    return (
        ExportFile(JOB, _job(run, folder)),
        ExportFile(ON_DEMAND, _on_demand_job(run)),
        ExportFile(SCRIPT, watch_script(run, _steps(run), _script_head(run, folder)), True),
    )


def why_not(run: RunDescription) -> str:
    """Why SkyPilot cannot run a plan; empty where it can."""
    missing = _missing(run) or (_missing(run.on_fallback) if run.on_fallback else "")
    if missing:
        return f"{missing}; export --to torchrun"
    if run.mixed:
        return (
            "its clusters are of one machine type and market, and this plan mixes them; export "
            "--to torchrun, or plan with --no-mix"
        )
    if run.machines.confidential:
        return "it sets no security type, which confidential VMs need; export --to torchrun"
    return ""


def _missing(run: RunDescription) -> str:
    """What SkyPilot does not do on the cloud of some machines; empty where it does all."""
    cloud = sky_name(run.machines)
    if not cloud:
        named = "" if run.provider else " (a column launcher of --offers names one that does)"
        return f"SkyPilot rents no machines of {run.rents_from}{named}"
    used = {CLUSTERS: run.nodes > 1, SPOT: run.spot}
    lacking = [each for each in lacks(cloud) if used.get(each)]
    return f"SkyPilot starts no {' and no '.join(lacking)} on {cloud}" if lacking else ""


def _job(run: RunDescription, folder: str) -> str:
    """The job on the plan's own machines."""
    head = commented(header(run, start_line(run.plan, "skypilot", folder), _remarks(run)))
    entries = [each for location in run.locations for each in _entries(run.machines, location)]
    listed = [*(f"- {each}" for each in dict.fromkeys(entries)), *_last_resort(run)]
    order = ("# Tried in this order, at every start and recovery.",)
    return _text(run, run.name, run.nodes, head, order, listed)


def _on_demand_job(run: RunDescription) -> str:
    """The job on the fallback's machines."""
    later = run.on_fallback
    assert later is not None
    head = commented([
        f"{run.name}: the fallback of {JOB}, {machines_words(later)}.",
        f"{SCRIPT} starts it when the plan's policy says so; it resumes from the checkpoints of "
        "the first job.",
    ])  # fmt: skip
    listed = [f"- {entry}" for entry in _fallback_entries(later)]
    return _text(later, f"{run.name}-on-demand", later.machines.count, head, (), listed)


def _script_head(run: RunDescription, folder: str) -> list[str]:
    return [
        f"{run.name}: starts {JOB} and follows the plan's policy: {ON_DEMAND} takes over "
        f"{policy_words(run)}.",
        "Start it on a machine that stays on:",
        f"  {start_line(run.plan, 'skypilot', folder)}",
        "It may be killed and started again. Progress and speed are those of progress.json in "
        "$CHECKPOINT_DIR, which recommender.train writes; without it, progress is the share of the "
        "work that is done, from $CHECKPOINT_DIR/progress (0.4 for 40 %), and the speed the "
        "estimate's.",
    ]


def _setup(run: RunDescription) -> tuple[str, ...]:
    """What names the bucket, and how SkyPilot is asked."""
    names = bucket_names(run.machines)
    return part(
        "sky.sh",
        "setup",
        ASKED_FOR=[f': "${{{each}:?export {each}={word} first}}"' for each, word in names.items()],
        BUCKET=" ".join(names),
        SECRETS_GIVEN=" ".join(_secrets(run)),
        NAMED=" ".join(f"--env {each}" for each in names),
        ROUND_S=f"{failover_round_s(len(run.plan.sites)):.0f}",
        SHOW=part(bucket_template(run.machines), "bucket_show"),
    )


def _secrets(run: RunDescription) -> tuple[str, ...]:
    return (*SECRETS, *bucket_keys(run.machines))


def _steps(run: RunDescription) -> Steps:
    return Steps(
        setup=_setup(run),
        keep_plan=(f'start_job "$NAME-$began-plan" "$here/{JOB}"',),
        stop_plan=('sky jobs cancel --yes --graceful --name "$NAME-$began-plan" || true',),
        keep_fallback=(f'start_job "$NAME-$began-fallback" "$here/{ON_DEMAND}" && owed=""',),
        stop_fallback=('sky jobs cancel --yes --graceful --name "$NAME-$began-fallback" || true',),
        let_plan_end=("stop_plan", "owed=yes"),
        let_fallback_end=("stop_fallback",),
        state=part("sky.sh", "state"),
        no_spot=part("sky.sh", "no_spot"),
    )


def _has_fast_disk(run: RunDescription) -> bool:
    return large_disk(run) and DISKS not in lacks(sky_name(run.machines))


def _entries(machines: Machines, location: Location) -> list[str]:
    """One line of resources for each place; AWS regions are given without zones."""
    cloud, hardware = sky_name(machines), {"instance_type": machines.instance_type}
    if machines.provider == OWN:
        named = machines.terms.rented_as if machines.terms else ""
        gpus = f"{machines.gpu}:{machines.gpus}"
        hardware = {"instance_type": named} if named else {"accelerators": gpus}
    places = [f"{cloud}/{location.region}/{zone}" for zone in location.zones]
    anywhere = location.region in (ANY_REGION, OWN)  # a row that names no place has the latter
    places = places or [cloud if anywhere else f"{cloud}/{location.region}"]
    # EFA on the types that have it; elsewhere the word means other images, or is refused.
    cards = {"network_tier": "best"} if machines.provider == "aws" and machines.count > 1 else {}
    return [
        inline({
            "infra": place,
            **hardware,
            "use_spot": machines.market == "spot",
            **cards,
        })
        for place in places
    ]  # fmt: skip


def _fallback_entries(on_fallback: RunDescription) -> list[str]:
    """A line of resources for each region of the fallback, any zone of it."""
    regions = (Location(location.region) for location in on_fallback.locations)
    return [each for region in regions for each in _entries(on_fallback.machines, region)]


def _last_resort(run: RunDescription) -> list[str]:
    """On-demand machines at the end of the list, as a comment that can be undone."""
    fallback = run.fallback
    if fallback is None or not ends_list(run):
        return []
    assert run.on_fallback is not None
    entries = _fallback_entries(run.on_fallback)
    words = (
        f"Instead of {SCRIPT}: as the end of this list, on-demand machines are rented as soon as "
        "no place has spot, and kept."
    )
    return [
        *commented([words]),
        *(f"# - {each}" for each in entries),
    ]


def ends_list(run: RunDescription) -> bool:
    """Whether on-demand machines can end the list: all of its entries have as many nodes."""
    fallback = run.fallback
    return fallback is not None and fallback.machines[0].count == run.nodes


def _remarks(run: RunDescription) -> tuple[str, ...]:
    who = (
        f"SkyPilot knows no deadline: {SCRIPT} makes the switch, on a machine that stays on. "
        "Started without it, this job waits for spot."
    )
    cloud = sky_name(run.machines)
    install = f"pip install 'skypilot[{cloud}]'; sky check"
    found = [f"Needed first: the bucket, and SkyPilot with access to {cloud} ({install})."]
    if CONTROLLER in lacks(cloud):
        found.append(
            "SkyPilot's own machine, which watches the job, cannot be there: it needs access to "
            "another cloud or a Kubernetes cluster as well."
        )
    found += fallback_words(run, who)
    found += move_after_words(
        run,
        "SkyPilot tries the next region at once: it resumes sooner and pays for more moves "
        "(recommend --failover zone plans for one region).",
    )
    found += saves_elsewhere_words(run)
    found += as_run_words(run, "skypilot", "So these files come to")
    found += as_run_words(run, "skypilot", f"{JOB} without {SCRIPT} comes to", NO_SWITCH)
    if ends_list(run):
        listed = f"{JOB} with the on-demand machines at the end of its list below comes to"
        found += as_run_words(run, "skypilot", listed, LIST_ENDS_ON_DEMAND)
    zones = any(location.zone_ids for location in run.locations)
    if zones:
        found.append(
            "Names of AWS zones differ between accounts; SkyPilot tries all zones of each region."
        )
    if run.trains_on_several:
        found.append(_CARDS_OF_AWS if run.machines.provider == "aws" else _CARDS)
    found += [*upload_words(run), *disk_words(run), *yours_words(run, _SECRETS_HOW)]
    cap = "LONGEST_RUN_S" if run.fallback is None else "LONGEST_RUN_S in all three files"
    return (*found, cap_words(run, cap, _COUNTED))


def _text(
    run: RunDescription, name: str, nodes: int, head: list[str], order: Sequence[str],
    entries: list[str],
) -> str:  # fmt: skip
    tier = ("disk_tier: high  # checkpoints are written to it",) if _has_fast_disk(run) else ()
    stated = variables(run, f"{ROOT}/{run.name}")
    lines = part(
        "sky.yaml",
        "job",
        HEAD=head,
        NAME=name,
        NODES=nodes,
        DISK_GB=run.disk_gb,
        DISK_TIER=tier,
        ORDER=order,
        ENTRIES=entries,
        VARIABLES=[f"{each.name}: {scalar(each.value)}  # {each.meaning}" for each in stated],
        BUCKET=[f"{name}: null" for name in bucket_names(run.machines)],
        SECRETS_GIVEN=[f'{name}: ""' for name in _secrets(run)],
        INSTALL=part("train.sh", "install"),
        RUN=task_lines(run, _RANKS),
    )
    return "\n".join(lines) + "\n"
