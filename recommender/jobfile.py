"""Where jobs come from: presets, YAML files, and flags laid over them.

A job is three layers of plain text, merged before anything is read: the preset named by
`like`, the file, the flags. A layer that changes the network drops what the layers below it
stated about the old one, and `derive` computes it anew.
"""

from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recommender import presetfile
from recommender.errors import UsageError
from recommender.job import Job
from recommender.joblayers import AMOUNTS, SYNONYMS, Raw, merged, set_aside
from recommender.text import nearest, shown, unknown
from recommender.wholefile import read_text

if TYPE_CHECKING:
    from recommender.jobschema import JobFile

FILE = "recommend.yaml"
OTHER_FILE = "job.yaml"  # the usual name of a Kubernetes manifest: ours only with our schema line
SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class JobFlags:
    """The job's part of the command line, as typed; None where a flag was not given."""

    tokens: str | None = None
    samples: str | None = None
    epochs: str | None = None
    steps: str | None = None
    batch: str | None = None
    params: str | None = None
    seq_len: str | None = None
    precision: str | None = None
    method: str | None = None
    lora_rank: str | None = None
    optimizer: str | None = None
    sharding: str | None = None
    stack: str | None = None
    sync: str | None = None
    elastic: bool | None = None
    image: str | None = None
    setup: str | None = None
    measured: tuple[str, ...] = ()
    data_at: str | None = None

    def raw(self) -> Raw:
        """Give the flags as the upper layer of a job."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        raw: Raw = {key: value for key, value in given.items() if value not in (None, ())}
        if "measured" in raw:
            raw["measured"] = list(self.measured)
        if "elastic" in raw:
            raw["elastic"] = "yes" if self.elastic else "no"
        if "data_at" in raw:
            raw["data"] = {"at": raw.pop("data_at")}
        return raw


@cache
def presets() -> tuple[str, ...]:
    """Name the jobs that come with the tool."""
    return presetfile.names()


def preset_text(name: str) -> str:
    """Give a preset's file as it is written, figures and sources."""
    if name not in presets():
        raise UsageError(unknown("job", name, presets()))
    return presetfile.text(name)


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
        return _preset(word), word, word
    if word.endswith(SUFFIXES) or "/" in word:
        path = folder / word
        return _parsed(read_text(path), shown(word)), shown(word), _file_name(path)
    if not word.strip():
        raise UsageError("the name of the job is empty; recommend jobs list names them")
    if not nearest(word, presets()) and (folder / word).is_file():
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
    from recommender.yamltext import load_yaml

    try:
        tree = load_yaml(read_text(path), path.name)
    except UsageError:
        return False
    return isinstance(tree, dict) and str(tree.get("schema", "")).startswith("recommend.job/")


def _file_name(path: Path) -> str:
    stem = path.resolve().parent.name if path.name in (FILE, OTHER_FILE) else path.stem
    return shown(stem) or "job"


def _parsed(text: str, where: str) -> Raw:
    from recommender.yamltext import load_yaml  # no preset needs it

    return _own(load_yaml(text, where), where)


def _own(tree: Any, where: str) -> Raw:
    if not isinstance(tree, dict):
        raise UsageError(f"{where}: not a job file; begin with the line schema: recommend.job/v1")
    raw: Raw = {}
    for typed, value in tree.items():
        key = SYNONYMS.get(str(typed), str(typed))
        if key in raw:
            raise UsageError(f"{where}: {key}: is given twice under two names; keep one")
        if value is not None:
            raw[key] = value
    return raw


def _preset(name: str, seen: tuple[str, ...] = ()) -> Raw:
    if name not in presets():
        raise UsageError(unknown("job", name, presets()))
    raw = _own(presetfile.tree(name), name)
    return _inherit(raw, (*seen, name))


def _inherit(raw: Raw, seen: tuple[str, ...] = ()) -> Raw:
    """Lay a job over the preset it is like."""
    own = {key: value for key, value in raw.items() if key != "like"}
    like = raw.get("like")
    if like is None:
        return own
    if not isinstance(like, str) or like not in presets() or like in seen:
        raise UsageError(f"like: {unknown('job', str(like), presets())}")
    return merged(_preset(like, seen), own)


def _job(raw: Raw, where: str, name: str, flags: Raw) -> Job:
    from recommender.derive import job_of

    names = frozenset("data.at" if key == "data" else key for key in flags)
    try:
        lower = _inherit(raw)
        file = _read(merged(lower, flags), names)
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
        return f"{', '.join(_label(key, flags) for key in keys.split(', '))}: {said}"
    return f"{where}: {problem}"


def _label(key: str, flags: frozenset[str]) -> str:
    from recommender.jobschema import label

    return label(key, flags)


def _set_aside(lower: Raw, flags: Raw, where: str) -> list[str]:
    """Own figures that a flag makes untrue, in words."""
    names = frozenset(flags)
    fitted = {"calibration": "run recommend calibrate again", "measured": "give --measured as well"}
    return [
        f"{where}: {name} is not used: {_label(key, names)} {shown(flags[key])} is not what "
        f"it was taken with; {fitted[name]}"
        for name, key in set_aside(lower, flags).items()
    ]


def _replaced(file: "JobFile", flags: frozenset[str]) -> list[str]:
    if file.setup is None or file.image is None:
        return []
    image, setup = _label("image", flags), _label("setup", flags)
    return [f"{image} {file.image} has no effect: {setup.rstrip(':')} says how long a start takes"]


def _read(raw: Raw, flags: frozenset[str]) -> "JobFile":
    from recommender.jobschema import read

    return read(raw, flags)


def template(like: str) -> str:
    """Write a job file to start from: what must be known, and what may be."""
    raw = _preset(like)
    amount = next(key for key in AMOUNTS if key in raw)
    lines = (
        ("schema: recommend.job/v1", ""),
        (f"like: {like}", "all that is not said here is taken from this preset"),
        (f"# params: {raw['params']}", "a network of another size; its shape and FLOP follow"),
        (f"{amount}: {raw[amount]}", "how much to train on: tokens, samples, epochs or steps"),
        (f"batch: {raw['batch']}", "samples per optimiser step, or such as 4M tokens"),
        (f"# method: {raw.get('method', 'full')}", "full, lora or qlora"),
        ("# data: {at: aws:us-east-1, gib: 150}", "where the data lie: egress and staging"),
        ('# measured: ["8xH100: 3.1 s/step"]', "your own timing; it replaces our estimate"),
        ("# image: prebuilt", "machines start with the container on them"),
        ("# elastic: yes", "training goes on with fewer machines"),
    )
    written = (f"{left:<40}{'# ' + right if right else ''}".rstrip() for left, right in lines)
    return "\n".join(written) + "\n"


def json_schema() -> dict[str, Any]:
    """Describe a job file as JSON Schema, for editors and other tools."""
    from recommender.jobschema import json_schema as described

    return described()
