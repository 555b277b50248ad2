"""A training job, complete and validated: everything the models need to know about it.

A *sample* is the unit of the batch: an image, a clip, a sequence of tokens. A job file or a preset
becomes a `Job` once, at the input (`jobfile.py`). Inside the program, nothing that a model needs is
optional. Units: seconds, bytes, FLOP, samples.
"""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, get_args

from recommender.catalogs.frozen import dataclass

if TYPE_CHECKING:
    from recommender.arrays import Bools, Floats

Precision = Literal["mixed", "fp8", "mxfp8", "nvfp4", "bf16", "fp16", "tf32", "fp32"]
LOW_PRECISIONS = ("fp8", "mxfp8", "nvfp4")  # of 8 bits and less
Recomputation = Literal["auto", "full"]  # auto: only where memory asks for it; full: all layers
Stack = Literal["tuned", "typical"]  # vendors' recipes and MLPerf; everybody else's scripts
Method = Literal["full", "lora", "qlora"]
# How weights lie on the GPUs; `performance/step.py` has the strategy of each word.
Sharding = Literal[
    "auto", "ddp", "zero1", "zero2", "zero3", "hsdp", "fsdp", "tensor", "pipeline", "context"
]  # fmt: skip
SHARDINGS: tuple[Sharding, ...] = get_args(Sharding)
MODEL_PARALLEL_SHARDINGS = ("tensor", "pipeline", "context")  # GPUs share the work on a sample
SERVED_SHARDINGS = ("auto", "ddp")  # that parameter servers leave: every worker holds all states
Family = Literal["cnn", "vit", "encoder", "decoder", "moe", "encdec", "diffusion", "recsys"]


PostTraining = Literal[
    "dpo", "kto", "reward", "grpo", "ppo", "distillation"
]  # of preferences, or of rewards
# plain: score matrices go through memory; masked: fused, but for a mask other than the causal one
Attention = Literal["fused", "masked", "plain"]
Optimizer = Literal[
    "adamw", "adamw_8bit", "sgd", "lamb", "adafactor", "lion", "lion_8bit", "muon", "adam_mini",
    "galore", "apollo",
]  # fmt: skip
Offload = Literal["none", "optimizer", "parameters"]  # to the host's memory; the latter: both
# What a long run loses besides its steps, by evaluations, stops and repeated work: one large
# laboratory had a goodput of 85 % in one run and of 97 % in the next (Gemini, arXiv 2312.11805,
# 2023), others state "more than 90 %" (Llama 3, arXiv 2407.21783; MegaScale, arXiv 2402.15627,
# 2024). A run is long by its FLOP, because its hours depend on the cluster: 1e22 FLOP take seven
# hours on 1,024 H100 (40 % of their peak) and lose the whole of it.
TRAINED = 0.91  # of the time of a long run: between 85 and 97 %
# FLOP up to which runs lose nothing, and from which on they lose all of it: of the fifteen
# published runs three have 2.03e21 or fewer, the others 4e22 or more.
SHORT_FLOP = 1e21
LONG_FLOP = 1e22
AMOUNTS = ("tokens", "samples", "epochs", "steps")  # ways to say how long a job trains


# Bytes of an optimiser's moments per parameter, where they have 32 bits. Eight bits: Dettmers et
# al., arXiv 2110.02861 (2021). Muon has one moment (Jordan, 2024), Adam-mini next to no second one
# (arXiv 2406.16793). GaLore and APOLLO keep three ranks of the narrower side, 128 of 4,096, in fp32
# (arXiv 2403.03507, table 1; 2412.05270).
_MOMENTS = {
    "adamw": 8.0, "adamw_8bit": 2.0, "sgd": 4.0, "lamb": 8.0, "adafactor": 0.0, "lion": 4.0,
    "lion_8bit": 1.0, "muon": 4.0, "adam_mini": 4.0, "galore": 0.375, "apollo": 0.375,
}  # fmt: skip
_NOT_HALVED = ("adamw_8bit", "lion_8bit", "galore", "apollo")


def long_run_share(flop: float) -> float:
    """How long a run of so many FLOP is, from 0 to 1, by their logarithm."""
    share = math.log(max(flop, 1.0) / SHORT_FLOP) / math.log(LONG_FLOP / SHORT_FLOP)
    return min(max(share, 0.0), 1.0)


def trained_share(flop: float) -> float:
    """The share of the time of a run of so many FLOP in which it trains what counts."""
    found: float = TRAINED ** long_run_share(flop)
    return found


def moment_bytes(optimizer: str, wide: bool) -> float:
    """Bytes of moments per trained parameter; without master weights they have 16 bits, not 32."""
    each = _MOMENTS[optimizer]
    return each if wide or optimizer in _NOT_HALVED else each / 2


@dataclass(frozen=True, slots=True)
class Timing:
    """A speed the user measured on a cluster; it replaces the shipped constants."""

    gpu: str  # catalog name of the GPU
    gpus: int  # in the whole cluster
    machines: int
    samples_per_s: float
    instance_type: str = ""
    each_gpu: bool = False  # the speed is one GPU's, until the catalog says how many there are
    precision: Precision | Literal[""] = ""  # that it was taken in; "": the job's
    of_peak: bool = False  # the speed is a share of the vendor's peak, until the catalog says it


