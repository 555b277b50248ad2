"""Where a shipped function can be made wrong by one operator, constant, condition or result."""

import ast
import gc
import itertools
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import CodeType, FunctionType

from tests.research.mutants.reached import functions_of

_SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Div, ast.Mod: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
_NAMES = {"min": "max", "minimum": "maximum", "any": "all", "argmin": "argmax", "floor": "ceil"}
_AT_DEFINITION = ("args", "annotation", "returns", "decorator_list")
_OTHER_NAME = _NAMES | {new: old for old, new in _NAMES.items()}


@dataclass(frozen=True)
class Site:
    """One fault: the `number`th that `faults` finds in a function."""

    path: Path
    function: str
    line: int
    number: int
    what: str


def _swapped(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """What may stand for a node instead, with a name."""
    new = deepcopy(node)
    match new:
        case ast.Compare(ops=[op, *_]) if type(op) in _SWAPPED:
            new.ops[0] = _SWAPPED[type(op)]()  # type: ignore[assignment]
            yield f"{type(op).__name__} → {type(new.ops[0]).__name__}", new
        case ast.BinOp(op=op) | ast.BoolOp(op=op) | ast.AugAssign(op=op) if type(op) in _SWAPPED:
            new.op = _SWAPPED[type(op)]()  # type: ignore[assignment]
            yield f"{type(op).__name__} → {type(new.op).__name__}", new
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield "operator dropped", operand
        case ast.Constant(value=bool()):
            yield f"{new.value} → {not new.value}", ast.Constant(not new.value)
        case ast.Constant(value=int() | float()):
            other = new.value + 1 if isinstance(new.value, int) else new.value * 1.5 or 1.0
            yield f"{new.value} → {other}", ast.Constant(other)
        case ast.If() | ast.IfExp():
            new.test = ast.UnaryOp(ast.Not(), new.test)
            yield "condition turned", new
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            new.value = ast.Constant(None)
            yield "returns None", new
        case ast.Name(id=name) if name in _OTHER_NAME:
            new.id = _OTHER_NAME[name]
            yield f"{name} → {new.id}", new
        case ast.Attribute(attr=name) if name in _OTHER_NAME:
            new.attr = _OTHER_NAME[name]
            yield f"{name} → {new.attr}", new


def faults(function: ast.AST) -> Iterator[tuple[int, str, ast.AST]]:
    """Line and name of each fault of a function, which has the fault while it is looked at."""
    for parent, field, place, node in list(_parts(function)):
        for what, other in _swapped(node):
            ast.fix_missing_locations(ast.copy_location(other, node))
            _put(parent, field, place, other)
            yield getattr(node, "lineno", 0), what, function
            _put(parent, field, place, node)


def _parts(parent: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    """All nodes below one, with where each stands, but for what runs when functions are defined."""
    for field, value in ast.iter_fields(parent):
        if field in ("args", "annotation", "returns", "decorator_list") and not isinstance(
            parent, ast.Call
        ):
            continue
        for place, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(node, ast.AST):
                yield parent, field, place, node
                yield from _parts(node)


def _put(parent: ast.AST, field: str, place: int | None, node: ast.AST) -> None:
    if place is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[place] = node


def sites(path: Path) -> list[Site]:
    """All faults of a module's functions; annotations and decorators have none."""
    return [
        Site(path, name, line, number, what)
        for name, function in functions_of(ast.parse(path.read_text("utf-8")))
        for number, (line, what, _) in enumerate(faults(function))
    ]


def spread(paths: list[Path], count: int, seed: int) -> list[Site]:
    """So many faults, at even distances over all the code, from a start by chance."""
    every = [site for path in paths for site in sites(path)]
    step = len(every) / count
    start = Random(seed).random() * step
    return [every[int(start + step * number)] for number in range(count)]


def put_into_process(site: Site, file: str) -> None:
    """From now on the function, as loaded from `file`, has the fault."""
    tree = ast.parse(site.path.read_text("utf-8"))
    function = dict(functions_of(tree))[site.function]
    next(itertools.islice(faults(function), site.number, None))  # which leaves the fault in
    (wrong,) = _codes(compile(tree, file, "exec", dont_inherit=True), site.function)
    for each in gc.get_objects():
        code = each.__code__ if issubclass(type(each), FunctionType) else wrong
        if (code.co_filename, code.co_qualname) == (file, site.function) and code is not wrong:
            each.__code__ = wrong


def _codes(code: CodeType, name: str) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            if each.co_qualname == name:
                yield each
            yield from _codes(each, name)
