"""Where jobs come from: presets, YAML files, and flags laid over them.

A layer that changes the network drops what the layers below it stated about the old one, so
that `derive` computes it anew: `--params 13B` over a preset of 8 B also replaces its width,
FLOP, activations and checkpoint.

Importing PyYAML and parsing a preset took 20 ms of an answer's 460 (2026-11). The YAML files,
with their figures and sources, are the presets; `all.json` holds the same trees and is written
from them:

    python -m recommender.job.jobfile

A job is three layers of plain text, merged before anything is read: the preset named by
`like`, the file, the flags. A layer that changes the network drops what the layers below it
stated about the old one, and `derive` computes it anew.
"""

import json
import re
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recommender.errors import UsageError
from recommender.inputs.files import read_text, write_whole
from recommender.job.job import AMOUNTS, Job
from recommender.text import nearest, shown, unknown

if TYPE_CHECKING:
    from recommender.job.schema import JobFile


Raw = dict[str, Any]  # the text of a job file, checked later by its schema

_FLOP = ("flop_per_sample", "title")
_ACTIVATIONS = ("activation_bytes_per_sample", "recomputed_activation_bytes_per_sample")
_NETWORK = (
    "active_params", "lookup_params", "trainable_params", "hidden", "layers", "gradient_tensors",
    "checkpoint_bytes", "memory_gib_at_batch", "measured", "calibration",
    *_FLOP, *_ACTIVATIONS,
)  # fmt: skip
# What a layer below stated about a field that the layer above changes is no longer true.
_STALE: dict[str, tuple[str, ...]] = {
    **{key: (*AMOUNTS, "title") for key in AMOUNTS},
    "family": (*_NETWORK, "params", "vocab", "seq_len", "max_seq_len", "sample_unit"),
    "params": _NETWORK,
    "lora_rank": ("trainable_params", "checkpoint_bytes", "title"),
    "active_params": _FLOP,
    "hidden": (*_FLOP, *_ACTIVATIONS),
    "layers": (*_FLOP, *_ACTIVATIONS, "gradient_tensors"),
    "seq_len": ("max_seq_len", "measured", *_FLOP, *_ACTIVATIONS),
    "max_seq_len": _ACTIVATIONS,
    "method": (
        "checkpoint_bytes",
        "gradient_tensors",
        "trainable_params",
        "measured",
        "calibration",
        "title",
    ),
    "optimizer": ("checkpoint_bytes",),
    "precision": ("measured", "calibration"),
    "stack": ("calibration",),
    "setup": ("image",),
}
# What a field is where nothing is said: to say so is no change. As `Job` has them.
_DEFAULTS = {"stack": "typical", "precision": "mixed", "method": "full"}
_PER_STEP = re.compile(r"/\s*(step|it\b|iteration)|\b(steps?|it|iterations?)\s*/")
OWN_FIGURES = ("measured", "calibration")  # of the user's; they do not go without a word
SYNONYMS = {
    "parameters": "params",
    "active_parameters": "active_params",
    "trainable_parameters": "trainable_params",
    "global_batch": "batch",
    "vocabulary": "vocab",
    "timings": "measured",
    "tokens_per_sample": "seq_len",
}


def merged(lower: Raw, upper: Raw) -> Raw:
    """Lay one layer over another; what the upper one makes untrue is dropped."""
    stale = {name for names in _stale(lower, upper).values() for name in names}
    kept = {key: value for key, value in lower.items() if key not in stale}
    both = {**kept, **upper}
    if isinstance(kept.get("data"), dict) and isinstance(upper.get("data"), dict):
        both["data"] = {**kept["data"], **upper["data"]}
    if isinstance(kept.get("assumed"), list) and isinstance(upper.get("assumed", []), list):
        still = [name for name in kept["assumed"] if not _restated(name, upper)]
        both["assumed"] = [*still, *upper.get("assumed", [])]
    return both


def set_aside(lower: Raw, upper: Raw) -> dict[str, str]:
    """Own figures of the lower layer that the upper one makes untrue: each, and because of what."""
    return {
        name: key
        for key, names in _stale(lower, upper).items()
        for name in names
        if name in OWN_FIGURES and name in lower and name not in upper
    }


def _stale(lower: Raw, upper: Raw) -> dict[str, tuple[str, ...]]:
    """The fields that each changed one makes untrue in the layers below."""
    changed = [key for key, value in upper.items() if value != lower.get(key, _DEFAULTS.get(key))]
    stale = {key: _STALE.get(key, ()) for key in changed}
    if "method" in stale and upper["method"] == "full":
        stale["method"] += ("lora_rank",)
    if "batch" in stale and _PER_STEP.search(str(lower.get("measured", ""))):
        stale["batch"] = ("measured",)  # of other steps
    return stale


def _restated(assumed: str, upper: Raw) -> bool:
    outer, _, inner = SYNONYMS.get(assumed, assumed).partition(".")
    value = upper.get(outer)
    return value is not None and (not inner or (isinstance(value, dict) and inner in value))


PRESETS = Path(__file__).parent / "presets"
TREES = PRESETS / "all.json"


def preset_names() -> tuple[str, ...]:
    """Name the presets."""
    return tuple(sorted(path.stem for path in PRESETS.glob("*.yaml")))


def shipped_preset_text(name: str) -> str:
    """Give a preset's file as it is written."""
    return (PRESETS / f"{name}.yaml").read_text("utf-8")


def preset_tree(name: str) -> Any:
    """Give a preset as `load_yaml` would: dicts, lists and the text of each value."""
    return json.loads(TREES.read_text("utf-8"))[name]


def trees() -> str:
    """Give all presets, parsed from their YAML, as JSON text."""
    from recommender.inputs.yaml_text import load_yaml

    return (
        json.dumps(
            {name: load_yaml(shipped_preset_text(name), name) for name in preset_names()}, indent=1
        )
        + "\n"
    )


if __name__ == "__main__":
    write_whole(TREES, trees().encode("utf-8"))


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
    return preset_names()


def preset_text(name: str) -> str:
    """Give a preset's file as it is written, figures and sources."""
    if name not in presets():
        raise UsageError(unknown("job", name, presets()))
    return shipped_preset_text(name)


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
    raw = _own(preset_tree(name), name)
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
    from recommender.job.derive import job_of

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
    from recommender.job.schema import label

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
    from recommender.job.schema import read

    return read(raw, flags)


def template(like: str) -> str:
    """Write a job file to start from: what must be known, and what may be."""
    raw = _preset(like)
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
        ("# elastic: yes", "training continues with fewer machines"),
    )
    written = (f"{left:<40}{'# ' + right if right else ''}".rstrip() for left, right in lines)
    return "\n".join(written) + "\n"


def json_schema() -> dict[str, Any]:
    """Describe a job file as JSON Schema, for editors and other tools."""
    from recommender.job.schema import json_schema as described

    return described()
