"""Drafts a job file for a user's own training, from a few answers or their tool's configuration.

Stated values are used; others get a common value and are listed, so nothing is guessed silently.
The text is an ordinary job file, which `jobfile.py` reads.
"""

import textwrap
from dataclasses import fields
from pathlib import Path

from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError
from recommender.inputs.project_software import FoundSoftware
from recommender.inputs.training_configs.training_config import TrainingConfig
from recommender.inputs.training_software import software
from recommender.inputs.units import format_count, parse_count, parse_data_at, parse_whole
from recommender.job.derive import COMPLETION, TOKEN_FAMILIES
from recommender.job.merge_layers import figures
from recommender.job.schema import parse_stack
from recommender.networks.architectures import count_network
from recommender.networks.config import Config
from recommender.networks.find import FoundNetwork, find_network, sized
from recommender.networks.known_models import find_shape, sizes_in
from recommender.networks.trained import adapted_width, trained_parameters
from recommender.text import has_control, shown

MODEL = "meta-llama/Llama-3.1-8B"
_ADAPTERS_FROM = 3e9  # parameters from which on most people train adapters
_RANK = 16
_VOCABULARY = 50_304  # GPT-2's words, rounded up as Megatron-LM does
# Fields of a tool's file that are keys of a job file, and what their lines say.
_SETTINGS = {
    "precision": "mixed, fp8, mxfp8, nvfp4, bf16, fp16, tf32 or fp32",
    "recomputation": "as the file says; auto: only where it pays",
    "attention": "plain: not fused, score matrices go through memory",
    "sharding": "as the file says; auto: the fastest that fits",
    "optimizer": "its states take memory",
    "optimizer_in_backward": "frees gradients",
    "master_weights": "weights, gradients and states in 16 bits",
    "offload": "held by the host; its transfers are not in the times",
    "micro_batch": "of a GPU at once, as the file says",
}
_LONG = 50_000  # tokens of an example, which are more often those of a data set
UNKNOWN = "unknown"  # software
_SCRIPTS = "speed of typical scripts"
_MORE = (
    "# data: {at: aws:us-east-1, gib: 150}    # where the data is: egress and staging",
    '# measured: ["8xH100: 3.1 s/step"]       # your own timing; it replaces our estimate',
    "# image: prebuilt                        # machines start with the container installed",
    "# elastic: no                            # all machines or none; auto: where it can",
)


@dataclass(frozen=True, slots=True)
class StatedJob:
    """What a user stated about the job, as typed; None for what they did not state."""

    model: str | None = None
    method: str | None = None
    lora_rank: str | None = None
    examples: str | None = None
    tokens_per_example: str | None = None
    image_size: str | None = None
    epochs: str | None = None
    batch: str | None = None
    batch_per_gpu: str | None = None
    gpus: str | None = None
    post_training: str | None = None
    stack: str | None = None
    tokens: str | None = None
    samples: str | None = None
    data_at: str | None = None
    params: str | None = None  # of a network of which nothing else is known


@dataclass(frozen=True, slots=True)
class DraftLine:
    """One line of a job file, and its comment."""

    key: str
    value: str
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Draft:
    """A job file, and what its user must know about it."""

    lines: tuple[DraftLine, ...]
    network: str  # in words
    assumed: tuple[str, ...]  # what was not stated, and what was assumed
    unread: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    tool: str = ""

    @property
    def software(self) -> str:
        """The training software with how it is known; "" if it is not."""
        found = next((each for each in self.lines if each.key == "stack"), None)
        return f"{found.value} ({found.comment})" if found else ""

    @property
    def text(self) -> str:
        """The job file with comments."""
        written = [f"{each.key}: {each.value}" for each in self.lines]
        rows = [
            f"{left:<40} {'# ' + each.comment if each.comment else ''}".rstrip()
            for left, each in zip(written, self.lines, strict=True)
        ]
        written_keys = tuple(f"# {each.key}:" for each in self.lines)
        more = [] if self.software else _unknown_stack_lines()
        more += [line for line in _MORE if not line.startswith(written_keys)]
        lines = ["schema: recommend.job/v1", *rows, *more, *self._of_the_tool]
        return "\n".join(lines) + "\n"

    @property
    def _of_the_tool(self) -> list[str]:
        """What its tool's file says and this one does not, whole: comments."""
        remarks = [f"not read of the {self.tool} file: {each}" for each in self.unread]
        remarks += [f"not used: {', '.join(self.unused)}"] if self.unused else []
        return [line for each in remarks for line in _commented(each)]


