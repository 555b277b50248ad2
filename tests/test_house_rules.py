"""Rules of this repository that no linter knows."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("recommender", "catalogs", "benchmarks")
MODULES = sorted(path for name in PACKAGES for path in (ROOT / name).rglob("*.py"))
TEXTS = (".py", ".md", ".toml", ".yaml", ".csv", ".json", ".txt", ".sh", "")
FILE_LINES = 800
FUNCTION_LINES = 60
LONG_FUNCTIONS: frozenset[str] = frozenset()  # flat lists of like cases, "module:function"
# Where any exception may be caught: the edge of the program, between providers, and around each
# measurement.
BROAD = {
    "recommender/cli/exit_codes.py", "catalogs/refresh/run.py", "benchmarks/errors.py",
    "recommender/serve/app.py", "recommender/api/batch.py",
}  # fmt: skip
SOLVER = "recommender/optimize/linear_program.py"  # the one module that may see PuLP and HiGHS
# Spelt in two parts, so that this file keeps its own rule.
FORBIDDEN = ("/wor" + "k/", "/hom" + "e/", "TO" + "DO", "FIX" + "ME", "XX" + "X")

Function = ast.FunctionDef | ast.AsyncFunctionDef
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def trees() -> dict[str, ast.Module]:
    """Every module as its syntax tree, by name."""
    return {name_of(path): ast.parse(path.read_text("utf-8")) for path in MODULES}


def functions() -> Iterator[tuple[str, Function]]:
    """Every function, nested ones as well, as "module:function"."""
    for module, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, Function):
                yield f"{module}:{node.name}", node


def public(body: list[ast.stmt]) -> Iterator[Function | ast.ClassDef]:
    """What others may use: of a module, and of its public classes."""
    for node in body:
        if isinstance(node, Function | ast.ClassDef) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from public(node.body)


def texts() -> Iterator[Path]:
    """Every text file of the repository that people write."""
    folders = (*PACKAGES, "tests", "docs", "examples", "LICENSES", ".ci")
    within = (path for name in folders for path in (ROOT / name).rglob("*") if path.is_file())
    own = [path for path in within if not {"venv", "__pycache__"} & set(path.parts)]
    found = [*own, *ROOT.glob("[!.]*.*"), ROOT / "NOTICE"]
    return (path for path in found if path.is_file() and path.suffix in TEXTS)


def test_a_module_says_what_it_is_for():
    assert [name for name, tree in trees().items() if not ast.get_docstring(tree)] == []


def test_everything_public_has_a_docstring():
    bare = [
        f"{module}:{node.name}"
        for module, tree in trees().items()
        for node in public(tree.body)
        if not ast.get_docstring(node)
    ]
    assert bare == []


def test_files_are_short():
    lines = {name_of(path): len(path.read_text("utf-8").splitlines()) for path in MODULES}
    assert {name: count for name, count in lines.items() if count > FILE_LINES} == {}


def test_functions_are_short():
    lines = {name: (node.end_lineno or 0) - node.lineno + 1 for name, node in functions()}
    long = {name: count for name, count in lines.items() if count > FUNCTION_LINES}
    assert long.keys() == LONG_FUNCTIONS


def test_most_functions_are_short_and_most_modules_have_120_to_300_lines():
    lengths = sorted((node.end_lineno or 0) - node.lineno + 1 for _, node in functions())
    assert lengths[len(lengths) // 2] <= 10
    assert lengths[len(lengths) * 9 // 10] <= 20
    modules = [path for path in MODULES if path.name != "__init__.py"]
    lines = sorted(len(path.read_text("utf-8").splitlines()) for path in modules)
    assert 120 <= lines[len(lines) // 2] <= 300


def test_a_docstring_is_understood_without_another():
    leaning = [
        f"{module}:{node.name}"
        for module, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, Function | ast.ClassDef)
        and (ast.get_docstring(node) or "").startswith("The same")
    ]
    assert leaning == []


def test_an_import_inside_a_function_has_a_reason():
    """On its line or above; commands and API functions load what they call (`cli/groups.py`)."""
    bare = []
    for path in MODULES:
        module, lines = name_of(path), path.read_text("utf-8").splitlines()
        if not module.startswith(("recommender/cli/", "recommender/api/")):
            bare += [f"{module}:{line}" for line in lazy_imports(module) if not reason(lines, line)]
    assert bare == []


def lazy_imports(module: str) -> list[int]:
    """The first lines of blocks of our own imports inside of functions."""
    found = {
        inner.lineno: inner.end_lineno or 0
        for node in ast.walk(trees()[module])
        if isinstance(node, Function)
        for inner in ast.walk(node)
        if isinstance(inner, ast.ImportFrom) and (inner.module or "").startswith("recommender")
    }
    return [line for line in sorted(found) if line - 1 not in found.values()]


# Comments for linters, which give no reason.
_DIRECTIVE = r"(?!noqa|type:|fmt:|pragma|mypy:)"


def reason(lines: list[str], line: int) -> bool:
    """Whether a comment stands on an import, or above it in the same block of code."""
    imported, above = lines[line - 1], lines[line - 2]
    indent = imported[: len(imported) - len(imported.lstrip())]
    return bool(
        re.search(rf"  # {_DIRECTIVE}", imported) or re.match(rf"{indent}# {_DIRECTIVE}", above)
    )


@pytest.mark.parametrize(
    ("above", "comment", "gives"),
    [
        ("    # Most calls need none.", "", True),
        ("    x = 1", "  # most calls need none", True),
        ("        # Of the branch that ends here.", "", False),
        ("# Of the module.", "", False),
        ("    x = 1  # of this line", "", False),
        ("    x = 1", "  # noqa: PLC0415", False),
        ("    # fmt: skip", "", False),
    ],
)
def test_a_reason_belongs_to_its_import(above: str, comment: str, gives: bool):
    lines = [above, f"    from recommender.text import number{comment}"]
    assert reason(lines, 2) == gives


def test_commands_that_run_our_tests_and_studies_work_in_a_clone():
    """`python -m` would find the source folder first (tests/run.py)."""
    for path in (*texts(), ROOT / "Makefile"):
        text = path.read_text("utf-8")
        assert not re.search(r"python3? (-m (tests|recommender)[.]|tests/reg)", text), path
        for module in re.findall(r"tests/run[.]py\s+(tests[.][.\w]+)", text):
            place = ROOT / module.rstrip(".").replace(".", "/")
            assert place.with_suffix(".py").is_file() or place.is_dir(), (path, module)


def test_only_the_edge_catches_everything():
    broad = {
        module
        for module, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or ast.unparse(node.type) in ("Exception", "BaseException"))
    }
    assert broad <= BROAD


def test_the_solver_stays_in_one_module():
    users = {
        module
        for module, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        and re.search(r"\b(pulp|highspy)\b", ast.unparse(node))
    }
    assert users <= {SOLVER}


def test_types_are_checked_strictly_with_one_exception():
    mypy = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["mypy"]
    assert mypy["strict"] is True
    assert mypy["packages"] == ["recommender"]
    assert [each["module"] for each in mypy["overrides"]] == ["pulp.*"]


def test_an_ignored_type_error_names_its_kind():
    bare = re.compile(r"#\s*type:\s*ignore(?!\[)")
    assert [name_of(path) for path in MODULES if bare.search(path.read_text("utf-8"))] == []


@pytest.mark.parametrize("word", FORBIDDEN)
def test_nothing_unfinished_and_no_path_of_one_machine(word: str):
    assert [name_of(path) for path in texts() if word in path.read_text("utf-8")] == []


def test_every_page_of_the_documentation_is_listed():
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    folder = ROOT / "docs"
    pages = {path.relative_to(folder).as_posix() for path in folder.rglob("*.md")} - {"index.md"}
    assert {page for page in pages if f"]({page})" not in index} == set()


OTHERS = {  # files of other projects that pages and comments name
    *("run_squad.py", "measure_throughput.py", "run.py", "analyze.py", "devices.py"),
    "train.py",  # the user's own script
    *("shake_shake.py", "resource_acquisition.py", "opt_job_constants.py", "models.py"),
    *("mistral.py", "mixtral.py", "deepseek.py", "starcoder2.py", "llama.py"),  # of NeMo
    *("nemotron.py", "qwen2vl.py", "ssm.py"),
    *("hf_model_configs.py", "model_preset.py", "gpt.py"),  # of MaxText, MLC
    "base_train.py",  # of nanochat
}


def test_every_module_that_pages_and_docstrings_name_is_there():
    folders = (*PACKAGES, "tests", "docs", "examples")
    paths = [path for name in folders for path in (ROOT / name).rglob("*.py")] + [ROOT / "setup.py"]
    pages = [path for path in texts() if path.suffix == ".md" and path.name != "CHANGELOG.md"]
    said = {name_of(page): page.read_text("utf-8") for page in pages}
    for path in paths:
        nodes = [
            n for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, DOCUMENTED)
        ]
        said[name_of(path)] = "\n".join(ast.get_docstring(node) or "" for node in nodes)
    dead = [
        f"{place}: {named}"
        for place, text in said.items()
        for named in re.findall(r"(?<![\w/.*>])((?:[\w-]+/)*[\w-]+\.py)\b", text)
        if named.rpartition("/")[2] not in OTHERS
        and not named.startswith("configuration_")  # of transformers
        and not any(p.match(named) for p in paths)
    ]
    assert dead == []


def test_links_between_pages_lead_somewhere():
    folders = (ROOT / "docs", ROOT / "LICENSES")
    pages = [*ROOT.glob("*.md"), *(page for folder in folders for page in folder.rglob("*.md"))]
    dead = [
        f"{name_of(page)}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert dead == []


def test_constants_are_defined_before_functions():
    late = [
        f"{module}:{node.lineno}"
        for module, tree in trees().items()
        for place, node in enumerate(tree.body)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and any(isinstance(before, Function | ast.ClassDef) for before in tree.body[:place])
    ]
    assert late == []
