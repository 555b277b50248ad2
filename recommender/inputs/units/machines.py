"""Parses names of machines and locations: `A100:8`, `8x p4d.24xlarge spot us-east-1`."""

import re
from typing import Literal

from recommender.catalogs import registry
from recommender.catalogs.countries import EU, known_countries
from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError
from recommender.inputs.units.quantities import (
    format_bytes,
    parse_bytes,
    parse_share,
    refusal,
)
from recommender.plan.limits import GpuFilter
from recommender.text import shown, unknown

PROVIDERS = registry.NAMES
MAX_MACHINES = 100_000
GIB = 2**30

NAME = r"[A-Za-z][A-Za-z0-9._-]{0,63}"
_COUNTED = rf"(?:([0-9]{{1,9}})\s*[x×*]\s*)?({NAME})"
_LEAST = r"(.{1,40}B)\s*(?:\+|\.\.)"
_GCP = r"[a-z][0-9]+[a-z]?-[a-z]+(-[a-z]+)?-[0-9]+g?(-[a-z]+)?"
_OF_BOARDS = r"(?i)[\s_]|-(sxm\d?|hbm\d?e?)\b|^(A100-40GB|H100-80GB|H200-141GB|V100-16GB)$"
_MAKERS = re.compile(r"(?i)nvidia|geforce|tesla|amd|sxm\d?|hbm\d?e?|gpu")
_REGION = r"[a-z][a-z0-9-]{1,40}"
MARKETS: dict[str, Literal["on_demand", "spot"]] = {  # of an offer or a quota, as people say it
    "spot": "spot", "preemptible": "spot", "interruptible": "spot",
    "on-demand": "on_demand", "on_demand": "on_demand", "ondemand": "on_demand",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Comparison:
    """The machines the user rents today, from `--compare`; the region is empty if not given."""

    count: int
    instance_type: str
    market: Literal["on_demand", "spot"]
    region: str


@dataclass(frozen=True, slots=True)
class DataAt:
    """The location of the data, from `--data-at`; `gib` is 0 if not given."""

    at: str  # "aws:us-east-1"
    gib: float


def looks_like_instance(name: str) -> bool:
    """Whether a name is an instance type (`p4d.24xlarge`), not a GPU (`A100-80GB`)."""
    azure = name.startswith(("Standard_", "ND", "NC", "NV")) and "_" in name
    return "." in name or azure or bool(re.fullmatch(_GCP, name))


def _counted(text: str, name: str, instead: str) -> tuple[int, str]:
    """Read `8x NAME`; a missing count is 1."""
    found = re.fullmatch(_COUNTED, text.strip())
    if not found:
        raise refusal(name, text, "is not a number of machines", instead)
    count = int(found[1] or 1)
    if not 1 <= count <= MAX_MACHINES:
        raise refusal(name, text, f"must count 1 to {MAX_MACHINES}", instead)
    return count, found[2]


def _plain(text: str) -> str:
    """A GPU as `parse_gpu` reads it, from how drivers, Slurm and clouds write it.

    `NVIDIA H100 80GB HBM3`, `RTX 4090`, `h100_sxm5_80gb`, `h100x8`, `8xA100`, `A100-40G`.
    """
    word = text.strip()
    counted = re.fullmatch(
        r"(\d{1,3})\s*[x×]\s*([A-Za-z].*)|([A-Za-z][\w. -]*?)\s*[x×](\d{1,3})", word
    )
    if counted:
        word, count = counted[2] or counted[3], counted[1] or counted[4]
        return f"{_plain(word)}:{int(count)}"
    sized = re.sub(r"(?i)\b(\d{2,3})G(iB)?\b", r"\1GB", word)
    if sized == word and not re.search(_OF_BOARDS, word):
        return word
    parts = [part for part in re.split(r"[\s_-]+", sized) if not _MAKERS.fullmatch(part)]
    name = "-".join(part.upper() if re.fullmatch(r"(?i)\d+gb", part) else part for part in parts)
    return re.sub(r"(?i)^(A100-40GB|H100-80GB|H200-141GB|V100-16GB)$", lambda f: f[0][:4], name)


def parse_gpu(text: str, name: str = "--gpu") -> GpuFilter:
    """Read one GPU filter: `H100`, `A100:8` (8 in each machine), `80GB+`, `A100:40GB+:8`."""
    instead = "write H100, A100-80GB, A100:8 (8 per machine) or 80GB+"
    per_machine, memory, gpu = None, 0.0, ""
    given = text if ":" in text or "+" in text or ".." in text else _plain(text)
    for place, word in enumerate(given.strip().split(":")):
        least = re.fullmatch(_LEAST, word.strip())
        if least and not memory:
            memory = parse_bytes(least[1], name) / GIB
        elif place and re.fullmatch(r"[0-9]{1,3}", word) and int(word) and per_machine is None:
            per_machine = int(word)
        elif not place and re.fullmatch(NAME, word):
            gpu = word
        else:
            why = f"cannot be read at '{shown(word)}'" if place else "is not the name of a GPU"
            raise refusal(name, text, why, instead)
    return GpuFilter(gpu, per_machine, memory)


def format_gpu(gpu_filter: GpuFilter) -> str:
    """Write a GPU filter so that `parse_gpu` reads exactly the same value."""
    memory = f"{format_bytes(gpu_filter.memory_gib * GIB)}+" if gpu_filter.memory_gib else ""
    count = str(gpu_filter.per_machine) if gpu_filter.per_machine else ""
    return ":".join(part for part in (gpu_filter.name, memory, count) if part)


def parse_country(text: str, name: str) -> tuple[str, ...]:
    """The countries that a code means: "DE", or "EU" for all of the union's."""
    code, known = text.strip().upper(), known_countries()
    if code == "EU":
        return tuple(sorted(EU))
    if code not in known:
        raise UsageError(f"{name} {unknown('country', code, sorted(known))}; write a code or EU")
    return (code,)


def parse_comparison(text: str, name: str = "--compare") -> Comparison:
    """Read today's machines: `8x p4d.24xlarge on-demand us-east-1`; default on-demand."""
    instead = 'write it like "8x p4d.24xlarge on-demand us-east-1"'
    if "+" in text or "," in text:
        raise refusal(name, text, "names several kinds of machines; one can be compared", instead)
    joined = re.sub(r"(?<![A-Za-z0-9.])([0-9]+)\s*[x×*]\s+", r"\1x", text.strip())
    words = re.sub(r"^([0-9]+)\s+(?=[A-Za-z])", r"\1x", joined).split()
    if not words:
        raise refusal(name, text, "is empty", instead)
    count, instance_type = _counted(words[0], name, instead)
    market: Literal["on_demand", "spot"] = "on_demand"
    regions = []
    for word in words[1:]:
        if word.lower() in MARKETS:
            market = MARKETS[word.lower()]
        else:
            regions.append(_region(word, text, name, instead))
    if len(regions) > 1:
        raise refusal(name, text, "names two regions", instead)
    return Comparison(count, instance_type, market, "".join(regions))


def format_comparison(setup: Comparison) -> str:
    """Write machines so that `parse_comparison` reads exactly the same value."""
    market = setup.market.replace("_", "-")
    return f"{setup.count}x {setup.instance_type} {market} {setup.region}".rstrip()


def _region(word: str, text: str, name: str, instead: str) -> str:
    if not re.fullmatch(_REGION, word):
        raise refusal(name, text, f"has no region named '{shown(word)}'", instead)
    return word


def parse_provider(word: str, name: str) -> str:
    """Read the name of a provider."""
    if word.strip().lower() not in PROVIDERS:
        raise UsageError(f"{name}: {unknown('provider', word.strip(), PROVIDERS)}")
    return word.strip().lower()


def parse_data_at(text: str, name: str = "--data-at") -> DataAt:
    """Read the location and size of the data: `aws:us-east-1,150GB`."""
    instead = "write it like aws:us-east-1,150GB"
    place, _, size = text.partition(",")
    provider, colon, region = place.strip().partition(":")
    if not colon:
        raise refusal(name, text, "has no provider and region", instead)
    if "//" in text:
        raise refusal(name, text, "is an address, not a provider and region", instead)
    at = f"{parse_provider(provider, name)}:{_region(region.strip(), text, name, instead)}"
    return DataAt(at, parse_bytes(size, name) / GIB if size.strip() else 0.0)


def parse_discount(text: str, name: str = "--discount") -> tuple[str, float]:
    """Read a discount on a provider's on-demand prices: `aws=0.2`, `gcp=15%`."""
    provider, sign, share = text.partition("=")
    instead = "write it like aws=0.2 or aws=20%"
    if not sign:
        raise refusal(name, text, "has no provider and share", instead)
    return parse_provider(provider, name), parse_share(share, name, zero=True, instead=instead)