def _commented(text: str) -> list[str]:
    """A text as comments that no character of it can end."""
    clean = " ".join(text.split())
    printed = "".join(" " if has_control(c) else c for c in clean)
    return textwrap.wrap(printed, 96, initial_indent="# ", subsequent_indent="#   ")


@dataclass(frozen=True, slots=True)
class Question:
    """A question to the user, and its default answer."""

    field: str  # of `StatedJob`
    text: str
    usual: str


_SOFTWARE = Question(
    "stack",
    "Training software (trl, transformers, nemo, megatron-lm, ...; it decides the speed)",
    UNKNOWN,
)


_DATA = Question("data_at", "Where the data lie (such as aws:us-east-1,150GB)", UNKNOWN)


def questions(network: FoundNetwork) -> tuple[Question, ...]:
    """List the questions that the network alone does not answer."""
    words, size = _of_words(network), _pixels(network)
    method = Question(
        "method", "Train all weights or adapters (full, lora, qlora)", _method(network)
    )
    side = Question("image_size", "Side of an image in pixels", size)
    return (
        *((method,) if words else ()),
        Question("examples", "Examples in the data set", "50k" if words else "100k"),
        *((Question("tokens_per_example", "Tokens in a mean example", "600"),) if words else ()),
        *((side,) if size else ()),
        Question("epochs", "Epochs", "3" if words else "30"),
        Question("batch", "Batch: examples per step, all GPUs together", "64" if words else "256"),
        _SOFTWARE,
        _DATA,
    )


def _of_words(found: FoundNetwork) -> bool:
    return found.network.family in TOKEN_FAMILIES and not found.network.sample_unit


def _pixels(found: FoundNetwork) -> str:
    return {"vit": "224", "cnn": "224"}.get(found.network.family, "")


def _method(found: FoundNetwork) -> str:
    return "lora" if found.network.count.parameters >= _ADAPTERS_FROM else "full"


def network_of(stated: StatedJob, config: TrainingConfig | None, folder: Path) -> FoundNetwork:
    """Find the network that the user means.

    Raises:
        UsageError: the file names none, or one that is not known.
    """
    if stated.model is not None:
        return find_network(stated.model, folder)
    if stated.params is not None:
        return sized(parse_count(stated.params, "--params"), 0.0, "as stated")
    if config is None:
        return find_network(MODEL, folder)
    if config.model:
        return find_network(config.model, folder)
    if config.network is not None:
        return _described(config)
    why = (each for each in config.unread if each.startswith("model: ") or "${" in each)
    reason = next(why, "")
    raise UsageError(
        f"the {config.tool} file names no network; give --model", *filter(None, [reason])
    )


def _described(config: TrainingConfig) -> FoundNetwork:
    """Count the network that a file describes, with the vocabulary of the tokenizer it names."""
    fields = {"vocab_size": _vocabulary(config) or _VOCABULARY, **(config.network or {})}
    network = count_network(Config(fields, config.tool))
    return FoundNetwork(network, "", f"the shape in the {config.tool} file")


def _vocabulary(config: TrainingConfig) -> int:
    """What the file says, or the model whose tokenizer it names; 0 without either."""
    named = find_shape(config.tokenizer) if config.tokenizer else None
    own = named.config.whole(("vocab_size",), 0) if named else 0
    return (config.network or {}).get("vocab_size", 0) or own


def draft_job(
    stated: StatedJob,
    config: TrainingConfig | None,
    folder: Path = Path(),
    project: FoundSoftware | None = None,
) -> Draft:
    """Draft a job file from what a user stated, their tool's configuration and their project.

    Raises:
        UsageError: the network is not known, or a number cannot be read.
    """
    _refuse_control(stated)
    found, config = network_of(stated, config, folder), config or TrainingConfig("")
    assumed: list[str] = []
    if not (stated.model or stated.params or config.tool):
        assumed.append(f"model {MODEL}: --model")
    draft = _Answers(stated, config, found, assumed)
    lines = [
        *_network_lines(draft),
        *_method_lines(draft),
        *_work_lines(draft),
        *_setting_lines(draft),
        *_stack_lines(draft, project),
        *_data_lines(stated),
    ]
    return Draft(
        lines=tuple(lines),
        network=f"{found.name or 'a network of your own'}: {_size_in_words(found)}",
        assumed=(*_renamed(found), *assumed),
        unread=(*config.unread, *([found.network.note] if found.network.note else [])),
        unused=config.unused,
        tool=config.tool,
    )


