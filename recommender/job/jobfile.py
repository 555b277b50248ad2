"""Reads a job from a name or a text: merges its layers, checks them, and completes them.

The steps are text, `layers` (merged text), `schema` (typed fields), `derive` (missing values) and
`Job`. No step calls back an earlier one.
"""

import os
from dataclasses import replace
from pathlib import Path
from string import ascii_letters

from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError
from recommender.inputs.files import read_text
from recommender.inputs.units import format_count, parse_count
from recommender.job.derive import (
    TOKEN_FAMILIES,
    is_sequence,
    job_of,
    lacks_low_precision,
    padding,
    size_of_work,
)
from recommender.job.job import AMOUNTS, Job
from recommender.job.merge_layers import (
    FILE,
    JobFlags,
    Raw,
    invalidated,
    over,
    own_layer,
    preset_layer,
    with_preset,
)
from recommender.job.preset_files import presets
from recommender.job.schema import JobFile, label, read
from recommender.text import nearest, shown

OTHER_FILE = "job.yaml"  # the usual name of a Kubernetes manifest: ours only with our schema line
SUFFIXES = (".yaml", ".yml", ".json")
MISSPELT = 0.8  # share of equal letters: llama2-7b has 0.70 in common with llama3-70b-sft


def find_job(word: str | None = None, folder: Path = Path(), flags: JobFlags | None = None) -> Job:
    """Find the job of a name: a preset, a YAML file, or recommend.yaml of the folder."""
    flags = flags or JobFlags()
    amount = flags.tokens or flags.samples or flags.examples
    filed = any((folder / name).is_file() for name in (FILE, OTHER_FILE))
    if word is None and (flags.model or flags.params) and amount and not filed:
        return _of_flags(flags, folder)
    job = _job(_find(word, folder, flags.model), flags.raw())
    if word is None and (flags.model or flags.params):
        remark = "the job file of this folder is read, with your flags over it"
        return replace(job, remarks=(remark, *job.remarks))
    return job


def _of_flags(flags: JobFlags, folder: Path) -> Job:
    """One line for one's own model: what flags do not say is as `recommend init` writes it."""
    from recommender.job.draft import StatedJob, draft_job  # most jobs are files

    names = (
        "model", "method", "lora_rank", "examples", "epochs", "batch", "batch_per_gpu", "stack",
        "tokens", "samples", "image_size", "params",
    )  # fmt: skip
    said = {name: getattr(flags, name) for name in names}
    draft = draft_job(StatedJob(**said, tokens_per_example=flags.seq_len), None, folder)
    own = own_layer(_parsed(draft.text, "flags"), "flags")
    name = Path(flags.model or f"{flags.params} parameters").name
    job = _job(_Stated(own, "flags", name, folder), flags.raw())
    assumed = "; ".join(draft.assumed).replace("--tokens-per-example", "--seq-len")
    return replace(job, remarks=(*([f"assumed: {assumed}"] if assumed else []), *job.remarks))


def job_from_text(text: str, where: str = "job", name: str = "job", folder: Path = Path()) -> Job:
    """Read a job from the text of a job file; model files are relative to `folder`."""
    return _job(_Stated(_parsed(text, where), where, name, folder), {})


@dataclass(frozen=True, slots=True)
class _Stated:
    """What a job's file states, and what it is called."""

    raw: Raw
    where: str  # in errors
    name: str
    folder: Path  # that paths in it start from


def _find(word: str | None, folder: Path, model: str | None) -> _Stated:
    if word is None:
        path = _default_file(folder, model)
        return _Stated(_parsed(read_text(path), path.name), path.name, _file_name(path), folder)
    if word in presets():
        return _Stated({"like": word}, word, word, folder)
    if word.endswith(SUFFIXES) or "/" in word:
        path = folder / word
        if not word.endswith(SUFFIXES) and not path.exists():
            raise UsageError(f"{shown(word)}: no such file; {_if_model(word)}")
        _refuse_tool(path, word)
        raw = _parsed(read_text(path), shown(word))
        return _Stated(raw, shown(word), _file_name(path), path.parent)
    if not word.strip():
        raise UsageError("the name of the job is empty; recommend jobs list names them")
    if not nearest(word, presets()) and os.path.isfile(folder / word):
        raise UsageError(f"unknown job '{shown(word)}'; to read that file, write ./{shown(word)}")
    from recommender.networks.known_models import find_known  # most jobs name none

    if find_known(word) is not None:
        raise UsageError(f"{shown(word)} is no job; {_if_model(word)}")
    raise UsageError(_unknown_job(word))


