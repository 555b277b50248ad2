"""How an exported plan is started, and which target a plan is usually exported to."""

from recommender.catalogs.registry import CLOUDS, OWN
from recommender.catalogs.schema import BOOKED
from recommender.export.quoting import shell
from recommender.plan.plan import Machines, Plan

TARGETS = (
    "skypilot", "dstack", "slurm", "torchrun", "terraform", "aws-cli", "gcloud", "azure-cli",
)  # fmt: skip
BUCKET = "YOUR-BUCKET"
SECRETS = ("HF_TOKEN", "WANDB_API_KEY")  # passed on by name, where the caller has them
S3_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
TRAIN_SCRIPT = "train.py"  # of the user, in the folder in which the files are started
Start = tuple[str, ...]

_FILES = {
    "slurm": ("sbatch", "train.sbatch"),
    "torchrun": ("bash", "train.sh"),
    "aws-cli": ("bash", "launch.sh"),
    "gcloud": ("bash", "launch.sh"),
    "azure-cli": ("bash", "launch.sh"),
}
DSTACK_FILES = ("train.dstack.yml", "volume.dstack.yml")
_NAMED = {  # what has to be named in the environment, by target
    "aws-cli": ("INSTANCE_PROFILE=YOUR-PROFILE",),
    "reserved_block": ("CAPACITY_RESERVATION=ID-OF-THE-BLOCK",),
    "gcloud": (),
    "azure-cli": (
        "RESOURCE_GROUP=YOUR-GROUP", "AZURE_STORAGE_ACCOUNT=YOUR-ACCOUNT", "IDENTITY=ITS-ID",
    ),
}  # fmt: skip

_VARIABLES = {  # of Terraform, by provider
    "aws": (),
    "gcp": ("project=YOUR-PROJECT",),
    "azure": (
        "subscription_id=YOUR-SUBSCRIPTION", "resource_group=YOUR-GROUP",
        "storage_account=YOUR-ACCOUNT",
    ),
}  # fmt: skip


def bucket_of(machines: Machines) -> str:
    """Whose bucket machines use: their cloud's, "" any that speaks S3, or of one's own machines."""
    cloud = CLOUDS.get(machines.provider)
    if cloud is not None and cloud.has_client:
        return machines.provider
    return "" if sky_name(machines) or cloud is not None else OWN


def bucket_names(machines: Machines) -> dict[str, str]:
    """What names a bucket in the environment, with a word to be replaced."""
    account = {"AZURE_STORAGE_ACCOUNT": "YOUR-ACCOUNT"} if bucket_of(machines) == "azure" else {}
    place = {"AWS_ENDPOINT_URL": "https://YOUR-STORE"} if bucket_keys(machines) else {}
    return {"CHECKPOINT_BUCKET": BUCKET, **account, **place}


def bucket_keys(machines: Machines) -> tuple[str, ...]:
    """The secrets that open a bucket whose machines have no role of their own: on GPU clouds."""
    return S3_KEYS if bucket_of(machines) == "" else ()


# What starts booked machines, by provider and market; elsewhere they are started by hand.
_BOOKED = {("gcp", "flex_start"): "gcloud", ("aws", "reserved_block"): "aws-cli"}
_BY_HAND = ("torchrun", "slurm")


def why_not_booked(plan: Plan, target: str) -> str:
    """Why a target does not start machines that are booked; empty where it does."""
    first = plan.machines[0]
    if first.market not in BOOKED or target in (*_BY_HAND, _BOOKED.get(_place(first))):
        return ""
    how = first.market.replace("_", "-")
    return f"it starts no {how} machines; export --to {usual_target(plan)}"


def _place(machines: Machines) -> tuple[str, str]:
    return machines.provider, machines.market


def usual_target(plan: Plan) -> str:
    """SkyPilot where it can run the plan, else what can."""
    first = plan.machines[0]
    if first.market in BOOKED:
        return _BOOKED.get(_place(first), "torchrun")
    plain = not plan.mixed and not first.confidential
    return "skypilot" if sky_name(first) and plain else "torchrun"


def sky_name(machines: Machines) -> str:
    """The cloud of machines as SkyPilot names it; empty where it rents none of them."""
    cloud = CLOUDS.get(machines.provider)
    stated = machines.terms.launcher if machines.terms else ""
    return stated or (cloud.sky_name if cloud else "")


def start_place(nodes: int, target: str) -> str:
    """Where the start command is typed; empty for where the files are written."""
    if target != "torchrun":
        return ""
    return "on each machine" if nodes > 1 else "on the machine"


def start_words(plan: Plan, target: str, folder: str) -> Start:
    """The command that starts the files of a folder; a bucket is named in the environment."""
    if target == "skypilot":
        return _sky_words(plan, folder)
    if target == "terraform":
        return ("terraform", f"-chdir={folder or '.'}", "apply")
    if target == "dstack":
        return (*_copied(folder), "dstack", "apply", "-f", DSTACK_FILES[0])
    *words, name = _FILES[target]
    return (*words, in_folder(folder, name))


def _copied(folder: str) -> Start:
    """dstack takes along the folder that its file lies in."""
    if folder in ("", "."):
        return ()
    return ("cp", *(in_folder(folder, name) for name in DSTACK_FILES), ".", "&&")


def _sky_words(plan: Plan, folder: str) -> Start:
    if plan.fallback is not None:
        return ("bash", in_folder(folder, "launch.sh"))
    named = _named(plan)
    flags = [word for each in named for word in ("--env", each)]
    flags += [word for each in bucket_keys(plan.machines[0]) for word in ("--secret", each)]
    return ("sky", "jobs", "launch", *flags, in_folder(folder, "train.yaml"))


def _provider(plan: Plan) -> str:
    return plan.machines[0].provider


def _named(plan: Plan) -> tuple[str, ...]:
    names = bucket_names(plan.machines[0])
    return tuple(f"{name}={word}" for name, word in names.items())


def in_folder(folder: str, name: str) -> str:
    """The path of a file in a folder."""
    return f"{folder.rstrip('/')}/{name}" if folder else name


def start_line(plan: Plan, target: str, folder: str) -> str:
    """The command with what it needs in the environment, on one line."""
    words = start_words(plan, target, folder)
    line = " ".join(each if each == "&&" else shell(each) for each in words)
    if target == "terraform":
        where = shell(f"-chdir={folder or '.'}")
        own = "".join(f" -var {each}" for each in _VARIABLES[_provider(plan)])
        return (
            f"terraform {where} init && {line} -var checkpoint_bucket={BUCKET} "
            f'-var code_dir="$PWD"{own}'
        )
    if target in _NAMED:
        block = _NAMED.get(plan.machines[0].market, ())
        return " ".join((f"CHECKPOINT_BUCKET={BUCKET}", *_NAMED[target], *block, line))
    if target == "dstack":  # which refuses names that the environment lacks
        line = line.replace(
            "dstack apply", f"{' '.join(f'{n}=${n}' for n in SECRETS)} dstack apply"
        )
    named = target != "skypilot" or "CHECKPOINT_BUCKET" in line
    return line if named else " ".join((*_named(plan), line))
