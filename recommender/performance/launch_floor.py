"""The least time of a micro-batch: a program that runs eagerly starts its kernels one by one.

While a GPU computes, the processor queues what comes next, so starting kernels costs nothing until
the GPU is faster than that: small micro-batches on the newest GPUs. No kernel gets shorter then.

A forward pass of an eager transformer of 32 layers takes 39 ms on an A100 (25.5 tokens/s, a simple
implementation, "heavily CPU overhead bound": PyTorch, "Accelerating Generative AI with PyTorch II:
GPT, Fast", 2023-11-30) and 8.4 ms with an inference engine's fused kernels on an H100 (Llama 3.1
8B without CUDA graphs, cloudai.pt, "CUDA Graphs + torch.compile", 2026): 1.2 and 0.26 ms a layer.
Scripts lie between, at their geometric mean; adapters on every matrix of a layer add kernels that
run one after another (Ko, "LoRA Is Slower Than You Think", arXiv 2507.08833, 2025): the upper end.
The backward pass starts as many again.
"""

from recommender.job.derive import TRANSFORMERS
from recommender.job.job import Job

FORWARD_LAYER_S = 0.56e-3  # of a typical script
ADAPTED_LAYER_S = 1.2e-3  # with adapters beside every matrix
FUSED_LAYER_S = 0.26e-3  # of recipes that cut networks
PASSES = 2.0  # forward and backward


def launched_s(job: Job) -> float:
    """Seconds that one micro-batch takes at least; 0 for vendors' recipes, which record graphs.

    And 0 where the user's own timings speak: what they hold is all that is known.
    """
    eager = job.stack == "typical" and job.family in TRANSFORMERS
    if not eager or job.timings or job.calibration is not None:
        return 0.0
    each = FORWARD_LAYER_S if job.method == "full" else ADAPTED_LAYER_S
    return PASSES * each * job.layers


def cut_launched_s(job: Job) -> float:
    """Least seconds of a micro-batch of all layers where GPUs share the work on a sample.

    Recipes that cut networks fuse kernels, and record no graphs; each GPU starts all kernels of its
    layers, whatever part of their matrices it holds.
    """
    if job.timings or job.calibration is not None or job.stack == "typical":
        return launched_s(job)
    return PASSES * FUSED_LAYER_S * job.layers
