"""Counts a network from its `config.json`, with the rules of its `model_type`."""

from recommender.errors import UsageError
from recommender.networks.config import Config
from recommender.networks.conventions import conventions
from recommender.networks.convolutions import convnext, resnet
from recommender.networks.encoder_decoder import bart, t5, whisper
from recommender.networks.network import Network
from recommender.networks.state_space import mamba, mamba2
from recommender.networks.transformers import transformer
from recommender.networks.unet import unet
from recommender.networks.vision import dit, swin, vit
from recommender.text import shown, unknown

_OWN = {
    "t5": t5, "mt5": t5, "umt5": t5, "bart": bart, "mbart": bart, "whisper": whisper,
    "mamba": mamba, "mamba2": mamba2,
}  # fmt: skip
_PICTURES = {
    "vit": vit, "deit": vit, "dinov2": vit, "resnet": resnet, "convnext": convnext, "dit": dit,
    "swin": swin, "unet": unet,
}  # fmt: skip
# Files of diffusers name a class and no `model_type`.
_CLASSES = {"UNet2DConditionModel": "unet", "DiTTransformer2DModel": "dit"}
_WHOLE = ("text_config", "llm_config")  # where models of pictures and words keep their decoder


def model_types() -> tuple[str, ...]:
    """List every architecture that can be counted."""
    return (*conventions(), *_OWN, *_PICTURES)


def count_network(config: Config, image: int | None = None, patch: int | None = None) -> Network:
    """Count a network; `image` and `patch` override the sizes of a vision network.

    Raises:
        UsageError: the architecture is not known, or a field is missing.
    """
    kind = _kind(config)
    try:
        if kind in conventions():
            return transformer(_with_type(config, kind), conventions()[kind])
        if kind in _OWN:
            return _OWN[kind](config)
        return _PICTURES[kind](config, image, patch)
    except (ArithmeticError, LookupError, ValueError) as error:  # 0 heads, fewer widths than depths
        raise UsageError(
            f"{config.where}: no {kind} has these fields ({shown(error)}); compare lengths of "
            "lists, and figures that are 0, with the published file"
        ) from error


def _kind(config: Config) -> str:
    named = config.word("_class_name")
    kind = config.word("model_type") or _CLASSES.get(named, named)
    if kind in model_types():
        return kind
    inner = [part for part in _WHOLE if config.inside(part) is not None]
    if inner:
        raise UsageError(
            f"{config.where}: model_type '{shown(kind)}' is made of several networks; save its "
            f"{inner[0]} as a config.json, or state family, params, hidden, layers and vocab"
        )
    if not kind:
        raise UsageError(f"{config.where}: model_type is missing; is it a config.json?")
    listed = "state family, params, hidden, layers and vocab in the job file instead"
    raise UsageError(f"{config.where}: {unknown('model_type', kind, model_types(), listed)}")


def _with_type(config: Config, kind: str) -> Config:
    return Config({**config.fields, "model_type": kind}, config.where)
