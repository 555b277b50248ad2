"""What scripts spend beside the arithmetic: kernels that start late, and passes over the weights.

While a GPU computes, the processor queues further kernels, so launching them costs nothing until
the GPU is faster than the processor: with small micro-batches on the newest GPUs.

A forward pass of an eager transformer of 32 layers takes 39 ms on an A100 (25.5 tokens/s, a simple
implementation, "heavily CPU overhead bound": PyTorch, "Accelerating Generative AI with PyTorch II:
GPT, Fast", 2023-11-30) and 8.4 ms with an inference engine's fused kernels on an H100 (Llama 3.1 8B
without CUDA graphs, cloudai.pt, "CUDA Graphs + torch.compile", 2026): 1.2 and 0.26 ms per layer.
Scripts are in between, at the geometric mean. Adapters on every matrix of a layer add kernels that
run one after another (Ko, "LoRA Is Slower Than You Think", arXiv 2507.08833, 2025): the upper end,
and arithmetic does not hide them: 267 steps of 13 laboratories (study `finetuning`, which fits
1.2 ms as well) are the sum of both. Where the weights of a layer are gathered, the processor also
waits for their arrival and registers what comes after: 1.9 ms per layer and pass in the same runs.
Without adapters the arithmetic may hide it: steps of 256 to 1,024 tokens take 10.9 to 20 ms a
layer with recomputation under ZeRO-3 and FSDP (Qwen, IBM), 3.4 ms per layer and pass, and longer
ones their arithmetic. Scripts with model parallelism (Megatron-DeepSpeed) launch the kernels of a
simple implementation, and all-reduces between them. The backward pass launches as many again.

Convolutional networks launch a convolution, its norm and its activation for every three gradient
tensors. A step of ResNet-50 on a V100 takes as long for one image as for four: 89 to 94 ms in a
timing in which 64 take 561, the time of ten images at full speed (50 ms in one CUDA graph:
pytorch/benchmark, pull request 706, 2022), 27 ms at the 370 images/s of its recipes. It takes 29 ms
in MXNet (34.5 images/s, perf.md, 2019) and, for 128 images of 32 x 32, 32 ms on a newer GPU, half
of that in a graph (opennn.net, "GPU ResNet-50 training speed", 2026): 0.17 to 0.2 ms per tensor.

Which expert multiplies a token is known only when its router has run, so a mixture's layers wait
for the processor. This comes on top of the arithmetic, in recipes too: Qwen3 30B on eight GPUs
takes 423 and 614 ms for micro-batches of one and four sequences on B200, 628 and 1,078 ms for four
and eight on GB200 and GB300, 410 and 736 ms with the software of 2026-08 (Megatron-Bridge,
performance summary, 26.02 and 26.02.01, 26.02, 26.08), that is 7.5, 3.7 and 1.8 ms for each of its
48 layers and no sequence at all. Their geometric mean is used.

An all-reduce of m bytes over t GPUs of a machine takes 2·(t - 1)/t · (m/B + w): the links carry
nothing at first, and B only when large pieces follow each other. w is 33.6 us on H100 (p5: 16 MiB
over eight GPUs at 237 of 450 GB/s), 39.0 on H200 (220 of 450) and 45.8 on B200 (255 of 840); their
geometric mean is used (nccl-tests, awslabs/awsome-distributed-training, 2026-05; network/README.md
of stas00/ml-engineering, 2026-08). Scripts wait for it; recipes send pieces during the products
("TP communication overlap": Megatron Bridge, "Communication Overlap", read 2026-11).

Passes over the weights. A step of fine-tuning is the sum of its parts:

    t = ga · (arithmetic + launches + passes · 17.2 B · W4 / BW) + 60 B · trained / (shards · BW)

4-bit weights are unpacked into 16 bits before each product: half a byte is read, two are written
and read again, and the kernels of bitsandbytes and GPTQ reach a quarter of the memory's bandwidth.
17.2 B is fitted on 267 steps of 13 laboratories, one left out at a time 16.2 to 18.8 (study
`finetuning`); 65 G weights/s on A10G and 90 to 167 on A100 follow its bandwidth (litgpt, 2023-10
and 2024-10; Qwen, 2023-12).

PyTorch's AdamW without fused kernels moves 30 numbers per parameter in a step, gradient clipping
included: full training of 3.2 B parameters in 16 bits takes 0.25 s longer on an L40S (864 GB/s)
than its arithmetic (huggingface/peft, method_comparison, 2025-06 to 2026-07): 67 B. Constants that
were fitted on scripts hold the update of their own runs, 0.2 to 1 % of a step of sharded decoders;
other families' steps are short enough for it to matter, so theirs are left alone.
"""

