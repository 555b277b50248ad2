"""Finds the network of a name: a `config.json`, a folder that contains one, or a known model."""

from pathlib import Path

from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError
from recommender.inputs.files import read_text
from recommender.networks.architectures import count_network
from recommender.networks.config import Config, parse_config
from recommender.networks.known_models import (
    find_known,
    find_shape,
    known_models,
    nearest_known,
)
from recommender.networks.network import Network
from recommender.text import shown

CONFIG = "config.json"


@dataclass(frozen=True, slots=True)
class FoundNetwork:
    """A network, its display name, and the source of its figures."""

    network: Network
    name: str
    source: str
    shape_of: str = ""  # the known model whose figures it has, where it is none itself
    sized: bool = False  # nothing but its size is known


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
    if known is None:
        raise UsageError(_unknown(word))
    network = count_network(known.config, image, patch)
    return FoundNetwork(network, word, f"the shape of {known.name}", known.name)


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
