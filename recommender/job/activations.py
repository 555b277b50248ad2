"""What a transformer keeps of a sample for the backward pass, in 16-bit training.

Bytes of each position and layer, h the width, E the parameters of a layer over h (the widths of
what its matrices put out, residual stream apart), A the widths of what adapters take in:

full     34·h                       Korthikanti et al. 2022, arXiv 2205.05198, without scores
lora     8·h + 2·E + 3·A            the frozen matrices keep no input for a gradient of their own;
                                    norms keep 32-bit copies of the stream, and every output before
                                    a nonlinear function or a product 16 bits; each adapter its
                                    input behind dropout, 2, and the mask of it, 1
qlora    8·h + 4·E + 3·A            the stream is in 32 bits, as embeddings are, and 4-bit matrices
                                    give back what width they are given

The last two as PEFT 0.19 and bitsandbytes 0.50 run them on the layers of transformers 5
(`prepare_model_for_kbit_training`, `Linear4bit.forward`; read 2026-11-23). The loss holds the
logits, a 32-bit copy, its softmax and the gradient. Readings: docs/research/memory.md.
"""

from recommender.catalogs.frozen import dataclass
from recommender.job.job import Method

# Per token and word: 16-bit logits, fp32 softmax and gradient; under adapters as the loss of
# transformers holds them: logits (2 bytes, 4 in qlora's 32-bit stream), copy, softmax, gradient.
LOGIT_BYTES = {"full": 10.0, "lora": 14.0, "qlora": 16.0}
# Kept of an element of a score matrix where attention is not fused: softmax, its dropout and mask
# (Korthikanti et al., arXiv 2205.05198, 2022: 5·a·s²).
SCORE_BYTES = 5.0
_FULL_BYTES = 34.0
_NORM_BYTES = 8.0  # two norms of a layer
_OUTPUT_BYTES = {"lora": 2.0, "qlora": 4.0}
_ADAPTER_BYTES = 3.0
_STREAM_BYTES = {"full": 2.0, "lora": 2.0, "qlora": 4.0}  # a layer's input, kept to compute again
_ATTENTION_WIDTHS = 2.0  # of E: queries, and what the heads give back
_STREAM_INPUTS = 6.0  # of A: queries, keys, values, both halves of a gated product, output


@dataclass(frozen=True, slots=True)
class Layers:
    """The layers of a transformer, and what is trained of them."""

    hidden: int
    number: int
    parameters: float  # of one layer, that a position passes
    method: Method
    adapted: float = 1.0  # the share of the matrices that adapters stand beside

    @property
    def layer_bytes(self) -> float:
        """Bytes that one layer keeps of a position."""
        if self.method == "full":
            return _FULL_BYTES * self.hidden
        outputs = self.parameters / self.hidden
        adapters = _ADAPTER_BYTES * self.adapted * self._adapted_inputs(outputs)
        return _NORM_BYTES * self.hidden + _OUTPUT_BYTES[self.method] * outputs + adapters

    @property
    def kept_bytes(self) -> float:
        """Bytes of a position that all layers keep."""
        return self.number * self.layer_bytes

    @property
    def recomputed_bytes(self) -> float:
        """Bytes a sample keeps where layers are recomputed: inputs of all, and one whole layer."""
        return _STREAM_BYTES[self.method] * self.hidden * self.number + self.layer_bytes

    def _adapted_inputs(self, outputs: float) -> float:
        """Widths of all adapters' inputs: the stream's, and the middle of a gated network."""
        middle = max(outputs - _ATTENTION_WIDTHS * self.hidden, 0.0) / 3.0
        return _STREAM_INPUTS * self.hidden + middle


def heads_of(hidden: int) -> float:
    """Attention heads of a transformer: each 64 wide up to 2,048 (GPT-2, OPT), else 128."""
    return hidden / (64.0 if hidden <= 2048 else 128.0)


def score_bytes(hidden: int, positions: float) -> float:
    """Bytes of a layer's score matrices of one sequence, where attention is not fused."""
    return SCORE_BYTES * heads_of(hidden) * positions**2
