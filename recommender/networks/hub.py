"""Downloads a model's `config.json` from the Hugging Face hub at the user's request."""

from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote

from recommender.catalogs.errors import CatalogError
from recommender.catalogs.fetch import fetch
from recommender.catalogs.files import replace_file
from recommender.errors import UsageError
from recommender.inputs.files import writing
from recommender.networks.config import parse_config
from recommender.text import has_control, shown, shown_path

HUB = "https://huggingface.co"
_MAX_BYTES = 1_000_000
_WITHIN_S = 30.0
_PLACES = ("config.json", "unet/config.json", "transformer/config.json")  # two of diffusers


def fetch_config(model: str, folder: Path = Path(), hub: str = HUB) -> Path:
    """Download a model's config to `NAME.config.json` in a folder, and return its path.

    Raises:
        UsageError: the hub has no such file, refuses it, or does not answer.
    """
    if model.count("/") != 1 or not all(part.strip(". ") for part in model.split("/")):
        raise UsageError(f"--model {shown(model)} is no name of the hub; write owner/name")
    text = _first(model, hub)
    parse_config(text, model)
    path = folder / f"{model.rpartition('/')[2]}.config.json"
    with writing(shown_path(path), "start in another folder"):
        replace_file(path, text.encode("utf-8"))
    return path


def _first(model: str, hub: str) -> str:
    for place in _PLACES:
        try:
            content = fetch(f"{hub}/{quote(model)}/raw/main/{place}", _MAX_BYTES, _WITHIN_S)
            return content.decode("utf-8")
        except HTTPError as error:
            error.close()  # it holds the answer
            if error.code != 404:
                raise UsageError(_refused(model, error.code)) from None
        except (OSError, CatalogError, UnicodeDecodeError) as error:
            raise UsageError(f"--fetch {shown(model)}: {_reason(error)}") from None
    raise UsageError(f"--fetch {shown(model)}: the hub has no config.json of it")


def _reason(error: Exception) -> str:
    words = str(error)
    return shown(words) if has_control(words) or len(words) > 300 else words


def _refused(model: str, code: int) -> str:
    gated = code in (401, 403)
    why = "it is gated: accept its licence on the hub" if gated else f"the hub answered {code}"
    instead = "download its config.json yourself and name the file with --model"
    return f"--fetch {shown(model)}: {why}; {instead}"
