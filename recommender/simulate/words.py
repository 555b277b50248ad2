"""The words for a law of runs and for deflatable machines, as typed: `weibull:0.6`."""

from pathlib import Path

from recommender.csvtext import read_csv
from recommender.errors import UsageError
from recommender.risk.laws import Lognormal, RunLaw, SurvivalCurve, Weibull
from recommender.simulate.deflation import Deflatable
from recommender.text import nearest, shown
from recommender.units import parse_count, parse_duration, parse_money, parse_share

LAWS = ("weibull:SHAPE", "lognormal:SIGMA", "exponential", "FILE.csv")
_SHAPES = {"weibull": (0.1, 10.0), "lognormal": (0.01, 4.0)}
_KEYS = ("pressure", "depth", "episode", "price")
EPISODE_S = 1800.0  # a spell of pressure, unless said


def parse_law(text: str, name: str = "--run-law") -> RunLaw:
    """Read a law of run lengths: a family with its shape, or a file with a survival curve."""
    family, colon, shape = text.strip().partition(":")
    if family.lower() == "exponential" and not colon:
        return Weibull(1.0)
    if family.lower() in _SHAPES and colon:
        low, high = _SHAPES[family.lower()]
        value = parse_count(shape, f"{name} {family}:")
        if not low <= value <= high:
            raise UsageError(f"{name} {shown(text)} is out of range; write {low:g} to {high:g}")
        return Weibull(value) if family.lower() == "weibull" else Lognormal(value)
    if text.strip().lower().endswith(".csv"):
        return read_curve(Path(text.strip()))
    raise UsageError(f"{name} {shown(text)} is no law of runs; write {', '.join(LAWS)}")


def read_curve(path: Path) -> SurvivalCurve:
    """Read a survival curve: columns age_h, survival (share of runs still alive), from 0 and 1."""
    rows = read_csv(path, ("age_h", "survival"), (), {"hours": "age_h", "alive": "survival"})
    points: list[tuple[float, float]] = []
    for row in rows:
        values = []
        for column in ("age_h", "survival"):
            try:
                values.append(float(row.cells.get(column, "")))
            except ValueError:
                said = shown(row.cells.get(column, "nothing"))
                raise UsageError(f"{row.where(column)} {said} is not a number") from None
        points.append((values[0] * 3600.0, values[1]))
    ages, alive = zip(*points, strict=True)
    rises = all(a < b for a, b in zip(ages, ages[1:], strict=False))
    falls = all(1.0 >= a >= b >= 0.0 for a, b in zip(alive, alive[1:], strict=False))
    if len(points) < 2 or points[0] != (0.0, 1.0) or not (rises and falls) or alive[-1] >= 1.0:
        raise UsageError(
            f"{shown(path.name)}: not a survival curve; age_h must rise from 0, "
            "survival fall from 1"
        )
    return SurvivalCurve(ages, alive)


def parse_deflatable(text: str, name: str = "--deflatable") -> Deflatable:
    """Read deflatable machines: `pressure=10%,depth=50%`, optional `episode=30m`, `price=2.5`."""
    given: dict[str, str] = {}
    for part in text.split(","):
        key, sign, value = part.strip().partition("=")
        if key not in _KEYS or not sign or key in given:
            meant = nearest(key, _KEYS)
            hint = f"did you mean {meant}?" if meant and meant != key else "write pressure=10%"
            raise UsageError(f"{name} '{shown(part)}' cannot be read; {hint}")
        given[key] = value
    missing = [key for key in ("pressure", "depth") if key not in given]
    if missing:
        raise UsageError(f"{name} has no {' and no '.join(missing)}; write pressure=10%,depth=50%")
    price = given.get("price")
    return Deflatable(
        pressure=parse_share(given["pressure"], f"{name} pressure"),
        depth=parse_share(given["depth"], f"{name} depth", zero=True, one=True),
        episode_s=parse_duration(given["episode"], f"{name} episode")
        if "episode" in given
        else EPISODE_S,
        usd_per_hour=None if price is None else parse_money(price, f"{name} price"),
    )