from recommender.job.derive import TRANSFORMERS
from recommender.job.job import Job

FORWARD_LAYER_S = 0.56e-3  # of a typical script
EAGER_LAYER_S = 1.2e-3  # with adapters next to every matrix, and where GPUs share layers
# In addition, where weights are sharded: next to arithmetic that hides it, and next to adapters
GATHERED_LAYER_S = {"full": 3.4e-3, "lora": 1.9e-3, "qlora": 1.9e-3}
FUSED_LAYER_S = 0.26e-3  # of recipes with model parallelism
PASSES = 2.0  # forward and backward
TENSOR_S = 0.15e-3  # of a convolutional network, both passes; what β counts comes on top
ROUTED_LAYER_S = 3.7e-3  # of a mixture of experts, both passes; on top of all arithmetic
LINK_WAIT_S = 39e-6  # of an all-reduce in a machine, each time that its bytes pass the links


def is_scripted(job: Job) -> bool:
    """Whether a script starts kernels one by one: no recipe, whose graphs are recorded.

    Timings of the user already include launch times.
    """
    return job.stack != "tuned" and not job.timings and job.calibration is None


def gathered_launch_s(job: Job) -> float:
    """Seconds of one micro-batch that sharded weights add to `min_launch_s`."""
    sharded = is_scripted(job) and job.family in TRANSFORMERS
    return PASSES * GATHERED_LAYER_S[job.method] * job.layers if sharded else 0.0


def min_launch_s(job: Job) -> float:
    """Seconds of one micro-batch: the minimum, or with adapters in addition to the arithmetic."""
    if not is_scripted(job):
        return 0.0
    if job.family == "cnn":
        return TENSOR_S * job.gradient_tensors
    if job.family not in TRANSFORMERS:
        return 0.0
    each = FORWARD_LAYER_S if job.method == "full" else EAGER_LAYER_S
    return PASSES * each * job.layers


def routing_s(job: Job) -> float:
    """Seconds that routing adds to each micro-batch of all layers; 0 without experts."""
    return ROUTED_LAYER_S * job.layers if job.family == "moe" else 0.0


def min_model_parallel_launch_s(job: Job) -> float:
    """Minimum seconds of a micro-batch of all layers with model parallelism.

    Recipes with model parallelism fuse kernels but record no graphs; scripts do neither. Each GPU
    launches all kernels of its layers, whatever part of their matrices it holds.
    """
    if job.timings or job.calibration is not None:
        return min_launch_s(job)
    each = FUSED_LAYER_S if job.stack == "tuned" else EAGER_LAYER_S
    return PASSES * each * job.layers


def link_wait_s(job: Job) -> float:
    """w, what an all-reduce between GPUs that share layers waits for; 0 in vendors' recipes."""
    return 0.0 if job.stack == "tuned" else LINK_WAIT_S


UNPACKED_BYTES = 17.2
UPDATED_BYTES = 60.0
DECODERS = ("decoder", "moe")


def quantized_bytes(job: Job) -> float:
    """Bytes that each pass of a micro-batch moves to unpack 4-bit weights; 0 without any."""
    if job.method != "qlora" or job.timings or job.calibration is not None:
        return 0.0
    return UNPACKED_BYTES * max(job.parameters - job.unquantized_parameters, 0.0)


def update_bytes(job: Job) -> float:
    """Bytes that the optimizer of a script moves in a step; 0 in recipes, whose update is fused."""
    scripted = is_scripted(job) and job.family in DECODERS
    return UPDATED_BYTES * job.trainable_parameters if scripted else 0.0