def _refuse_control(stated: StatedJob) -> None:
    """Refuse a value that would be more than its line of the job file."""
    for each in fields(stated):
        value = getattr(stated, each.name)
        if value is not None and has_control(value):
            flag = f"--{each.name.replace('_', '-')}"
            raise UsageError(f"{flag}: '{shown(value)}' has line breaks or control characters")


def _renamed(found: FoundNetwork) -> tuple[str, ...]:
    if found.sized:
        return (f"the network is not known, taken {found.source}: --model or --fetch",)
    return (f"{found.name} has the shape of {found.shape_of}: --model",) if found.shape_of else ()


def _size_in_words(found: FoundNetwork) -> str:
    size = format_count(float(f"{found.network.count.parameters:.3g}"))
    return f"{found.network.family}, {size} parameters ({found.source})"


@dataclass(frozen=True, slots=True)
class _Answers:
    """Everything that was said, and the list of what was not."""

    stated: StatedJob
    config: TrainingConfig
    found: FoundNetwork
    assumed: list[str]

    @property
    def kind(self) -> str:
        """The kind of post-training; "" for plain training."""
        return self.stated.post_training or self.config.kind

    def usual(self, field: str, stated: str | None) -> str:
        """What was stated, else the usual answer, which is named."""
        if stated:
            return stated
        usual = next(each.usual for each in questions(self.found) if each.field == field)
        if field == "tokens_per_example" and 0 < self.config.tokens < int(usual):
            usual = str(self.config.tokens)
        self.assumed.append(f"{field} {usual}: --{field.replace('_', '-')}")
        return usual


def _network_lines(draft: _Answers) -> list[DraftLine]:
    found = draft.found
    if found.name:
        word = draft.stated.model or found.name
        return [DraftLine("model", word, _size_in_words(found))]
    if _of_words(found) and not _vocabulary(draft.config) and not found.sized:
        draft.assumed.append(f"vocab {_VOCABULARY:,}: vocab: in the file")
    comments = {"params": f"counted over {found.source}"}
    return [DraftLine(k, v, comments.get(k, "")) for k, v in _described_figures(found).items()]


def _described_figures(found: FoundNetwork) -> dict[str, str]:
    """The figures of a network without a name, as a job file states them."""
    kept = figures(found, adapters=True)
    if found.network.family in ("decoder", "moe") and not found.sized:
        kept.setdefault("lookup_params", "0")  # one table looks up and puts out
    return {key: kept[key] for key in kept if key not in ("sdpa", "gated", "adapted_width")}


def _method_lines(draft: _Answers) -> list[DraftLine]:
    method = draft.stated.method or draft.config.method
    if _of_words(draft.found):
        method = draft.usual("method", method)
    lines = [DraftLine("method", method, "full, lora or qlora")] if method else []
    if method in ("lora", "qlora"):
        rank = draft.stated.lora_rank or str(draft.config.lora_rank or "")
        if not rank:
            draft.assumed.append(f"lora_rank {_RANK}: --lora-rank")
        lines += [DraftLine("lora_rank", rank or str(_RANK), "of the adapters"), *_targets(draft)]
    return [*lines, *_post_training_lines(draft)]


def _targets(draft: _Answers) -> list[DraftLine]:
    """The widths of the matrices that have adapters, where a file names them."""
    words = draft.config.targets
    if not words or "all" in "".join(words):
        return []
    width = adapted_width(draft.found.network, words)
    if not width:
        draft.assumed.append(f"adapters on every linear layer: cannot tell from {' '.join(words)}")
        return []
    return [DraftLine("adapted_width", str(width), f"adapters on {' '.join(words)}"[:90])]


def _post_training_lines(draft: _Answers) -> list[DraftLine]:
    kind = draft.kind
    if not kind:
        return []
    lines = [DraftLine("post_training", kind, "dpo, kto, reward, grpo, ppo or distillation")]
    if kind == "distillation":
        lines.append(_teacher_line(draft))
    return lines


def _teacher_line(draft: _Answers) -> DraftLine:
    """The size of the network that is learned from; one as large where it is not known."""
    name, size = draft.config.teacher, draft.found.network.count.parameters
    try:
        size = find_network(name).network.count.parameters if name else size
    except UsageError:
        size = round(sizes_in(name)[0]) or size
    if not name or size == draft.found.network.count.parameters:
        draft.assumed.append("a teacher as large as the network: teacher_params: in the file")
    return DraftLine("teacher_params", str(size), name or "as large as the network")


