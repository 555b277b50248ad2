"""Activation memory of a transformer: bytes stored per sample for the backward pass, in 16 bits.

The formulas give bytes per position and layer. h is the width; E the sum of the output widths of
the layer's matrices over h, without the residual stream; F the width of the feed-forward network; A
the sum of the input widths of adapters:

full     8·h + 2·E                  gated, kernels fused (`stack: tuned`): inputs of norms and
                                    matrices from queries to output, both halves of the product
         16·h + 2·E + 2·F           gated, plain scripts: two norms each store a 32-bit
                                    copy and its 16-bit quotient; the gate before and after its
                                    activation, the other half, their product. Llama 3 8B: 49·h
         34·h                       not gated: Korthikanti et al. 2022, arXiv 2205.05198,
                                    without scores
lora     8·h + 2·E + 3·A            frozen matrices store no input for a gradient of their own;
                                    norms store 32-bit copies of the stream (LayerNorm 16 bits, 4),
                                    every output before a nonlinear function or a product 16
                                    bits; each adapter its input after dropout, 2, and its mask, 1
qlora    8·h + 4·E + 3·A            the stream is in 32 bits, as embeddings are, and 4-bit matrices
                                    return the width of their input

The plain script is `LlamaDecoderLayer` of transformers 5.23 (PyTorch 2.13), whose saved tensors
were counted (2026-11-23: 49.1·h, with every layer recomputed 2·h). A mixture of experts stores 4·h
more for each expert that a token passes (85.5·h for Mixtral, counted). Adapters are those of PEFT
0.19 and bitsandbytes 0.50 (`prepare_model_for_kbit_training`, `Linear4bit.forward`; read
2026-11-23). The loss holds the logits, a 32-bit copy, its softmax and the gradient.

With recomputation, the loss has freed its memory before the first layer is recomputed. So the
memory is that of the layers' inputs plus the larger of the loss and of one whole layer (with the
logits, if the training loop keeps them). Measurements: docs/research/memory.md.
"""

from recommender.catalogs.frozen import dataclass
from recommender.job.job import Method, Stack

# Per token and word. Full training: softmax, its gradient and that of the logits, 32 bits each, at
# the peak of a loss that `transformers` takes (counted, 2026-11-23; its trainer has let go of the
# logits); 10 where kernels are fused: 16-bit logits, fp32 softmax and gradient. Adapters as their
# readings were taken: logits (2 bytes, 4 in qlora's 32-bit stream), copy, softmax, gradient.
_FULL_LOGIT_BYTES = {"tuned": 10.0, "typical": 12.0}
_ADAPTER_LOGIT_BYTES = {"lora": 14.0, "qlora": 16.0}
_HELD_LOGIT_BYTES = {"full": 0.0, "lora": 2.0, "qlora": 4.0}  # of them through the backward pass
_PLAIN_BYTES = 34.0  # of h, where the feed-forward network is not gated
_NORM_BYTES = 8.0  # two norms of a layer
_UNFUSED_NORM_BYTES = 16.0
_ROUTED_BYTES = 4.0  # what an expert takes in, gathered, and what it gives back, to be weighted
_OUTPUT_BYTES = {"full": 2.0, "lora": 2.0, "qlora": 4.0}
_ADAPTER_BYTES = 3.0
_STREAM_BYTES = {"full": 2.0, "lora": 2.0, "qlora": 4.0}  # a layer's input, kept to compute again
_ATTENTION_MATRICES = 4
_ATTENTION_WIDTHS = {True: 2.0, False: 4.0}  # of E: queries, output; older ones' keys and values
_MATRICES = {True: 7, False: 6}  # of a layer whose feed-forward network is gated, or is not


@dataclass(frozen=True, slots=True)
class Layers:
    """The layers of a transformer, and which of their weights are trained."""

    hidden: int
    number: int
    parameters: float  # of one layer, that a position passes
    method: Method
    stack: Stack
    gated: bool  # the feed-forward network has three matrices
    experts: int = 0  # that a position passes and whose copies of it are kept
    adapted: float = 1.0  # the share of the matrices that have adapters

    @property
    def layer_bytes(self) -> float:
        """Bytes that one layer stores per position."""
        outputs = _OUTPUT_BYTES[self.method] * self._outputs
        if self.method != "full":
            halved = self.method == "lora" and not self.gated  # LayerNorm keeps 16 bits
            norms = _NORM_BYTES * self.hidden / (2.0 if halved else 1.0)
            return norms + outputs + _ADAPTER_BYTES * self.adapted * self._adapted_inputs
        if not self.gated:
            return _PLAIN_BYTES * self.hidden
        routed = _ROUTED_BYTES * self.experts
        if self.stack == "tuned":
            return (_NORM_BYTES + routed) * self.hidden + outputs
        return (_UNFUSED_NORM_BYTES + routed) * self.hidden + outputs + 2.0 * self._middle

    @property
    def kept_bytes(self) -> float:
        """Bytes that all layers store per position."""
        return self.number * self.layer_bytes

    @property
    def input_bytes(self) -> float:
        """Bytes that all layers store per position with recomputation."""
        return _STREAM_BYTES[self.method] * self.hidden * self.number

    @property
    def _outputs(self) -> float:
        """E: widths of what the matrices put out."""
        return self.parameters / self.hidden

    @property
    def _middle(self) -> float:
        """F: the width of the feed-forward network, with a part of the keys'."""
        feed_forward = max(self._outputs - _ATTENTION_WIDTHS[self.gated] * self.hidden, 0.0)
        return feed_forward / (_MATRICES[self.gated] - _ATTENTION_MATRICES)

    @property
    def _adapted_inputs(self) -> float:
        """A: widths of all adapters' inputs, the stream's of all matrices but the last."""
        return (_MATRICES[self.gated] - 1) * self.hidden + self._middle


@dataclass(frozen=True, slots=True)
class Scores:
    """Bytes per element of a layer's score matrices if attention is not fused.

    `kept` bytes are stored by each layer: the softmax, and dropout's mask and output (5 in 16 bits:
    Korthikanti et al., arXiv 2205.05198, 2022; twice in 32). Llama and similar networks compute the
    softmax in 32 bits and cast it, without dropout: 6, or 4 if the stream has 32 bits (counted as
    above, 2026-11-24). A layer in its backward pass holds `held`, four copies: the softmax, its
    gradient, their product (one in `softmax_backward_cuda_out` of PyTorch, read 2026-11-24) and the
    gradient of the scores.
    """

    kept: float
    held: float


def scores_of(gated: bool, method: Method, short: bool) -> Scores:
    """Score bytes of networks with or without `gated` feed-forward; `short`: 16-bit training."""
    if gated:
        return Scores(kept=6.0 if short and method != "qlora" else 4.0, held=16.0)
    return Scores(kept=5.0, held=8.0) if short else Scores(kept=10.0, held=16.0)


def logit_bytes(method: Method, stack: Stack) -> float:
    """Bytes that the loss holds per token and vocabulary entry."""
    return _FULL_LOGIT_BYTES[stack] if method == "full" else _ADAPTER_LOGIT_BYTES[method]


def held_logit_bytes(method: Method) -> float:
    """The part of these bytes that remains during the layers' backward pass."""
    return _HELD_LOGIT_BYTES[method]


def heads_of(hidden: int) -> float:
    """Attention heads of a transformer: head size 64 up to width 2,048 (GPT-2, OPT), else 128."""
    return hidden / (64.0 if hidden <= 2048 else 128.0)
