"""Reads what a script says of a training, without running it: Python by its syntax tree, shell by
its words. The keys are those that a file of the same tool would have.
"""

import ast
import json
import operator
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from recommender.errors import UsageError
from recommender.inputs.files import read_text
from recommender.text import shown

Tree = dict[str, Any]
_MAX_WORDS = 20_000  # of a shell script
_MAX_TEXT = 500  # of a value; longer ones are prompts
_ARGUMENTS = re.compile(
    r"TrainingArguments$|^(SFT|DPO|GRPO|KTO|Reward|PPO|ORPO|CPO|RLOO|Online)\w*Config$"
)
_TRAINER = re.compile(r"^(SFT|DPO|GRPO|KTO|Reward|PPO|ORPO|CPO|RLOO)Trainer$")
_LORA = {"r": "lora_r", "target_modules": "lora_target_modules", "use_dora": "use_dora",
         "modules_to_save": "lora_modules_to_save"}  # fmt: skip
_LOADED = ("load_in_4bit", "load_in_8bit", "max_seq_length", "attn_implementation")
_OF_TRAINERS = ("max_seq_length", "packing")
_ZOOS = ("models", "applications")  # torchvision's networks and Keras' are calls of these
_LOADERS = ("DataLoader", "fit", "image_dataset_from_directory")
_OF_LOOPS = {  # names that scripts of PyTorch give their figures
    "batch_size": "batch_size", "train_batch_size": "batch_size", "bs": "batch_size",
    "epochs": "epochs", "num_epochs": "epochs", "n_epochs": "epochs", "max_epochs": "epochs",
    "img_size": "image_size", "image_size": "image_size",
}  # fmt: skip
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv,
}  # fmt: skip
_UNKNOWN = object()
_SEVERAL = "${one of several}"  # which no reader takes for a value


def read_python(text: str, where: str) -> Tree:
    """Collect the arguments of a script's training calls, as keys of a file.

    Raises:
        UsageError: it is no Python.
    """
    source = _of_notebook(text, where) if text.lstrip().startswith("{") else text
    found: Tree = {}
    try:
        tree = ast.parse(source)
        known = _constants(tree)
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            for key, value in _of_call(call, known):
                found.setdefault(key, value)
        if "torch_network" in found:
            found = {**{key: _written(v) for key, v in _of_loops(tree, known)}, **found}
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"{where}: not Python ({shown(error)})") from None
    if "torch_network" in found and "precision" not in found:
        found["autocast"] = "none in the script"
    if not found:  # nanoGPT's files are assignments
        found = {name: _written(value) for name, value in known.items()}
    if "lora_r" in found or "lora_target_modules" in found:
        found.setdefault("use_peft", "true")
    if any(key in found for key in ("model_name_or_path", "trainer")):
        found.setdefault("output_dir", "script")
    if re.search(r"^[ \t]*(from|import)[ \t]+unsloth\b", source, re.MULTILINE):
        found["software"] = "unsloth"
    return found