def _work_lines(draft: _Answers) -> list[DraftLine]:
    config, batch = draft.config, _batch_line(draft)
    amount = _stated_amount(draft)
    length = draft.stated.tokens_per_example
    images = _image_lines(draft)
    if not _of_words(draft.found):
        if length:
            draft.assumed.append(f"tokens_per_example {length} is not used: samples are images")
        return [*images, *(amount or _example_lines(draft)), batch]
    if config.packed and config.tokens:
        whole = DraftLine("seq_len", str(config.tokens), "tokens in a sequence")
        return [*images, *(amount or _packed_lines(draft)), whole, batch]
    return [*images, *(amount or _example_lines(draft)), *_length_lines(draft), batch]


def _length_lines(draft: _Answers) -> list[DraftLine]:
    """The tokens of an example in the mean, and of the longest, which decides the memory."""
    tokens = draft.usual("tokens_per_example", draft.stated.tokens_per_example)
    mean, longest = parse_count(tokens, "--tokens-per-example"), draft.config.tokens
    if 0 < longest < mean:
        draft.assumed.append(f"examples are cut at {longest} tokens, as the file says")
        tokens, mean = str(longest), longest
    if mean >= _LONG:
        draft.assumed.append(f"each example has {tokens} tokens, not the data set as a whole")
    lines = [DraftLine("tokens_per_example", tokens, "in the mean")]
    if longest > mean:
        lines.append(DraftLine("max_seq_len", str(longest), "it decides the memory"))
    if draft.kind in ("grpo", "ppo"):
        written = round(min(COMPLETION * mean, draft.config.completion or mean))
        draft.assumed.append(f"completion_tokens {written} of them: completion_tokens: in the file")
        lines.append(DraftLine("completion_tokens", str(written), "of them generated, in the mean"))
    return lines


def _stated_amount(draft: _Answers) -> list[DraftLine] | None:
    """The whole work as stated, or as the tool's file says it, where none counts epochs."""
    stated, config = draft.stated, draft.config
    for key, word in (("tokens", stated.tokens), ("samples", stated.samples)):
        if word:
            return [DraftLine(key, word, "as stated")]
    if stated.epochs:
        return None
    if config.ratio and not config.steps:
        trained = draft.found.network.count.active - draft.found.network.count.lookup
        comment = f"{config.ratio:g} for each parameter, as the file says"
        return [DraftLine("tokens", format_count(round(config.ratio * trained)), comment)]
    for key, value in (
        ("steps", config.steps),
        ("samples", config.samples),
        ("tokens", config.total_tokens),
    ):
        if value:
            if stated.examples:
                said = f"examples {stated.examples} do not count: the file says {key} {value:,}"
                draft.assumed.append(f"{said}: --epochs")
            return [DraftLine(key, str(value), "as the file says")]
    return None


def _example_lines(draft: _Answers) -> list[DraftLine]:
    examples, comment = _examples(draft), "of the data set"
    if draft.config.generations and draft.kind in ("grpo", "ppo"):
        prompts = parse_count(examples, "--examples")
        examples = format_count(prompts * draft.config.generations)
        comment = f"{format_count(prompts)} prompts × {draft.config.generations} completions"
    return [DraftLine("examples", examples, comment), _epochs_line(draft)]


def _examples(draft: _Answers) -> str:
    """The size of the data set, of which the file may take no more than so many."""
    examples, most = draft.usual("examples", draft.stated.examples), draft.config.most_examples
    if 0 < most < parse_count(examples, "--examples"):
        draft.assumed.append(f"of the {examples} examples the file takes {format_count(most)}")
        return format_count(most)
    return examples


def _epochs_line(draft: _Answers) -> DraftLine:
    stated = draft.stated.epochs or (f"{draft.config.epochs:g}" if draft.config.epochs else None)
    return DraftLine("epochs", draft.usual("epochs", stated), "passes over it")


def _packed_lines(draft: _Answers) -> list[DraftLine]:
    """Examples that are packed into sequences of one length."""
    examples = _examples(draft)
    each = draft.usual("tokens_per_example", draft.stated.tokens_per_example)
    tokens = parse_count(examples, "--examples") * parse_count(each, "--tokens-per-example")
    packed = f"{examples} of {each} tokens, packed into sequences of one length"
    count = format_count(max(round(tokens / draft.config.tokens), 1))
    return [DraftLine("examples", count, packed), _epochs_line(draft)]


def _image_lines(draft: _Answers) -> list[DraftLine]:
    side = draft.stated.image_size or str(draft.config.image_size or "")
    if _pixels(draft.found):
        side = draft.usual("image_size", side)
    return [DraftLine("image_size", side, "pixels of a side")] if side else []


