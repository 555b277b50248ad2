"""How an exported plan is started, and which target a plan is usually exported to."""

from recommender.export.description import RunDescription

TARGETS = (
    "skypilot", "dstack", "slurm", "torchrun", "terraform", "aws-cli", "gcloud", "azure-cli",
)  # fmt: skip

BUCKET = "YOUR-BUCKET"
Start = tuple[str, ...]

_FILES = {
    "dstack": ("dstack", "apply", "-f", "train.dstack.yml"),
    "slurm": ("sbatch", "train.sbatch"),
    "torchrun": ("bash", "train.sh"),
    "aws-cli": ("bash", "launch.sh"),
    "gcloud": ("bash", "launch.sh"),
    "azure-cli": ("bash", "launch.sh"),
}


def usual_target(run: RunDescription) -> str:
    """SkyPilot where it can run the plan, else what can."""
    if run.provider is None or not run.provider.sky_name or run.mixed:
        return "torchrun"
    return "azure-cli" if run.machines.confidential else "skypilot"


def start_words(run: RunDescription, target: str, folder: str) -> Start:
    """The command that starts the files of a folder; buckets are named in the environment."""
    if target == "skypilot":
        return _sky_words(run, folder)
    if target == "terraform":
        return ("terraform", f"-chdir={folder or '.'}", "apply")
    *words, name = _FILES[target]
    return (*words, in_folder(folder, name))


def _sky_words(run: RunDescription, folder: str) -> Start:
    if run.fallback is not None:
        return ("bash", in_folder(folder, "launch.sh"))
    bucket = ("--env", f"CHECKPOINT_BUCKET={BUCKET}") if run.saves else ()
    return ("sky", "jobs", "launch", *bucket, in_folder(folder, "train.yaml"))


def in_folder(folder: str, name: str) -> str:
    """The path of a file in a folder."""
    return f"{folder.rstrip('/')}/{name}" if folder else name


def start_line(run: RunDescription, target: str, folder: str) -> str:
    """The command with the bucket it needs, on one line."""
    line = " ".join(start_words(run, target, folder))
    named = not run.saves or "CHECKPOINT_BUCKET" in line
    return line if named else f"CHECKPOINT_BUCKET={BUCKET} {line}"
