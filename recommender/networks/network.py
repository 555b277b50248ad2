"""Parameters counted matrix by matrix, as a framework would allocate them, and whole networks."""

from collections.abc import Iterable
from dataclasses import replace

from recommender.catalogs.frozen import dataclass

_WIDTHS = 64  # of networks are multiples of this
_SCALED = ("hidden", "attention_width", "windowed_width", "heads", "kv_width", "expert_width")
BACKWARD = 3  # forward and backward together over forward alone (Kaplan et al. 2020, 2001.08361)


@dataclass(frozen=True, slots=True)
class Count:
    """The parameters of a part of a network, and how many of them a token uses."""

    parameters: int = 0
    active: int = 0  # that a token passes: of several experts only those it is routed to
    lookup: int = 0  # rows of embeddings, read and not multiplied
    tensors: int = 0  # that have a gradient
    adapted: int = 0  # in + out of every matrix that can have an adapter of rank 1

    def __add__(self, other: "Count") -> "Count":
        """Add two parts."""
        return Count(
            self.parameters + other.parameters,
            self.active + other.active,
            self.lookup + other.lookup,
            self.tensors + other.tensors,
            self.adapted + other.adapted,
        )

    def times(self, number: int, active: int | None = None) -> "Count":
        """Repeat a part; a token passes all copies, or `active` of them."""
        passed = number if active is None else active
        return Count(
            self.parameters * number,
            self.active * passed,
            self.lookup * number,
            self.tensors * number,
            self.adapted * number,
        )


def total(parts: Iterable[Count]) -> Count:
    """Add up the parts of a network."""
    return sum(parts, Count())


def linear(inputs: int, outputs: int, bias: bool = False) -> Count:
    """Count a linear layer, to which adapters may be attached."""
    each = inputs * outputs + outputs * bias
    return Count(each, each, 0, 1 + bias, inputs + outputs)


def plain(inputs: int, outputs: int, bias: bool = False) -> Count:
    """Count a matrix outside the layers, such as the output head, without adapters."""
    each = inputs * outputs + outputs * bias
    return Count(each, each, 0, 1 + bias)


def norm(width: int, bias: bool = False) -> Count:
    """Count a normalisation: a scale and, with a bias, a shift."""
    each = width * (1 + bias)
    return Count(each, each, 0, 1 + bias)


def vector(width: int) -> Count:
    """Count a learned vector."""
    return Count(width, width, 0, 1)


def embedding(rows: int, width: int) -> Count:
    """Count a lookup table."""
    return Count(rows * width, rows * width, rows * width, 1)


def convolution(inputs: int, outputs: int, kernel: int, bias: bool = False) -> Count:
    """Count a square convolution."""
    each = inputs * outputs * kernel * kernel + outputs * bias
    return Count(each, each, 0, 1 + bias)


def block(
    hidden: int, inner: int, bias: bool = True, norms: int = 2, gated: bool = False, times: int = 1
) -> Count:
    """Count a layer of a transformer with `times` attentions: pictures, encoders, decoders."""
    found = linear(hidden, hidden, bias).times(4 * times) + norm(hidden, bias).times(norms)
    into = linear(hidden, inner, bias).times(2 if gated else 1)
    return found + into + linear(inner, hidden, bias)


@dataclass(frozen=True, slots=True)
class Network:
    """Family, parameters and widths; FLOP if they do not follow from these and the tokens."""

    family: str  # of `Family` in job/job.py
    count: Count
    hidden: int = 0
    layers: int = 0
    vocabulary: int = 0
    attention_width: int = 0  # heads × head size, mean of keys and values; per layer
    windowed_width: int = 0  # the part of it whose layers see no more than `window` positions
    window: int = 0
    heads: int = 0  # of attention, for queries
    kv_width: int = 0  # of the keys, and of the values, that generation keeps; mean of layers
    sdpa: bool = True  # transformers trains it with fused attention
    expert_width: int = 0  # of one of the experts that a token is routed to; 0 without any
    experts: int = 0  # of a layer, to be routed to
    expert_groups: int = 0  # whose experts a token is routed to, at most; 0: to any
    gated: bool | None = None  # of decoders: the feed-forward network has three matrices
    flop_per_sample: float = 0.0  # forward and backward; 0: follows from the tokens
    activation_bytes: float = 0.0  # kept of a sample for the backward pass, in 16 bits; 0 unknown
    recomputed_bytes: float = 0.0  # the same where every layer is computed again; 0: a share of it
    sample_unit: str = ""
    adapted_attention: int = 0  # of the widths with adapters, those of attention
    projector: int = 0  # of what is beside, what turns pictures into tokens
    beside: int = 0  # parameters of parts that no token of text passes: eyes and projectors
    note: str = ""  # what was taken for granted, for the user

    def with_note(self, note: str) -> "Network":
        """The network with one more thing that was taken for granted."""
        return replace(self, note="; ".join(each for each in (self.note, note) if each))

    def resized(self, parameters: float, active: float) -> "Network":
        """A network of the same kind with more or fewer parameters, wider and deeper alike."""
        ratio = parameters / self.count.parameters
        wider = max(round(self.hidden * ratio ** (1 / 3) / _WIDTHS), 1) * _WIDTHS / self.hidden
        deeper = max(round(self.layers * ratio / wider**2), 1) / self.layers
        whole = self.count
        count = Count(
            round(parameters),
            round(active or parameters * whole.active / whole.parameters),
            round(whole.lookup * wider),
            round(whole.tensors * deeper),
            round(whole.adapted * wider * deeper),
        )
        return replace(
            self,
            count=count,
            layers=round(self.layers * deeper),
            flop_per_sample=self.flop_per_sample * ratio,
            activation_bytes=self.activation_bytes * wider * deeper,
            recomputed_bytes=self.recomputed_bytes * wider * deeper,
            **{name: round(getattr(self, name) * wider) for name in _SCALED},
        )

    def with_part(self, part: Count, projector: int, note: str) -> "Network":
        """The network with a part that tokens do not pass."""
        whole = replace(self, count=self.count + part, projector=projector)
        return replace(whole, beside=part.parameters).with_note(note)


def flop(multiply_adds: float) -> float:
    """Convert multiply-adds of a forward pass to training FLOP."""
    return 2.0 * BACKWARD * multiply_adds