def _of_notebook(text: str, where: str) -> str:
    try:
        cells = json.loads(text)["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise UsageError(f"{where}: not a notebook ({shown(error)})") from None
    lines = (line for each in code for line in each.splitlines())
    return "\n".join(line for line in lines if not line.lstrip().startswith(("!", "%")))


def _constants(tree: ast.Module) -> Tree:
    """What names stand for: assignments, defaults of arguments, and of fields."""
    known: Tree = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            _name(node.targets[0], node.value, known)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            _name(node.target, node.value, known)
        elif isinstance(node, ast.Call) and _called(node) == "add_argument" and node.args:
            flag = _evaluated(node.args[-1], {})
            default = next((k.value for k in node.keywords if k.arg == "default"), None)
            if isinstance(flag, str) and default is not None:
                known.setdefault(flag.lstrip("-").replace("-", "_"), _evaluated(default, known))
    return {name: value for name, value in known.items() if value is not _UNKNOWN}


def _name(target: ast.expr, value: ast.expr, known: Tree) -> None:
    if isinstance(value, ast.Call) and _called(value) == "field":
        value = next((k.value for k in value.keywords if k.arg == "default"), value)
    if isinstance(target, ast.Name):
        found = _evaluated(value, known)
        if known.get(target.id, found) != found:  # one of several branches: which is not known
            found = _UNKNOWN
        known[target.id] = found


def _evaluated(node: ast.expr, known: Tree) -> Any:
    """The value of an expression of constants and known names; `_UNKNOWN` of any other."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return known.get(node.id, _UNKNOWN)
    if isinstance(node, ast.Attribute):  # args.epochs, config.lr
        return known.get(node.attr, _UNKNOWN)
    if isinstance(node, (ast.List, ast.Tuple)):
        items = [_evaluated(each, known) for each in node.elts]
        return _UNKNOWN if _UNKNOWN in items else items
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _evaluated(node.operand, known)
        return -value if isinstance(value, (int, float)) else _UNKNOWN
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        pair = [_evaluated(each, known) for each in (node.left, node.right)]
        numbers = all(isinstance(each, (int, float)) and abs(each) < 1e12 for each in pair)
        if numbers and not (isinstance(node.op, (ast.Div, ast.FloorDiv)) and not pair[1]):
            return _OPERATORS[type(node.op)](*pair)
    if isinstance(node, ast.Call) and _called(node) in ("get", "getenv") and len(node.args) == 2:
        return _evaluated(node.args[1], known)  # os.environ.get("MODEL", "owner/name")
    return _UNKNOWN


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _of_call(call: ast.Call, known: Tree) -> Iterator[tuple[str, Any]]:
    """Keys that a call states."""
    name = _called(call)
    stated = {k.arg: _evaluated(k.value, known) for k in call.keywords if k.arg}
    stated = {key: value for key, value in stated.items() if value is not _UNKNOWN}
    if _ARGUMENTS.search(name):
        yield from ((key, _written(value)) for key, value in stated.items())
        if kind := re.match(r"^(DPO|GRPO|KTO|Reward|PPO|ORPO|CPO|RLOO)", name):
            yield "trainer", kind[1].lower()
    elif name == "from_pretrained":
        yield from _of_model(call, stated, known)
    elif name in ("LoraConfig", "get_peft_model"):
        yield from ((_LORA[key], _written(v)) for key, v in stated.items() if key in _LORA)
    elif name == "BitsAndBytesConfig":
        yield from ((key, _written(v)) for key, v in stated.items() if key in _LOADED)
    elif name == "create_model" or _owner(call) in _ZOOS:
        yield from _of_zoo(call, name, known)
    elif name in _LOADERS:
        yield from ((_OF_LOOPS[key], _written(v)) for key, v in stated.items() if key in _OF_LOOPS)
    elif name in ("autocast", "GradScaler"):
        yield "precision", "16-mixed"
    elif _TRAINER.match(name):
        yield "trainer", name.removesuffix("Trainer").lower()
        yield from ((key, _written(v)) for key, v in stated.items() if key in _OF_TRAINERS)
        if isinstance(stated.get("model"), str):
            yield "model_name_or_path", stated["model"]


def _owner(call: ast.Call) -> str:
    """What a called function belongs to: models of torchvision.models.resnet50()."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    return getattr(owner, "attr", getattr(owner, "id", ""))


def _of_zoo(call: ast.Call, name: str, known: Tree) -> Iterator[tuple[str, Any]]:
    """A network by its name in timm, or by its function in torchvision or Keras."""
    first = _evaluated(call.args[0], known) if call.args else known.get("model_name", _UNKNOWN)
    word = first if name == "create_model" else name
    if isinstance(word, str) and word:
        yield "torch_network", word


def _of_loops(tree: ast.Module, known: Tree) -> Iterator[tuple[str, Any]]:
    """Figures of a loop that a script writes out: its constants, and `for epoch in range(90)`."""
    yield from ((_OF_LOOPS[n.lower()], v) for n, v in known.items() if n.lower() in _OF_LOOPS)
    for node in ast.walk(tree):
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Call) and node.iter.args:
            value = _evaluated(node.iter.args[-1], known)
            if getattr(node.target, "id", "") == "epoch" and isinstance(value, int):
                yield "epochs", value


def _of_model(call: ast.Call, stated: Tree, known: Tree) -> Iterator[tuple[str, Any]]:
    """The name in `Class.from_pretrained(name)`, where the class is no tokenizer or processor."""
    if re.search(r"Tokenizer|Processor|Config|FeatureExtractor|Peft", _owner(call)):
        return
    first = _evaluated(call.args[0], known) if call.args else _UNKNOWN
    names = ("model_name", "pretrained_model_name_or_path", "model_name_or_path", "model_id")
    word = next((stated[each] for each in names if each in stated), first)
    if isinstance(word, str) and word:
        yield "model_name_or_path", word
    yield from ((key, _written(v)) for key, v in stated.items() if key in _LOADED)


def _written(value: Any) -> Any:
    """A value as a file would hold it."""
    if isinstance(value, list):
        return [_written(each) for each in value]
    if isinstance(value, bool) or value is None:
        return None if value is None else str(value).lower()
    return str(value)[:_MAX_TEXT]


