"""Finds the network of a name: a `config.json`, a folder that contains one, or a known model."""

from pathlib import Path

from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError
from recommender.inputs.files import read_text
from recommender.networks.architectures import count_network
from recommender.networks.config import Config, parse_config
from recommender.networks.known_models import (
    find_known,
    find_relative,
    find_shape,
    is_sibling,
    known_models,
    nearest_known,
    sizes_in,
)
from recommender.networks.network import Count, Network
from recommender.text import shown

CONFIG = "config.json"


@dataclass(frozen=True, slots=True)
class FoundNetwork:
    """A network, its display name, and the source of its figures."""

    network: Network
    name: str
    source: str
    shape_of: str = ""  # the known model whose figures it has, where it is none itself
    sized: bool = False  # nothing but its size is known, and perhaps a relative


def find_network(
    word: str, folder: Path = Path(), image: int | None = None, patch: int | None = None
) -> FoundNetwork:
    """Find and count the network of a name; files are relative to `folder`.

    Raises:
        UsageError: there is no such file and no such model, or it cannot be counted.
    """
    path = _file(word, folder)
    if path is not None:
        config = parse_config(read_text(path), shown(word))
        return FoundNetwork(
            count_network(config, image, patch), _name_in(config, path), shown(word)
        )
    known = find_known(word)
    if known is not None:
        return FoundNetwork(count_network(known.config, image, patch), known.name, known.source)
    known = find_shape(word)
    if known is not None:
        network = count_network(known.config, image, patch)
        return FoundNetwork(network, word, f"the shape of {known.name}", known.name)
    return _of_size(word, image, patch)


def _of_size(word: str, image: int | None, patch: int | None) -> FoundNetwork:
    """An unknown network with the size in its name: a relative's shape, or a plain one."""
    whole, used = sizes_in(word)
    relative = find_relative(word)
    if relative is not None:
        network = count_network(relative.config, image, patch)
        if is_sibling(word, relative):
            return FoundNetwork(network, word, f"the shape of {relative.name}", relative.name)
        if network.hidden and network.layers:
            source = f"the shape of {relative.name}, scaled to the size in the name"
            return FoundNetwork(network.resized(whole, used), word, source, sized=True)
    if not whole:
        raise UsageError(_unknown(word))
    meant = nearest_known(word)
    hint = f"; did you mean {meant}?" if meant else ""
    return sized(whole, used, f"by the size in the name{hint}", word)


def sized(whole: float, used: float, source: str, name: str = "") -> FoundNetwork:
    """A network of which its size alone is known: a decoder, or a mixture."""
    count = Count(round(whole), round(used or whole))
    return FoundNetwork(Network("moe" if used else "decoder", count), name, source, sized=True)


def _file(word: str, folder: Path) -> Path | None:
    path = folder / word
    if (path / CONFIG).is_file():
        return path / CONFIG
    if path.is_file() or word.endswith(".json"):
        return path
    return None


def _name_in(config: Config, path: Path) -> str:
    """What the file calls its model, else the file's or its folder's name."""
    called = config.word("_name_or_path")
    return called or (path.resolve().parent.name if path.name == CONFIG else path.stem)


def _unknown(word: str) -> str:
    meant = nearest_known(word)
    hint = f"did you mean {meant}?" if meant else f"{len(known_models())} models are known offline;"
    fetched = f"recommend init --model {shown(word)} --fetch reads its config.json"
    return f"unknown model '{shown(word)}'; {hint} {fetched}, or name such a file"
