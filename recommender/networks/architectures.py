"""Counts a network from its `config.json`, with the rules of its class."""

from recommender.errors import UsageError
from recommender.networks import config as names
from recommender.networks.composites import composite
from recommender.networks.config import Config, Convention, conventions
from recommender.networks.convolutions import convnext, published, resnet
from recommender.networks.encoder_decoder import bart, t5, whisper
from recommender.networks.network import Count, Network
from recommender.networks.transformers import transformer
from recommender.networks.unet import unet
from recommender.networks.vision import dit, swin, two_towers, vit
from recommender.text import shown, unknown

_OWN = {"t5": t5, "mt5": t5, "umt5": t5, "bart": bart, "mbart": bart, "whisper": whisper}
_PICTURES = {
    "vit": vit, "deit": vit, "dinov2": vit, "resnet": resnet, "convnext": convnext, "dit": dit,
    "swin": swin, "unet": unet, "published": published, "clip": two_towers, "siglip": two_towers,
}  # fmt: skip
# Files of diffusers name a class and no `model_type`.
_CLASSES = {
    "UNet2DConditionModel": "unet", "DiTTransformer2DModel": "dit", "FluxTransformer2DModel": "dit",
    "SD3Transformer2DModel": "dit", "PixArtTransformer2DModel": "dit",
    "QwenImageTransformer2DModel": "dit", "WanTransformer3DModel": "dit",
    "LTXVideoTransformer3DModel": "dit",
}  # fmt: skip
_HEADS = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel", "ForMaskedLM", "Model",
          "ForImageClassification", "ForSequenceClassification")  # fmt: skip
_SHAPE = (names.HIDDEN, names.LAYERS, names.HEADS, ("vocab_size",))  # without which none is guessed


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
        found = _counted(config, kind, image, patch)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # 0 heads, other lengths
        raise UsageError(
            f"{config.where}: no {kind or 'network'} has these fields ({shown(error)}); compare "
            "lengths of lists, and figures that are 0, with the published file"
        ) from error
    total = config.fields.get("total_parameters")
    rest = (total if isinstance(total, int) else 0) - found.count.parameters
    if rest <= 0:
        return found
    return found.with_part(Count(rest), 0, "what sees and hears is counted, and not trained on")


def _counted(config: Config, kind: str, image: int | None, patch: int | None) -> Network:
    if kind in _OWN:
        return _OWN[kind](config)
    if kind in _PICTURES:
        return _PICTURES[kind](config, image, patch)
    return _of_class(config, kind) if kind else _by_its_fields(config)


def _of_class(config: Config, kind: str) -> Network:
    convention = conventions()[kind]
    if convention.family == "composite":
        return composite(config, convention, _part)
    if convention.family == "eye":
        raise UsageError(f"{config.where}: {kind} is an eye alone; name the network it is part of")
    named = Config({**config.fields, "model_type": kind}, config.where)
    named = named.flattened("attn_config", "ffn_config")
    named.whole(names.HIDDEN)  # a file that does not say so much is not the whole file
    return transformer(named.with_defaults(convention.defaults), convention)


def _part(config: Config, kind: str) -> Network:
    """The decoder of a composite; its own file may say another class than is usual."""
    own = config.word("model_type")
    stated = own in conventions() and conventions()[own].family not in ("composite", "eye")
    return _of_class(config, own if stated else kind)


def _kind(config: Config) -> str:
    """The class whose rules count a network; "" where no class that is known names itself."""
    named = config.word("_class_name")
    kind = config.word("model_type") or _CLASSES.get(named, named)
    known = [kind] if kind in model_types() else []
    bare = {_bare(each): each for each in model_types()}
    for word in config.words("architectures"):
        stems = (_bare(word.removesuffix(head)) for head in _HEADS if word.endswith(head))
        known += [bare[stem] for stem in stems if stem in bare]
    if known:  # "nemotron" and NemotronH, gemma3_text and Gemma3: the more special of the two
        first = known[0]
        more = (each for each in known if _bare(each).startswith(_bare(first)))
        return max(more, key=len)
    if all(config.has(*each) for each in _SHAPE):
        return ""
    if not kind:
        raise UsageError(f"{config.where}: model_type is missing; is it a config.json?")
    if any(config.inside(part) for part in ("text_config", "llm_config", "vision_config")):
        raise UsageError(
            f"{config.where}: model_type '{shown(kind)}' is made of several networks whose layout "
            "is not known; state family, params, hidden, layers and vocab in the job file"
        )
    listed = "state family, params, hidden, layers and vocab in the job file instead"
    raise UsageError(f"{config.where}: {unknown('model_type', kind, model_types(), listed)}")


def _bare(word: str) -> str:
    return word.lower().replace("_", "").replace("-", "")


def _by_its_fields(config: Config) -> Network:
    """A class that is not known, as a decoder whose layers are those of most, and said so."""
    convention = Convention(
        "moe",
        {},
        gated=True,
        qkv_bias="attention_bias",
        out_bias="attention_bias",
        mlp_bias="mlp_bias",
    )
    found = transformer(config.flattened("attn_config", "ffn_config"), convention)
    kind = config.word("model_type") or "no model_type"
    note = f"no class that is known ({shown(kind)}): counted from its fields as a gated decoder"
    return found.with_note(note)
