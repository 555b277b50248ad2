"""Which shipped functions each test enters, and the CPU seconds that it takes."""

import ast
import builtins
import json
import os
import time
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any, Protocol

import pytest

PACKAGE = "recommender"  # catalogs and benchmarks are installed inside
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Entered(Protocol):
    """What marks a function as entered."""

    def add(self, name: str, /) -> None: ...


def functions_of(tree: ast.AST, within: str = "") -> Iterator[tuple[str, Function]]:
    """The functions and methods of a module, without those inside of others."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield within + node.name, node
        else:
            name = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
            yield from functions_of(node, within + name)


def marked(source: str, module: str, file: str) -> CodeType:
    """A module whose functions say that they are entered."""
    tree = ast.parse(source)
    for name, function in functions_of(tree):
        (mark,) = ast.parse(f"__entered__.add({f'{module}:{name}'!r})").body
        first = function.body[0]
        for node in ast.walk(mark):
            ast.copy_location(node, first)
        documented = ast.get_docstring(function, clean=False) is not None
        function.body.insert(int(documented), mark)
    return compile(tree, file, "exec", dont_inherit=True)


class Reached:
    """Writes a line of JSON as each test that passes ends."""

    def __init__(self, out: Path) -> None:
        self._out = out.open("w", encoding="utf-8", buffering=1)
        self._entered: set[str] = set()
        self._passed = True
        vars(builtins)["__entered__"] = self._entered
        usual = SourceFileLoader.get_code

        def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
            if name.split(".")[0] != PACKAGE:
                return usual(loader, name)
            file = loader.get_filename(name)
            return marked(Path(file).read_text("utf-8"), name, file)

        SourceFileLoader.get_code = get_code  # type: ignore[method-assign]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._passed &= report.passed

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        self._entered.clear()
        self._passed, start = True, _cpu_s()
        result = yield
        if self._passed:
            line = {
                "test": item.nodeid,
                "cpu_s": round(_cpu_s() - start, 4),
                "functions": sorted(self._entered),
            }
            self._out.write(json.dumps(line) + "\n")
        return result


def _cpu_s() -> float:
    """CPU seconds of this process and of those that it started and that have ended."""
    used = os.times()
    return time.process_time() + used.children_user + used.children_system
