"""Parameters counted matrix by matrix, as a framework would allocate them."""

from collections.abc import Iterable

from recommender.catalogs.frozen import dataclass


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