def read_shell(text: str, folder: Path) -> Tree:
    """Collect `--key value` and `key.part=value` of a shell script, with its variables in place."""
    text = re.sub(
        r"^[ \t]*(?:source|\.)[ \t]+(\S+)", lambda f: _sourced(f[1], folder), text, flags=re.M
    )
    joined = re.sub(r"\\[ \t]*\n", " ", text).splitlines()
    lines = [line.strip() for line in joined if not line.lstrip().startswith("#")]
    known: dict[str, str] = {}
    for name, value in filter(None, map(_assigned, lines)):
        filled = _filled(value, known)[:_MAX_TEXT]
        # In branches a name has several values, and which of them is not known.
        known[name] = filled if known.get(name, filled) == filled else f"${{{name}}}"
    words: list[str] = []
    chosen: dict[str, list[Tree]] = {}  # what a variable that holds options may hold
    for line in (line for line in lines if _assigned(line) is None):
        options = re.match(r"(?:export\s+)?(\w+)=([\"'])(.*)\2$", line)
        if options is None:
            words += _words(_filled(_listed(line), known))
            continue
        usual: list[Tree] = [{}] if options[1] in known else []  # a branch leaves it empty
        tree: Tree = {}
        _collect(_words(_filled(options[3], known))[:_MAX_WORDS], tree)
        chosen.setdefault(options[1], usual).append(tree)
    found: Tree = {}
    _collect(words[:_MAX_WORDS], found)
    for trees in chosen.values():
        for key in dict.fromkeys(key for tree in trees for key in tree):
            values = [tree.get(key) for tree in trees]
            alike = values.count(values[0]) == len(values)
            _put(found, key, str(values[0]) if alike else _SEVERAL)
    return found


def _assigned(line: str) -> tuple[str, str] | None:
    """The name and the value of an assignment of one word."""
    found = re.match(r"(?:export\s+|local\s+)?(\w+)=([^(].*|)$", line)
    if not found or re.search(r"\s--?\w", found[2]) or " " in found[2].strip(" \"'"):
        return None
    return found[1], found[2].strip().strip("\"'")


def _listed(line: str) -> str:
    """The words of an array that is assigned; any other line as it is."""
    return re.sub(r"[()]|^\w+\+?=", " ", line) if re.match(r"\w+\+?=\(", line) else line


def _sourced(word: str, folder: Path) -> str:
    """The text of a script that another one takes in, from the folder of that one."""
    place = re.sub(r"^\$\{?\w+\}?/", "", word.strip("\"'"))
    try:
        return read_text(folder / place) if re.fullmatch(r"[\w./-]+", place) else ""
    except UsageError:  # of an environment that is not here
        return ""


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:  # a quote over several lines
        return line.replace('"', " ").replace("'", " ").split()


def _filled(word: str, known: dict[str, str]) -> str:
    """A word with its variables: $NAME, ${NAME}, ${NAME:-usual}, $((A + B)), $(expr …) left out."""

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[3]
        return known.get(name, found[2] if found[2] is not None else found[0])

    for _ in range(3):
        word = re.sub(r"\$\{(\w+)(?::?-([^}]*))?\}|\$(\w+)", value, word)
    return re.sub(r"\$\(\(([^()]*)\)\)", lambda found: _summed(found[1], known), word)


def _summed(text: str, known: dict[str, str]) -> str:
    named = re.sub(r"[A-Za-z_]\w*", lambda found: known.get(found[0], found[0]), text)
    try:
        value = _evaluated(ast.parse(named.strip(), mode="eval").body, {})
    except SyntaxError:
        return text
    return str(value) if isinstance(value, (int, float)) else text


def _collect(words: list[str], found: Tree) -> None:
    for number, word in enumerate(words):
        following = words[number + 1] if number + 1 < len(words) else ""
        if word == "-m" or word.endswith(".py"):
            _put(found, "module", following if word == "-m" else word)
        elif word.startswith("--") and len(word) > 2:
            key, equals, value = word[2:].partition("=")
            bare = not following or following.startswith(("--", "|", "&", ";", ">", "2>"))
            _put(found, key, value if equals else "true" if bare else following)
        elif re.match(r"^\+{0,2}[A-Za-z_]\w*(\.\w+)+=", word):
            key, _, value = word.lstrip("+").partition("=")
            _put(found, key, value)

    if own := next((each for each in words if re.match(r"openrlhf\.cli\.train_", each)), ""):
        found["module"] = own  # in a text that is given to `--module` as a variable


def _put(tree: Tree, path: str, value: str) -> None:
    """Set a value at a dotted path; of several, which one counts is not known."""
    parts = path.replace("-", "_").split(".")[:9]
    for part in parts[:-1]:
        inner = tree.setdefault(part, {})
        if not isinstance(inner, dict):
            return
        tree = inner
    last, value = parts[-1], value[:_MAX_TEXT]
    if not isinstance(tree.get(last), dict):
        tree[last] = value if tree.get(last, value) == value else _SEVERAL