@dataclass(frozen=True, slots=True)
class TimedRun:
    """One of the user's runs, as `recommend calibrate` reads it."""

    place: str  # "timings.csv, line 2": where its user finds it
    machine: str  # "aws/p3.2xlarge": the instance type, or a typical one of the GPU
    gpu: str
    gpus: int  # in the whole cluster
    machines: int
    batch: int  # samples per optimiser step, of all GPUs
    step_s: float
    data: Literal["", "synthetic", "cached", "cold"] = ""  # where the samples came from
    servers: int = 0  # parameter servers; 0: as many as the job states, none with one machine


@dataclass(frozen=True, slots=True)
class Fitted:
    """A fitted speed constant: a factor on the shipped one, and the sd of its ln."""

    factor: float
    sd: float


@dataclass(frozen=True, slots=True)
class InputRates:
    """Samples/s that one machine of a type prepares and fetches; inf: faster than observed."""

    machine: str
    prepare_per_s: float
    fetch_per_s: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """A job's speed constants fitted to its own runs; docs/models.md, "A user's timings"."""

    as_of: str
    rows: int  # runs behind it
    constants: str  # "cnn typical 2026-11-21": the constants that the factors multiply
    compute: Fitted  # ε and I together: samples/s of GPUs that were not timed
    tensor: Fitted  # β, seconds per gradient tensor
    latency: Fitted  # α of the all-reduce between machines
    network: Fitted  # share of its listed bandwidth that a machine's network sustains
    links: Fitted  # the same of the links inside a machine
    overlap: float  # ω, as it is and no factor
    overlap_sd: float
    noise: float  # sd of ln(run / fit)
    sigma: float  # sd of ln(true / predicted step) of one machine whose GPU was timed
    sigma_several: float  # the same of several such machines
    sigma_other: float  # the same of one machine with another GPU of the same generation
    gpus: tuple[tuple[str, Fitted], ...] = ()  # the same of each GPU that was timed
    feeds: tuple[InputRates, ...] = ()
    service: Fitted | None = None  # time of parameter servers per update; None without them
    worker: Fitted | None = None  # time of a worker per update besides its step; None likewise
    sigma_larger: tuple[tuple[int, float], ...] = ()  # (n, sigma) of more than n machines, n rising
    penalty: Fitted | None = (
        None  # b0, samples' worth of time lost in each micro-batch; None: as is
    )
    network_kind: Literal["", "tcp", "rdma"] = ""  # that latency and network hold for; "": any
    precision: Precision | Literal[""] = ""  # of the runs; "": the job's


@dataclass(frozen=True, slots=True)
class CarriedTiming:
    """That a job's timings are in another precision, carried to its own by the formulas."""

    precision: str  # of the timings
    sd: float  # of ln speed, in addition


@dataclass(frozen=True, slots=True)
class DataSet:
    """Where the training data are stored and how they are read."""

    at: str = ""  # "aws:us-east-1", empty = unknown
    gib: float = 0.0
    read: Literal["stream", "stage"] = "stream"
    bytes_per_sample: float = 0.0
    cpu_s_per_sample: float = 0.0  # decode and augment, one vCPU