def _refuse_tool(path: Path, word: str) -> None:
    """Say what reads the file of a training tool, where one is given instead of a job file."""
    if not path.is_file() or "recommend." in read_text(path)[:4096] or "like:" in read_text(path):
        return
    from recommender.inputs.training_configs.read import read_training_config  # most jobs need none

    try:
        tool = read_training_config(path).tool
    except UsageError:  # a job file, or none at all
        return
    raise UsageError(
        f"{shown(word)} is a file of {tool}, not a job file; recommend init --from {shown(word)} "
        "writes one from it"
    )


def _unknown_job(word: str) -> str:
    """Say that a word is no job, with the nearest one; where none is near, how to write one.

    Of names that are not merely misspelt, those of about the same size come first.
    """
    if meant := nearest(word, presets(), MISSPELT):
        return f"unknown job '{shown(word)}'; did you mean {meant}?"
    # Only an unknown name needs the known models.
    from recommender.networks.known_models import nearest_known, of_like_size

    alike = [name for name in presets() if of_like_size(name, word)]
    meant = nearest(word, alike) or nearest(word, presets())
    model = nearest_known(word) or ""
    same_family = _family(model.rpartition("/")[2]) == _family(word)
    hint = f"did you mean {meant}? " if meant else ""
    return (
        f"unknown job '{shown(word)}'; {hint}recommend jobs list names all. For another model, "
        f"write a job file: recommend init --model {model if same_family else 'NAME'} "
        "(see recommend init --help)"
    )


def _family(name: str) -> str:
    """The letters with which the name of a model begins."""
    return name.lower()[: len(name) - len(name.lstrip(ascii_letters))]


def _if_model(word: str) -> str:
    """How a model becomes a job: it needs a data set."""
    from recommender.networks.known_models import find_known  # only an error needs it

    known = find_known(word)
    called = f"{shown(word)} --fetch" if known is None else known.name
    return (
        "to train a model of the Hugging Face hub, state the data: "
        f"recommend init --model {called} --examples 50k --tokens-per-example 600"
    )


def _default_file(folder: Path, model: str | None) -> Path:
    if (folder / FILE).is_file():
        return folder / FILE
    other, note = folder / OTHER_FILE, ""
    if other.is_file():
        if _has_schema(other):
            return other
        note = f" ({OTHER_FILE} is ignored: it has no line 'schema: recommend.job/v1')"
    if model is not None:
        raise UsageError(f"no job given and no {FILE} here{note}; {_if_model(model)}")
    raise UsageError(
        f"no job given and no {FILE} here{note}; recommend jobs list names those that come with "
        f"the tool, recommend jobs new --like llama3-8b-sft > {FILE} writes your own"
    )


def _has_schema(path: Path) -> bool:
    from recommender.inputs.yaml_text import load_yaml  # 20 ms, and presets need none

    try:
        tree = load_yaml(read_text(path), path.name)
    except UsageError:
        return False
    return isinstance(tree, dict) and str(tree.get("schema", "")).startswith("recommend.job/")


def _file_name(path: Path) -> str:
    stem = path.resolve().parent.name if path.name in (FILE, OTHER_FILE) else path.stem
    return shown(stem) or "job"


def _parsed(text: str, where: str) -> Raw:
    from recommender.inputs.yaml_text import load_yaml  # no preset needs it

    return own_layer(load_yaml(text, where), where)


def _job(stated: _Stated, flags: Raw) -> Job:
    where, names = stated.where, _flag_names(flags)
    try:
        preset, own = with_preset(stated.raw)
        lower = over(preset, own, stated.folder)
        file = read(over(lower, flags, Path()), names)
        job = job_of(file, stated.name)
    except UsageError as error:
        raise UsageError(*(_placed(p, where, names) for p in error.problems)) from None
    remarks = [*_invalidated_remarks(lower, flags, where), *_replaced(file, names)]
    remarks += [*_unmodelled(file), *_padded(file, job)]
    remarks += _post_training_remarks(job)
    remarks += _kept_work_remarks(preset, own, flags, str(stated.raw.get("like")), job)
    return replace(job, remarks=tuple(remarks)) if remarks else job


def _post_training_remarks(job: Job) -> list[str]:
    """That post-training is planned with an assumption that decides its time."""
    if job.post_training not in ("grpo", "ppo"):
        return []
    if not job.completion_tokens:
        return [f"{job.post_training}: generation is a share of the time, as stated"]
    taken = ", assumed" if "completion_tokens" in job.assumed else ""
    written = f"writes {job.completion_tokens:,.0f} tokens of each example{taken}"
    return [f"{job.post_training}: {written}; measure your own steps (measured:)"]


def _flag_names(flags: Raw) -> frozenset[str]:
    inside = {f"data.{key}" for key in flags.get("data", ())}
    return frozenset({key for key in flags if key != "data"} | inside)


