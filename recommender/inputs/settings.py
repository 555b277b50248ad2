"""Default settings of a user or a project: their values, and where they come from.

Precedence: flag, environment (RECOMMEND_*), project (recommend.toml, or [tool.recommend] of
pyproject.toml, in the folder or the nearest one above), user file, built-in default.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from recommender.catalogs.files import replace_file
from recommender.catalogs.frozen import dataclass
from recommender.errors import MAX_COUNTED, UsageError, refuse_all
from recommender.inputs import units
from recommender.inputs.files import read_text
from recommender.inputs.training_software import software
from recommender.plan.limits import ACCOUNTS
from recommender.text import has_control, shown, shown_path, unknown

PROJECT_FILE = "recommend.toml"
PREFIX = "RECOMMEND_"
# [tool.recommend], tool.recommend.x = 1 and tool = { recommend = ...}, or keys below [tool]
_MAY_NAME_US = re.compile(
    r"""^[ \t]*+\[?[ \t]*+["']?tool["']?[ \t]*+(?:\]|[^\n]*recommend)""", re.MULTILINE
)

Value = str | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting's value as text, and its origin."""

    key: str
    value: Value
    origin: str  # "flag", "RECOMMEND_CONFIDENCE", a file, "default"


@dataclass(frozen=True, slots=True)
class _Key:
    """What a key may hold; lists come as several words."""

    default: Value
    check: Callable[[str, str], object]


def _one_of(*words: str) -> Callable[[str, str], object]:
    def check(text: str, name: str) -> str:
        if text not in words:
            raise UsageError(f"{name} {unknown('value', text, words)}")
        return text

    return check


def _word(text: str, name: str) -> str:
    if not text.strip() or has_control(text) or len(text) > 1000:
        raise UsageError(f"{name} '{shown(text)}' is empty, too long or holds control characters")
    return text


KEYS: Mapping[str, _Key] = {
    "providers": _Key((), _one_of(*units.PROVIDERS)),
    "regions": _Key((), _word),
    "countries": _Key((), units.parse_country),
    "deny": _Key((), _word),
    "gpu": _Key((), units.parse_gpu),
    "confidence": _Key("0.95", units.parse_share),
    "max_machines": _Key("16", units.whole_of("16", most=1024)),
    "max_overhead": _Key("", units.parse_share),
    "market": _Key("any", _one_of("any", "spot", "on-demand", "reserved")),
    "failover": _Key("region", _one_of("none", "zone", "region")),
    "discount": _Key((), units.parse_discount),
    "data_at": _Key("", units.parse_data_at),
    "quota": _Key("", _word),
    "account": _Key("", _one_of(*ACCOUNTS)),
    "offers": _Key("", _word),
    "stack": _Key("typical", _one_of(*software())),
    "image": _Key("cold", _one_of("cold", "prebuilt")),
    "auto_update": _Key("off", _one_of("off", "daily")),
    "update_from": _Key("", _word),
    "currency": _Key("", units.parse_currency),
    "max_age": _Key("", units.duration_of("30d")),
    "output": _Key("table", _one_of("table", "json", "csv", "markdown")),
    "color": _Key("auto", _one_of("auto", "always", "never")),
}


def load(
    flags: Mapping[str, Value | None],
    folder: Path,
    environment: Mapping[str, str] | None = None,
    user_file: Path | None = None,
) -> dict[str, Setting]:
    """Find every setting's value and origin; a flag that is None was not given."""
    found = {key: Setting(key, spec.default, "default") for key, spec in KEYS.items()}
    user = user_file or user_path()
    for path in (user, project_path(folder)):
        if path is not None and path.is_file():
            found |= _from_file(path)
    found |= _from_environment(os.environ if environment is None else environment)
    given = {key: value for key, value in flags.items() if value not in (None, ())}
    return found | {key: Setting(key, v, "flag") for key, v in given.items() if v is not None}


def user_path() -> Path:
    """The path of the user's own settings."""
    from platformdirs import user_config_path

    return user_config_path("recommend", appauthor=False) / "config.toml"


def project_path(folder: Path) -> Path | None:
    """Find the project's settings, in the folder or above it up to the repository's root."""
    try:
        here = folder.resolve()
    except FileNotFoundError:  # the working directory has been deleted
        return None
    for place in (here, *here.parents):
        if (place / PROJECT_FILE).is_file():
            return place / PROJECT_FILE
        if _has_table(place / "pyproject.toml"):
            return place / "pyproject.toml"
        if (place / ".git").exists():
            return None
    return None


def save(key: str, words: tuple[str, ...], path: Path | None = None) -> Path:
    """Write one setting to the user's file and keep the rest unchanged."""
    spec = _key(key)
    if not "".join(words).strip():
        raise UsageError(f"{key}: is empty; recommend config unset {key} takes it back")
    value = _checked(key, words if isinstance(spec.default, tuple) else " ".join(words))
    path = path or user_path()
    _rewrite(path, key, [f"{key} = {json.dumps(value, ensure_ascii=False)}"])
    return path


def unset(key: str, path: Path | None = None) -> tuple[Path, bool]:
    """Remove one setting from the user's file; return the file, and whether it was set."""
    _key(key)
    path = path or user_path()
    kept = path.is_file() and key in (_table(path) or {})
    if kept:
        _rewrite(path, key, [])
    return path, kept


def _rewrite(path: Path, key: str, first: list[str]) -> None:
    """Rewrite a settings file with new lines for one key and all others unchanged."""
    old = read_text(path) if path.is_file() else ""
    kept = [line for line in old.splitlines() if not re.match(rf"\s*{key}\s*=", line)]
    whole = "".join(f"{line}\n" for line in [*first, *kept])
    if not _same_but(key, old, whole):  # a value over several lines, say
        raise UsageError(f"{shown_path(path)}: {key} cannot be changed from here; edit the file")
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, whole.encode("utf-8"))


