"""The training software of a project: what its scripts import, or its files configure or need."""

import re
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path

from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError
from recommender.inputs.files import MAX_BYTES, read_text
from recommender.inputs.training_configs.read import keys_of, read_training_config
from recommender.inputs.training_configs.training_config import TrainingConfig
from recommender.inputs.training_software import Software, software

_MOST_FILES = 200  # of a kind; no more are read
_MOST_PARSED = 20  # configurations
_MOST_BYTES = 2**16  # of a configuration; larger files are data
_NOT_ITS_OWN = ("build", "dist", "docs", "env", "node_modules", "test", "tests", "venv")
_FROM = re.compile(r'^[ \t"]*from\s+([\w.]+)\s+import\s+\(?([\w., ]*)', re.MULTILINE)
_IMPORT = re.compile(r'^[ \t"]*import\s+([\w., ]+)', re.MULTILINE)
# At the start of a line of requirements.txt, a list of YAML, or a string or key of TOML
_REQUIREMENT = re.compile(r"""^[ \t\-"']*([A-Za-z0-9][\w.-]*)|["']([A-Za-z0-9][\w.-]*)""", re.M)
_LIBRARIES = frozenset(("torch", "tensorflow", "jax", "keras", "transformers", "mxnet"))
_REQUIREMENTS = ("requirements*.txt", "pyproject.toml", "environment.y*ml")
# Tools whose files have keys that no other file has; "trainer" or "output_dir" may be anybody's.
_DISTINCT = ("axolotl", "llm-foundry", "torchtitan", "nemo", "llama-factory", "deepspeed")
_DISTINCT_KEY = re.compile(rf"""\b(?:{"|".join(keys_of(_DISTINCT))})["']?\s*[:=]""")


@dataclass(frozen=True, slots=True)
class FoundSoftware:
    """A project's training software, and what shows it."""

    software: Software
    shown_by: str  # "imported by train.py"


def find_software(folder: Path) -> FoundSoftware | None:
    """Find the most specific software that the files of a project show; None if none does.

    Scripts and configurations may lie in the folder or one below it.
    """
    return _imported(folder) or _configured(folder) or _required(folder)


def find_trainings(folder: Path) -> list[tuple[Path, TrainingConfig]]:
    """The files and scripts of a folder that describe a training and name its network."""
    found = []
    kinds = (".yaml", ".yml", ".toml", ".json", ".py", ".ipynb", ".sh")
    own = (path for path in _files(folder, kinds) if path.parent == folder)
    for path in islice((p for p in own if _text(p, _MOST_BYTES)), _MOST_PARSED):
        try:
            config = read_training_config(path)
        except UsageError:  # a file of something else
            continue
        if config.model or config.network:
            found.append((path, config))
    return found


def training_scripts(folder: Path) -> list[Path]:
    """The scripts of a folder that import a library of networks."""
    own = (path for path in _files(folder, (".py", ".ipynb")) if path.parent == folder)
    return [path for path in own if _modules(_text(path)) & _LIBRARIES]


def _imported(folder: Path) -> FoundSoftware | None:
    scripts = _files(folder, (".py", ".ipynb"))
    own = {place: _own_modules(place) for place in {folder, *(path.parent for path in scripts)}}
    by_file = {path: _modules(_text(path)) - own[folder] - own[path.parent] for path in scripts}
    for each in software().values():
        for together in each.modules:
            needed = set(together.split("+"))
            path = next((path for path, names in by_file.items() if needed <= names), None)
            if path is not None:
                return FoundSoftware(each, f"imported by {path.relative_to(folder)}")
    return None


def _own_modules(folder: Path) -> set[str]:
    """What scripts import from their folder, or the project's, whatever tool has the same name.

    A tool's own repository is still found by the dotted modules of the table: megatron.core.
    """
    files = {path.stem for path in folder.glob("*.py")}
    return files | {path.parent.name for path in folder.glob("*/__init__.py")}


def _modules(text: str) -> set[str]:
    """The dotted names that a script imports or uses, and what they lie in.

    Of `from a import b`, or `a.b` after `import a`: a and a.b.
    """
    imported = [words for names in _IMPORT.findall(text) for words in _words(names)]
    found = {words[0] for words in imported} | _used(text, imported)
    for package, names in _FROM.findall(text):
        found |= {package, *(f"{package}.{words[0]}" for words in _words(names))}
    return {name[: dot.start()] for name in found for dot in re.finditer(r"\.|$", name)}


def _used(text: str, imported: list[list[str]]) -> set[str]:
    """What a script uses of a package that it imports whole: tf.keras is tensorflow.keras."""
    by_alias = {words[-1]: words[0] for words in imported if words[0] in _packages()}
    if not by_alias:  # nearly every script: its text is not searched again
        return set()
    aliases = "|".join(map(re.escape, by_alias))
    uses = re.findall(rf"(?<![\w.])({aliases})\.(\w+)", text)
    return {f"{by_alias[alias]}.{word}" for alias, word in uses}


@cache
def _packages() -> frozenset[str]:
    """The packages of whose modules only some are of a tool."""
    modules = (name for s in software().values() for m in s.modules for name in m.split("+"))
    return frozenset(name.rpartition(".")[0] for name in modules if "." in name)


def _words(names: str) -> list[list[str]]:
    """The words of each name in a list: [["numpy", "as", "np"], ["os"]]."""
    return [each.split() for each in names.split(",") if each.strip()]


def _configured(folder: Path) -> FoundSoftware | None:
    for path in _configurations(folder):
        try:
            tool = read_training_config(path).tool.lower()
        except UsageError:  # a file of something else
            continue
        if tool in _DISTINCT:
            return FoundSoftware(software()[tool], f"configured by {path.relative_to(folder)}")
    return None


def _configurations(folder: Path) -> list[Path]:
    """Files that may be of a tool, by a search of their text: folders of data are not parsed."""
    paths = _files(folder, (".yaml", ".yml", ".toml", ".json"))
    found = (path for path in paths if _DISTINCT_KEY.search(_text(path, _MOST_BYTES)))
    return list(islice(found, _MOST_PARSED))


def _required(folder: Path) -> FoundSoftware | None:
    paths = [path for name in _REQUIREMENTS for path in sorted(folder.glob(name))]
    for path in paths:
        words = (word for pair in _REQUIREMENT.findall(_text(path)) for word in pair)
        needs = {re.sub(r"[-_.]+", "-", word).lower() for word in words}
        for each in software().values():
            if needs.intersection(each.packages):
                return FoundSoftware(each, f"required by {path.name}")
    return None


def _files(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """The folder's files of some kinds, and those one folder below, in order of their names."""
    found = (path for path in _own(folder) if path.suffix.lower() in suffixes)
    return list(islice(found, _MOST_FILES))


def _own(folder: Path) -> Iterator[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:  # no such folder yet
        return
    yield from (path for path in entries if path.is_file())
    for below in entries:
        if below.is_dir() and not below.name.startswith(".") and below.name not in _NOT_ITS_OWN:
            yield from (path for path in sorted(below.glob("*")) if path.is_file())


def _text(path: Path, most: int = MAX_BYTES) -> str:
    try:
        return read_text(path, most)
    except UsageError:  # not text, too large, or unreadable
        return ""
