"""How many parameters of a network are trained, where a file names its parts or its layers."""

import re
from collections.abc import Iterator, Sequence

from recommender.networks.network import Network

_MAX = 120  # characters of a pattern; longer ones, and those that take many steps, are not tried
_NAME = 60  # characters of a name
_STEPS = 3 * 10**5  # of all patterns with a name: a second for 900 names
# How tools name the matrices of a layer, and what else stands in their patterns.
_MATRICES = {
    "q": "q", "query": "q", "k": "k", "key": "k", "v": "v", "value": "v", "o": "o", "output": "o",
    "projection": "o", "gate": "gate", "up": "up", "down": "down", "mlp": "mlp",
}  # fmt: skip
_AROUND = {"proj", "lora", "model", "layers", "self", "attn", "d", "language", "apply",
           "to", "text", "experts", "block", "sparse", "moe"}  # fmt: skip
_FROZEN = (("visual", ("vision",)), ("projector", ("projector",)), ("", ("llm", "language")))
_PLAIN = re.compile(r"[\w.^$\[\]+*?()|\\-]+")
_REPEATED = re.compile(r"\)[*+?{]|[*+?][*+?]")
_QUANTIFIER = re.compile(r"[*+?]")


def trained_parameters(network: Network, stated: Sequence[str]) -> int:
    """Parameters under patterns of names (axolotl), or so many last layers; 0 if none is named.

    What is called frozen is taken away from all.
    """
    parts = dict(_parts(network))
    frozen = [each for each in stated if each.endswith(": true")]
    if frozen:
        left = {name: count for name, count in parts.items() if not _is_frozen(name, frozen)}
        return sum(left.values())
    last = re.fullmatch(r"the last (\d+) layers", stated[0])
    if last:
        first = network.layers - int(last[1])
        wanted = [rf"layers\.{layer}\." for layer in range(max(first, 0), network.layers)]
        return _under(parts, wanted)
    return _under(parts, [*_short(stated)])


def adapted_width(network: Network, targets: Sequence[str]) -> int:
    """In + out of the matrices that words such as q_proj name; 0 if a word is of another one."""
    words = {part for each in targets for part in re.split(r"[^a-z]+|_", each.lower())}
    named = {ours for word in words if (ours := _MATRICES.get(word))}
    stated = {word for word in words if word} - _MATRICES.keys() - _AROUND
    layers, hidden = max(network.layers, 1), network.hidden
    attention = network.adapted_attention / layers
    shared = (attention - 4 * hidden - 2 * network.attention_width) / 2  # of keys and values
    if stated or not named or shared <= 0:
        return 0
    forward = (network.count.adapted - network.adapted_attention) / layers
    wide, narrow = hidden + network.attention_width, hidden + shared
    thirds = forward / (3 if network.gated else 2)
    widths = {"q": wide, "k": narrow, "v": narrow, "o": wide, "gate": thirds * bool(network.gated),
              "up": thirds, "down": thirds, "mlp": forward}  # fmt: skip
    if "mlp" in named:
        named -= {"gate", "up", "down"}
    return round(layers * sum(widths[each] for each in named))


def _is_frozen(name: str, frozen: Sequence[str]) -> bool:
    wanted = next(words for part, words in _FROZEN if name.startswith(part))
    return any(word in each for each in frozen for word in wanted)


def _short(patterns: Sequence[str]) -> Iterator[str]:
    """Patterns that take few steps: a quantifier may try each of its ends."""
    left = _STEPS
    for each in patterns:
        if len(each) <= _MAX and _PLAIN.fullmatch(each) and not _REPEATED.search(each):
            left -= _NAME ** (1 + len(_QUANTIFIER.findall(each)))
            if left < 0:
                return
            yield each


def _under(parts: dict[str, int], patterns: Sequence[str]) -> int:
    try:
        wanted = [re.compile(each) for each in patterns]
    except re.error:
        return 0
    return sum(count for name, count in parts.items() if any(p.search(name) for p in wanted))


def _parts(network: Network) -> Iterator[tuple[str, int]]:
    """Names as transformers has them, and parameters; small parts are the forward network's."""
    tables = network.vocabulary * network.hidden
    yield "model.embed_tokens.weight", network.count.lookup or tables
    head = tables if network.count.lookup else 0  # one table is both otherwise
    yield "lm_head.weight", head
    yield "visual.weight", network.beside - network.projector
    yield "projector.weight", network.projector
    rest = network.count.parameters - network.beside - (network.count.lookup or tables) - head
    layers, hidden = max(network.layers, 1), network.hidden
    each = rest // layers
    experts = network.experts * network.expert_width * hidden * (3 if network.gated else 2)
    experts = min(experts, each)
    # In + out of a layer's adapters on attention is 4·h + 2·a + 2·k, of widths a and k.
    shared = network.adapted_attention / layers / 2 - 2 * hidden - network.attention_width
    wide, narrow = hidden * network.attention_width, round(hidden * max(shared, 0))
    mixers = {"q": wide, "k": narrow, "v": narrow, "o": wide}
    forward = max(each - experts - sum(mixers.values()), 0)
    thirds = ("gate", "up", "down") if network.gated else ("up", "down")
    for layer in range(network.layers):
        at = f"model.layers.{layer}."
        if experts:
            yield f"{at}block_sparse_moe.experts.mlp.experts.weight", experts
        for word, count in mixers.items():
            yield f"{at}self_attn.{word}_proj.weight", count
        for word in thirds:
            yield f"{at}mlp.{word}_proj.weight", forward // len(thirds)