def _same_but(key: str, old: str, new: str) -> bool:
    from recommender.inputs.toml_text import parse_toml  # only a change of settings needs it

    try:
        before, after = parse_toml(old), parse_toml(new)
    except ValueError:
        return False
    return {**before, key: None} == {**after, key: None}


def _key(key: str, name: str = "setting") -> _Key:
    if key not in KEYS:
        raise UsageError(unknown(name, key, KEYS))
    return KEYS[key]


def _checked(key: str, value: Value, name: str = "") -> Value:
    spec, name = _key(key), name or f"{key}:"
    words = (value,) if isinstance(value, str) else value
    for word in words:
        spec.check(word, name)
    return value


def _table(path: Path) -> Any:
    from recommender.inputs.toml_text import parse_toml  # most calls find no settings file

    try:
        tree = parse_toml(read_text(path))
    except ValueError as error:  # also of a number of thousands of digits
        raise UsageError(f"{shown_path(path)}: not TOML ({shown(error)})") from None
    if path.name != "pyproject.toml":
        return tree
    tool = tree.get("tool")
    return tool.get("recommend") if isinstance(tool, dict) else None


def _has_table(path: Path) -> bool:
    # A pyproject.toml that has nothing to say to us may be as broken as it likes.
    if not path.is_file():
        return False
    try:
        # Parsing a whole pyproject.toml takes longer than everything else about settings.
        return bool(_MAY_NAME_US.search(read_text(path))) and _table(path) is not None
    except UsageError:
        return False


def _from_file(path: Path) -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    problems: list[str] = []
    table = _table(path)
    if not isinstance(table, dict):
        raise UsageError(f"{shown_path(path)}: [tool.recommend] is not a table")
    for key, value in table.items():
        try:
            found[key] = Setting(key, _from_toml(key, value, str(path)), str(path))
        except UsageError as error:
            problems += error.problems
        except ValueError:  # 0xfff…: TOML bounds the digits of decimal numbers alone
            problems.append(f"{key}: holds a number of thousands of digits")
        if len(problems) > MAX_COUNTED:
            break
    refuse_all(f"{shown(path.name)}: {problem}" for problem in problems)
    return found


def _from_toml(key: str, value: object, path: str) -> Value:
    many = isinstance(_key(key).default, tuple)
    if isinstance(value, dict) and many:
        value = [f"{name}={share}" for name, share in value.items()]
    items = value if isinstance(value, list) else [value]
    plain = all(isinstance(item, (str, int, float)) for item in items)
    if not plain or (not many and isinstance(value, (list, bool))):
        raise UsageError(f"{key}: {shown(value)} is not {'a list of words' if many else 'a word'}")
    words = tuple(str(item) for item in items)
    return _checked(key, words if many else words[0])


def _misspelt(environment: Mapping[str, str]) -> list[str]:
    """Variables that look like a setting in the singular or plural, and are none."""
    found = []
    for name in environment:
        key = name.removeprefix(PREFIX).lower()
        meant = next((k for k in (f"{key}s", key.removesuffix("s")) if k in KEYS), None)
        if name.startswith(PREFIX) and key not in KEYS and meant:
            found.append(f"unknown variable {name}; did you mean {PREFIX}{meant.upper()}?")
    return found


def _from_environment(environment: Mapping[str, str]) -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    problems = _misspelt(environment)
    for key, spec in KEYS.items():
        name = PREFIX + key.upper()
        text = environment.get(name, "")
        if not text:
            continue
        words = tuple(part.strip() for part in text.split(",") if part.strip())
        try:
            value = _checked(key, words if isinstance(spec.default, tuple) else text, name)
        except UsageError as error:
            problems += error.problems
        else:
            found[key] = Setting(key, value, name)
    if problems:
        raise UsageError(*problems)
    return found
