"""Memory of the layouts of model parallelism: states, activations and what is recomputed.

Weights and gradients are divided by t·p, optimizer states by all GPUs; or everything by all GPUs
(FSDP), which gather each layer. Activations are divided by t (sequence parallelism) and by c.
"""

import numpy as np

from recommender.arrays import Floats
from recommender.catalogs.frozen import dataclass
from recommender.performance.memory import Bytes, extra_gathered_bytes, gib_lines


def held_bytes(
    needs: Bytes,
    gpus: Floats | float,
    tensor: Floats,
    stages: Floats,
    sharded: Floats | float = 0.0,
    experts: Floats | float = 1.0,
) -> Floats:
    """States on a GPU; the optimizer's are also divided among the replicas.

    This is ZeRO stage 1, as in Megatron-LM's distributed optimizer (arXiv 1910.02054, 2019). With
    sharding, all states are divided and gathered by layers; each of `experts` GPUs holds its part
    of the experts.
    """
    part = held_share(needs, experts) / np.where(sharded, gpus, tensor * stages)
    held = (needs.weights + needs.gradients) * part + needs.optimizer / gpus
    return np.asarray(held + np.where(sharded, _gathered(needs, gpus, tensor, experts), 0.0))


def _gathered(
    needs: Bytes, gpus: Floats | float, tensor: Floats | float, experts: Floats | float
) -> Floats:
    each = extra_gathered_bytes(needs, np.maximum(gpus / tensor, 1.0))
    return np.asarray(each / tensor * held_share(needs, experts))


def held_share(needs: Bytes, experts: Floats | float) -> Floats:
    """The share of its layers' weights on a GPU that divides the experts with others."""
    return np.asarray(1.0 - needs.routed + needs.routed / experts)


def kept_bytes(needs: Bytes, again: Floats | float) -> Floats:
    """Stored activations of a sample if a share of the layers is recomputed."""
    return np.asarray((1.0 - again) * needs.activations + again * needs.inputs)


def min_recomputed_share(
    needs: Bytes, room: Floats, parts: Floats, stages: Floats, layers: int
) -> Floats:
    """The smallest share of a stage's layers to recompute so that one sample fits `room`.

    Whole layers; 1 even if that is not enough.
    """
    each = np.ceil(layers / stages)
    none = _most_kept(needs, room * parts, stages, 0.0) >= needs.activations
    most = _most_kept(needs, room * parts, stages, needs.layer)
    spared = max(needs.activations - needs.inputs, 1e-9)
    share = np.clip(np.ceil((needs.activations - most) / spared * each) / each, 1.0 / each, 1.0)
    return np.where(none, 0.0, share)


def _most_kept(needs: Bytes, room: Floats, stages: Floats, layer: float) -> Floats:
    """Bytes of a sample that fit next to `layer` bytes of a recomputed layer."""
    last = (room - max(layer, needs.logits)) * stages
    return np.where(stages > 1, np.minimum(room - layer, last), last)


def sample_bytes(needs: Bytes, again: Floats | float, parts: Floats, stages: Floats) -> Floats:
    """Bytes per sample of a micro-batch on the GPU with the most.

    Sequence parallelism divides all activations by t (arXiv 2205.05198, 2022), context parallelism
    by c: `parts` is t·c. The first stage stores p micro-batches of a p-th of the layers, the last
    one of them and logits. `again` is the share of recomputed layers, one at a time.
    """
    kept, layer = kept_bytes(needs, again), np.where(np.asarray(again) > 0, needs.layer, 0.0)
    last = kept / stages + np.maximum(layer, needs.logits)
    most = np.where(stages > 1, np.maximum(kept + layer, last), last)
    return np.asarray(most / parts)


@dataclass(frozen=True, slots=True)
class Degrees:
    """The degrees of parallelism of one layout."""

    tensor: float
    context: float
    stages: float
    sharded: bool
    experts: float = 1.0

    def label(self, gpus: float) -> str:
        """ "TP 8 × PP 4 × DP 2", "TP 8 × FSDP 4"; "FSDP 8, CP 2": pairs of the eight share a
        sequence.
        """
        shares, alike = gpus / self.tensor, gpus / (self.tensor * self.context * self.stages)
        plain = (("TP", self.tensor), ("CP", self.context), ("PP", self.stages), ("DP", alike))
        degrees = (plain[0], ("FSDP", shares)) if self.sharded else plain
        label = " × ".join(f"{name} {degree:.0f}" for name, degree in degrees if degree > 1)
        if self.experts > 1:
            return f"{label}, EP {self.experts:.0f}"
        return f"{label}, CP {self.context:.0f}" if self.sharded and self.context > 1 else label


def layout_memory_gib(
    needs: Bytes, gpus: float, degrees: Degrees, micro_batch: float, again: float
) -> tuple[tuple[str, float], ...]:
    """The memory of the GPU with the most, line by line, in GiB."""
    each, kept = degrees.tensor * degrees.stages, float(kept_bytes(needs, again))
    layer = needs.layer if again > 0 else 0.0
    shares, parts = gpus if degrees.sharded else each, degrees.tensor * degrees.context
    part = float(held_share(needs, degrees.experts))
    after = kept / degrees.stages + max(layer - needs.logits, 0.0)
    last = degrees.stages == 1 or after + needs.logits > kept + layer
    gathered = float(_gathered(needs, gpus, degrees.tensor, degrees.experts))
    gathered = gathered if degrees.sharded else 0.0
    return gib_lines(
        weights=needs.weights * part / shares + gathered,
        gradients=needs.gradients * part / shares,
        optimizer=needs.optimizer / gpus,
        activations=micro_batch * (after if last else kept + layer) / parts,
        logits=micro_batch * needs.logits / parts * last,
        context=needs.context,
    )