@dataclass(frozen=True, slots=True)
class Job:
    """One network, one data set, and the number of samples to train on."""

    name: str
    title: str
    family: Family
    parameters: float  # stored, all experts included
    active_parameters: float  # that a sample passes through
    trainable_parameters: float  # adapters only, under lora and qlora
    sample_unit: str  # "image", "sequence", "clip", "sample"
    tokens_per_sample: int  # 1 for images and the like
    flop_per_sample: float  # forward and backward, no recomputation
    samples: float  # to train on, epochs included
    global_batch: int  # samples per optimiser step; with one GPU, where `batch_per_gpu`
    gradient_tensors: int
    hidden: int  # width h and layers L of a transformer; 0 where unknown
    layers: int
    vocabulary: int
    activation_bytes_per_sample: float  # kept for the backward pass
    recomputed_activation_bytes_per_sample: float  # the same with full recomputation
    checkpoint_bytes: float
    layer_bytes_per_sample: float = 0.0  # of those, one layer's: freed before the loss is computed
    intensity_ratio: float = 1.0  # FLOP per byte moved, over those of the family's networks
    token_experts: float = 8.0  # that a position of a mixture passes in a layer
    expert_groups: int = 0  # of experts, on as many machines, that it is routed to; 0: any number
    forward_passes: float = 3.0  # of what is trained, that have the FLOP of a sample
    examples: float = 0.0  # of the data set, one epoch; 0 if the job states its amount of work
    data: DataSet = DataSet()
    precision: Precision = "mixed"
    method: Method = "full"
    unquantized_parameters: float = 0.0  # embeddings and head, under qlora
    post_training: PostTraining | None = None
    completion_tokens: float = (
        0.0  # of a sample that are generated; 0: none, or a share of the time
    )
    longest_completion: float = 0.0
    cache_bytes_per_token: float = 0.0  # keys and values, while generating
    other_network_bytes: float = 0.0  # of networks in memory next to the trained one
    optimizer: Optimizer = "adamw"
    optimizer_in_backward: bool = False  # updates each layer as its gradient comes, and frees it
    master_weights: bool = True  # no: weights, gradients and states all in 16 bits
    offload: Offload = "none"
    micro_batch: int = 0  # samples of one GPU at once, at most; 0: as many as fit
    attention: Attention = "fused"
    heads: float = 0.0  # of attention; 0 without
    recomputation: Recomputation = "auto"
    sharding: Sharding = "auto"
    sync: Literal["allreduce", "parameter_server"] = "allreduce"
    batch_per_gpu: bool = False  # each GPU's batch is fixed: the global batch grows with them
    max_global_batch: int | None = None  # no cluster's is larger; None: any
    parameter_servers: int = 1  # on the CPUs of the first machines; for sync parameter_server
    stack: Stack = "typical"
    software: str = ""  # by its word in a job file; "": not stated
    machines: int = 0  # at once, no more and no fewer; 0: as many as are best
    elastic: bool | None = None  # None: where the software can; see `resizes`
    writer: Literal["all", "chief"] = "all"  # which processes write a checkpoint
    asynchronous_save: bool = False
    image: Literal["cold", "prebuilt"] = "cold"
    setup_s: float | None = None  # replaces boot, image and staging where the user knows it
    fault_rate_per_hour: float = 1.6e-4  # per machine; Llama 3 log, arXiv 2407.21783 (2024)
    timings: tuple[Timing, ...] = ()
    calibration: Calibration | None = None
    carried: CarriedTiming | None = None  # of timings and calibration; None: in the job's precision
    memory_gib_at_batch: tuple[tuple[int, float], ...] = ()
    assumed: tuple[str, ...] = ()  # names of the fields that were derived, for the answer
    remarks: tuple[str, ...] = ()  # on what was stated in vain, or kept from a preset; sentences

    @property
    def as_recipe(self) -> "Job":
        """The job in a vendor's recipe, whose attention is fused unless it was stated not to be."""
        attention = "fused" if "attention" in self.assumed else self.attention
        rest = tuple(name for name in self.assumed if name not in ("stack", "attention"))
        return replace(self, stack="tuned", attention=attention, assumed=rest)

    @property
    def as_script(self) -> "Job":
        """The job in a script, if its software is not stated."""
        return replace(self, assumed=tuple(name for name in self.assumed if name != "stack"))

    @property
    def steps(self) -> float:
        """Optimiser steps of `global_batch` samples for the whole job."""
        return self.samples / self.global_batch

    @property
    def run_steps(self) -> float:
        """Steps in whose time the job is done: a long run also spends some on other things."""
        return self.steps / trained_share(self.total_flop)

    def batch_growth(self, gpus: "Floats | float") -> "Floats | float":
        """The factor on `global_batch` with so many GPUs: N, or 1 if it is fixed."""
        return gpus if self.batch_per_gpu else 1.0

    def batch_on(self, gpus: "Floats | float") -> "Floats | float":
        """Samples per optimiser step with so many GPUs."""
        return self.global_batch * self.batch_growth(gpus)

    def may_have(self, gpus: "Floats", replica: "Floats | float" = 1.0) -> "Bools":
        """Whether each replica of the network gets a sample and the global batch is allowed.

        `replica` is the number of GPUs per replica. Arguments broadcast.
        """
        batch = self.batch_on(gpus)
        most = math.inf if self.max_global_batch is None else self.max_global_batch
        return (gpus <= replica * batch) & (batch <= most)

    def seconds_on(self, gpus: float, step_s: float) -> float:
        """Time of the whole job in steps on so many GPUs, without faults of machines."""
        return step_s * self.run_steps * self.global_batch / float(self.batch_on(gpus))

    @property
    def epochs(self) -> float:
        """Passes over the data set; 0 if its size is not known."""
        return self.samples / self.examples if self.examples else 0.0

    @property
    def resizes(self) -> bool:
        """Whether the job can continue on fewer or more machines from a resharded checkpoint.

        Unless stated otherwise, ranks that each run the whole network, sharded or not, can restart
        with another number (torchrun with a range of nodes, torch.distributed.checkpoint; PyTorch 2
        documentation, read 2026-11-22). Tensor or pipeline parallelism and parameter servers have a
        fixed layout, and so has a job on a stated number of machines.
        """
        if self.machines:
            return False
        if self.elastic is not None:
            return self.elastic
        return self.sync == "allreduce" and self.sharding not in MODEL_PARALLEL_SHARDINGS

    @property
    def update_timed(self) -> bool:
        """Whether timings include a worker's update, because one ran with its servers."""
        return self.sync == "parameter_server" and any(t.machines == 1 for t in self.timings)

    @property
    def recomputed_share(self) -> float:
        """The share of the arithmetic in the forward pass that recomputation does again."""
        return 1.0 / self.forward_passes

    @property
    def total_flop(self) -> float:
        """Useful training FLOP of the whole job."""
        return self.samples * self.flop_per_sample
