"""From a word or a text to a job: its layers are merged, checked, and completed.

One way through: text, `layers` (merged text), `schema` (typed fields), `derive` (what was left
out), `Job`. Nothing below calls back.
"""

import os
from dataclasses import replace
from pathlib import Path

from recommender.errors import UsageError
from recommender.inputs.files import read_text
from recommender.job.derive import job_of
from recommender.job.job import AMOUNTS, Job
from recommender.job.merge_layers import (
    FILE,
    JobFlags,
    Raw,
    merged,
    own_layer,
    preset_layer,
    set_aside,
    with_preset,
)
from recommender.job.preset_files import presets
from recommender.job.schema import JobFile, label, read
from recommender.text import nearest, shown, unknown

OTHER_FILE = "job.yaml"  # the usual name of a Kubernetes manifest: ours only with our schema line
SUFFIXES = (".yaml", ".yml", ".json")


def find_job(word: str | None = None, folder: Path = Path(), flags: JobFlags | None = None) -> Job:
    """Find the job that a word names: a preset, a YAML file, or recommend.yaml of the folder."""
    raw, where, name = _find(word, folder)
    return _job(raw, where, name, (flags or JobFlags()).raw())


def job_from_text(text: str, where: str = "job", name: str = "job") -> Job:
    """Read a job from the text of a job file."""
    return _job(_parsed(text, where), where, name, {})


def _find(word: str | None, folder: Path) -> tuple[Raw, str, str]:
    if word is None:
        path = _default_file(folder)
        return _parsed(read_text(path), path.name), path.name, _file_name(path)
    if word in presets():
        return preset_layer(word), word, word
    if word.endswith(SUFFIXES) or "/" in word:
        path = folder / word
        return _parsed(read_text(path), shown(word)), shown(word), _file_name(path)
    if not word.strip():
        raise UsageError("the name of the job is empty; recommend jobs list names them")
    if not nearest(word, presets()) and os.path.isfile(folder / word):
        raise UsageError(f"unknown job '{shown(word)}'; to read that file, write ./{shown(word)}")
    raise UsageError(unknown("job", word, presets(), "recommend jobs list names them"))


def _default_file(folder: Path) -> Path:
    if (folder / FILE).is_file():
        return folder / FILE
    other, note = folder / OTHER_FILE, ""
    if other.is_file():
        if _has_schema(other):
            return other
        note = f" ({OTHER_FILE} is ignored: it has no line 'schema: recommend.job/v1')"
    raise UsageError(
        f"no job given and no {FILE} here{note}; recommend jobs list names those that come with "
        f"the tool, recommend jobs new --like llama3-8b-sft > {FILE} writes your own"
    )


def _has_schema(path: Path) -> bool:
    from recommender.inputs.yaml_text import load_yaml

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


def _job(raw: Raw, where: str, name: str, flags: Raw) -> Job:
    names = frozenset("data.at" if key == "data" else key for key in flags)
    try:
        lower = with_preset(raw)
        file = read(merged(lower, flags), names)
        job = job_of(file, name)
    except UsageError as error:
        raise UsageError(*(_placed(p, where, names) for p in error.problems)) from None
    unused = [*_set_aside(lower, flags, where), *_replaced(file, names)]
    return replace(job, unused=tuple(unused)) if unused else job


def _placed(problem: str, where: str, flags: frozenset[str]) -> str:
    """A problem under the flags that it is about, else behind the name of the file."""
    if problem.startswith("--"):
        return problem
    keys, _, said = problem.partition(": ")
    if keys == "flop_per_sample" and "params" in flags:
        keys, said = "params", "another size needs another flop_per_sample; say both in a job file"
    if flags.issuperset(keys.split(", ")):
        return f"{', '.join(label(key, flags) for key in keys.split(', '))}: {said}"
    return f"{where}: {problem}"


def _set_aside(lower: Raw, flags: Raw, where: str) -> list[str]:
    """Own figures that a flag makes untrue, in words."""
    names = frozenset(flags)
    fitted = {"calibration": "run recommend calibrate again", "measured": "give --measured as well"}
    return [
        f"{where}: {name} is not used: {label(key, names)} {shown(flags[key])} is not what "
        f"it was taken with; {fitted[name]}"
        for name, key in set_aside(lower, flags).items()
    ]


def _replaced(file: JobFile, flags: frozenset[str]) -> list[str]:
    if file.setup is None or file.image is None:
        return []
    image, setup = label("image", flags), label("setup", flags)
    return [f"{image} {file.image} has no effect: {setup.rstrip(':')} says how long a start takes"]


def template(like: str) -> str:
    """Write a job file to start from: what must be known, and what may be."""
    raw = preset_layer(like)
    amount = next(key for key in AMOUNTS if key in raw)
    lines = (
        ("schema: recommend.job/v1", ""),
        (f"like: {like}", "everything not set here comes from this preset"),
        (f"# params: {raw['params']}", "a network of another size; its shape and FLOP follow"),
        (f"{amount}: {raw[amount]}", "how much to train on: tokens, samples, epochs or steps"),
        (f"batch: {raw['batch']}", "samples per optimiser step, or such as 4M tokens"),
        (f"# method: {raw.get('method', 'full')}", "full, lora or qlora"),
        ("# data: {at: aws:us-east-1, gib: 150}", "where the data is: egress and staging"),
        ('# measured: ["8xH100: 3.1 s/step"]', "your own timing; it replaces our estimate"),
        ("# image: prebuilt", "machines start with the container installed"),
        ("# elastic: no", "all machines or none; auto: goes on with fewer where it can"),
    )
    written = (f"{left:<40}{'# ' + right if right else ''}".rstrip() for left, right in lines)
    return "\n".join(written) + "\n"