def _kept_work_remarks(preset: Raw, own: Raw, flags: Raw, like: str, job: Job) -> list[str]:
    """That the work is a preset's where the network or the number of epochs is another one."""
    stated = {**own, **flags}
    sized = any("samples" in layer.get("data", ()) for layer in (own, flags))
    amount = sized or any(key in stated for key in AMOUNTS if key != "epochs")
    keys_of_size = ("model", "params", "family", "epochs")
    changed = [key for key in keys_of_size if key in stated and stated[key] != preset.get(key)]
    if amount or not changed or ("epochs" in stated and not job.examples):
        return []
    names = _flag_names(flags)
    because = " and ".join(f"{label(key, names)} {shown(stated[key])}" for key in changed)
    part = "data set" if job.examples else "amount of work"
    what = f"with {because} the {part} is still that of {like}: {size_of_work(job)}"
    return [f"{what}; give examples: (--examples) for your own"]


def _placed(problem: str, where: str, flags: frozenset[str]) -> str:
    """A problem under the flags that it is about, else behind the name of the file."""
    if problem.startswith("--"):
        return problem
    keys, _, why = problem.partition(": ")
    if keys == "flop_per_sample" and "params" in flags:
        keys, why = "params", "another size needs another flop_per_sample; state both in a job file"
    if keys == "flop_per_sample" and "image_size" in flags:
        keys, why = "image_size", "another size needs other FLOP; name the network with --model"
    if "data.samples" in flags and keys in AMOUNTS and keys not in flags:
        keys = "data.samples"
    if flags.issuperset(keys.split(", ")):
        return f"{', '.join(label(key, flags) for key in keys.split(', '))}: {why}"
    return f"{where}: {problem}"


def _invalidated_remarks(lower: Raw, flags: Raw, where: str) -> list[str]:
    """Own figures that a flag makes untrue, in words."""
    names = frozenset(flags)
    fitted = {"calibration": "run recommend calibrate again", "measured": "give --measured as well"}
    return [
        f"{where}: {name} is not used: {label(key, names)} {shown(flags[key])} is not what "
        f"it was taken with; {fitted[name]}"
        for name, key in invalidated(lower, flags).items()
    ]


def _unmodelled(file: JobFile) -> list[str]:
    """What is stated of a network that does not have it."""
    said = []
    if file.attention in ("plain", "masked") and file.family not in TOKEN_FAMILIES:
        stated = f"attention: {file.attention}"
        said.append(f"{stated} has no effect: it is planned for sequences of tokens only")
    if lacks_low_precision(file):
        kind = "adapters of qlora" if file.method == "qlora" else "such a network"
        said.append(
            f"precision: {file.precision} has no effect: no software trains {kind} in it; planned "
            "in mixed precision"
        )
    return said


def _padded(file: JobFile, job: Job) -> list[str]:
    """That micro-batches are as long as their longest example."""
    more = padding(file, file.seq_len or job.tokens_per_sample)
    if more <= 1.0 or not is_sequence(file) or file.flop_per_sample is not None:
        return []
    return [
        f"micro-batches of {file.micro_batch} are planned as padded to their longest example, "
        f"{more:.2f} times the tokens; if examples are packed, leave max_seq_len out"
    ]


def _replaced(file: JobFile, flags: frozenset[str]) -> list[str]:
    if file.setup is None or file.image is None:
        return []
    image, setup = label("image", flags), label("setup", flags)
    return [f"{image} {file.image} has no effect: {setup.rstrip(':')} says how long a start takes"]


def template(like: str) -> str:
    """Write a job file to start from, with required and optional values."""
    raw = preset_layer(like)
    params = format_count(float(f"{parse_count(raw['params']):.3g}"))
    amount = next(key for key in AMOUNTS if key in raw)
    lines = (
        ("schema: recommend.job/v1", ""),
        (f"like: {like}", "everything not set here comes from this preset"),
        (f"# params: {params}", "a network of another size; its shape and FLOP follow"),
        (f"{amount}: {raw[amount]}", "how much to train on: tokens, samples, epochs or steps"),
        (f"batch: {raw['batch']}", "samples per optimiser step, or such as 4M tokens"),
        (f"# method: {raw.get('method', 'full')}", "full, lora or qlora"),
        ("# batch_per_gpu: 8", "instead of batch: the global batch grows with the GPUs"),
        ("# data: {at: aws:us-east-1, gib: 150}", "where the data is: egress and staging"),
        ('# measured: ["8xH100: 3.1 s/step"]', "your own timing; it replaces our estimate"),
        ("# image: prebuilt", "machines start with the container installed"),
        ("# elastic: no", "all machines or none; auto: goes on with fewer where it can"),
    )
    written = (f"{left:<40}{'# ' + right if right else ''}".rstrip() for left, right in lines)
    return "\n".join(written) + "\n"