def _batch_line(draft: _Answers) -> DraftLine:
    config, comment = draft.config, "samples per step, all GPUs together"
    if draft.stated.batch_per_gpu:
        if draft.stated.batch:
            raise UsageError("--batch, --batch-per-gpu: give only one of them")
        grows = "samples per step of each GPU: the global batch grows with them"
        return DraftLine("batch_per_gpu", draft.stated.batch_per_gpu, grows)
    if draft.stated.batch or not (config.batch or config.micro_batch):
        return DraftLine("batch", draft.usual("batch", draft.stated.batch), comment)
    if config.batch:
        return DraftLine("batch", str(config.batch), comment)
    gpus = parse_whole(draft.stated.gpus, "--gpus") if draft.stated.gpus else config.gpus
    if not gpus:
        gpus = config.replica_gpus
        draft.assumed.append(f"the file is for {gpus} GPU{'s' if gpus > 1 else ''}: --gpus")
    copies, rounds = max(gpus // config.replica_gpus, 1), config.accumulation or 1
    parts = [f"{config.micro_batch} a GPU"]
    parts += [f"{rounds} micro-batches"] if rounds > 1 else []
    parts += [f"{copies} copies of the network"] if copies > 1 else []
    comment = " × ".join(parts)
    return DraftLine("batch", str(config.micro_batch * rounds * copies), comment)


def _setting_lines(draft: _Answers) -> list[DraftLine]:
    """What the tool's file says in so many words, and which part of the network is trained."""
    config, trained = draft.config, _trained(draft) or _whole_modules(draft)
    lines = [
        DraftLine(key, str(value), comment)
        for key, comment in _SETTINGS.items()
        if (value := getattr(config, key))
    ]
    part = ", ".join(config.trained or config.whole_modules)
    more = DraftLine("trainable_params", str(trained), f"trained: {part}"[:90])
    return [*lines, more] if trained else lines


def _trained(draft: _Answers) -> int:
    """How many parameters a file's patterns leave trainable; 0 if it says nothing."""
    if not draft.config.trained or draft.config.method in ("lora", "qlora"):
        return 0
    count = trained_parameters(draft.found.network, draft.config.trained)
    if count:
        return count
    draft.assumed.append(
        f"all weights are trained: cannot tell from {', '.join(draft.config.trained)}"
    )
    return 0


def _whole_modules(draft: _Answers) -> int:
    """Parameters of adapters and of modules that are trained whole beside them."""
    network, modules = draft.found.network, draft.config.whole_modules
    table = network.vocabulary * network.hidden
    tables = sum(any(word in each for word in ("embed", "lm_head", "wte")) for each in modules)
    if not tables or draft.config.method not in ("lora", "qlora"):
        return 0
    rank = int(draft.stated.lora_rank or draft.config.lora_rank or _RANK)
    return rank * network.count.adapted + tables * table


def _stack_lines(draft: _Answers, project: FoundSoftware | None) -> list[DraftLine]:
    """The training software: as stated, of the file, as the project shows; none if unknown."""
    stated, config = draft.stated.stack, draft.config
    if stated is not None and stated.strip().lower() != UNKNOWN:
        name = parse_stack(stated, "--stack").name
        return [DraftLine("stack", name, "training software, as stated")]
    if config.software is not None:
        found = FoundSoftware(config.software, f"the {config.tool} file")
    elif not stated and project is not None:
        found = project
    else:
        draft.assumed.append(f"stack {UNKNOWN}, {_SCRIPTS}: --stack")
        return []
    shown_by = "".join(" " if has_control(c) else c for c in found.shown_by)
    return [DraftLine("stack", found.software.name, f"{shown_by}: {found.software.in_words}")]


def _data_lines(stated: StatedJob) -> list[DraftLine]:
    word = (stated.data_at or UNKNOWN).strip()
    if word.lower() == UNKNOWN:
        return []
    found = parse_data_at(word, "--data-at")
    size = f", gib: {found.gib:g}" if found.gib else ""
    return [DraftLine("data", f"{{at: {found.at}{size}}}", "where the data lie, as stated")]


def _unknown_stack_lines() -> list[str]:
    """The question of the software as comments: why it matters, and its words."""
    names: dict[str, list[str]] = {"tuned": [], "typical": []}
    for each in software().values():
        names[each.stack].append(each.name)
    return [
        "# stack: trl                             # training software: decides speed and attention",
        *_commented(f"  recipes of vendors are faster: {', '.join(names['tuned'])};"),
        *_commented(f"  scripts, planned if unknown: {', '.join(names['typical'])}"),
    ]
