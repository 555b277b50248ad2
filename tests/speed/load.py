"""What files of the largest size cost next to an answer without them. By hand:

    python tests/speed/load.py [--repeats N]

100,000 own offers of three kinds (machines with a number each, without one, and price lists of
forty sellers); and the same quotas as a row for each family and market, in 10,000 rows and in
100,000. Offers are drawn from a seed. Each question is a process of its own; all take turns.
Printed: the least processor seconds, how often those of the answer without files, and the most
memory; JSON last.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from recommender.catalogs.load import load_snapshot

ASKED = ("llama3-8b-lora", "--deadline", "24h")
PLAIN = "no file"
OFFERS, SEED, REGIONS, SELLERS = 100_000, 7, 200, 40
AMOUNT = {"aws": 384, "azure": 384, "gcp": 32}  # vCPUs; Google counts GPUs
# USD per hour of one, about: what matters is that cheap and expensive ones compete.
GPUS = {
    "A100": 1.4, "A100-80GB": 1.9, "B200": 5.0, "L40S": 1.1, "T4": 0.3, "H100": 2.6, "H200": 3.2,
    "L4": 0.5, "V100": 0.8, "A10G": 0.7,
}  # fmt: skip
NOW = "2026-11-21T12:00Z"

Row = Iterable[object]


def offers(kind: str) -> Iterator[Row]:
    """Own offers: `counted` machines, `uncounted` ones, or `lists` of a few sellers."""
    draw = Random(SEED)
    yield ("label", "gpu", "gpus", "usd_per_hour", "count", "region", "market")
    for number in range(OFFERS):
        gpu, gpus = draw.choice(tuple(GPUS)), draw.choice((1, 2, 4, 8))
        market, times = draw.choice((("on-demand", 1.0), ("spot", 0.4)))
        usd = GPUS[gpu] * gpus * times * draw.uniform(0.7, 1.8)
        label = f"s{number % SELLERS}-{gpu}-{gpus}" if kind == "lists" else f"m{number}"
        count = draw.choice((1, 2, 4, 8, 16, 64)) if kind == "counted" else ""
        yield label, gpu, gpus, f"{usd:.2f}", count, f"r{draw.randrange(REGIONS)}", market


def quotas(rows: int) -> Iterator[Row]:
    """The same quotas in so many rows: of every region, or once for all regions where 0."""
    catalog = load_snapshot()
    types, o = catalog.instance_types.values(), catalog.offers
    families = sorted(
        {(t.provider, t.quota_family) for t in types if t.gpu and t.provider in AMOUNT}
    )
    places = sorted(set(zip(o.provider, o.region, strict=True))) if rows else []
    yield ("provider", "family", "market", "region", "amount")
    for provider, family in families:
        regions = [where for name, where in places if name == provider] or [""]
        for region, market in product(regions, ("spot", "on-demand")):
            yield provider, family, market, region, AMOUNT[provider]
            rows -= 1
    again = (
        [row for row in quotas(1)][1:] if rows > 0 else []
    )  # more of the same, which bind no one
    for number in range(rows):
        *place, amount = again[number % len(again)]
        yield (*place, amount + number)


FILES: dict[str, tuple[str, Callable[[], Iterator[Row]]]] = {
    PLAIN: ("", lambda: iter(())),
    "100,000 counted own machines": ("--offers", lambda: offers("counted")),
    "100,000 own machines": ("--offers", lambda: offers("uncounted")),
    "100,000 prices of 40 sellers": ("--offers", lambda: offers("lists")),
    "quotas in few rows": ("--quota", lambda: quotas(0)),
    "10,000 rows of quotas": ("--quota", lambda: quotas(10_000)),
    "100,000 rows of quotas": ("--quota", lambda: quotas(100_000)),
}


def process(words: list[str], folder: Path) -> tuple[float, float]:
    """Processor seconds and MB of one question."""
    own = {f"XDG_{name}_HOME": str(folder / "home") for name in ("CONFIG", "DATA", "CACHE")}
    env = {"PATH": os.environ["PATH"], "HOME": str(folder / "home"), "RECOMMEND_NOW": NOW, **own}
    call = [sys.executable, "-P", "-m", "recommender", *ASKED, *words]
    child = subprocess.Popen(call, cwd=folder, env=env, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    assert os.waitstatus_to_exitcode(status) in (0, 2, 3), words
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3


def measured(folder: Path, repeats: int) -> dict[str, tuple[float, float]]:
    """Least processor seconds and most MB of each question."""
    words: dict[str, list[str]] = {}
    for number, (name, (flag, rows)) in enumerate(FILES.items()):
        path = folder / f"{number}.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(rows())
        words[name] = [flag, str(path)] if flag else []
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in words}
    for _ in range(repeats):
        for name, more in words.items():
            found[name].append(process(more, folder))
    return {
        name: (min(seconds for seconds, _ in each), max(mb for _, mb in each))
        for name, each in found.items()
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    with TemporaryDirectory() as name:
        found = measured(Path(name), repeats)
    least = found[PLAIN][0]
    print(f"load {os.getloadavg()[0]:.1f}; recommend {' '.join(ASKED)} with")
    for name, (seconds, mb) in found.items():
        print(f"{name:30} {seconds:6.2f} s  x{seconds / least:5.2f}  {mb:5.0f} MB")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
