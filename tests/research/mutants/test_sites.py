"""Faults that are put into a small function."""

import ast
from pathlib import Path

from tests.research.mutants.reached import functions_of, marked
from tests.research.mutants.sites import faults, put_into_process, sites, spread

SOURCE = '''
def cheaper(one: int | None, other: float = 2.0) -> bool:
    """Whether one is."""
    return not one + 1 >= other


class Table:
    def least(self):
        return min(self.rows[0], 3)
'''
WRONG = {
    "return one + 1 >= other", "return not one + 2 >= other", "return not one - 1 >= other",
    "return not one + 1 > other", "return None",
    "return min(self.rows[1], 3)", "return min(self.rows[0], 4)", "return max(self.rows[0], 3)",
}  # fmt: skip


def test_each_fault_is_made_once_and_taken_back() -> None:
    made = []
    for _, function in functions_of(ast.parse(SOURCE)):
        before = ast.unparse(function)
        made += [ast.unparse(wrong).splitlines()[-1].strip() for _, _, wrong in faults(function)]
        assert ast.unparse(function) == before
    assert set(made) == WRONG
    assert len(made) == len(WRONG) + 1  # either function may return nothing


def test_a_loaded_function_has_the_fault_that_its_site_names(tmp_path: Path) -> None:
    path = tmp_path / "loaded.py"
    path.write_text(SOURCE, "utf-8")
    loaded: dict[str, object] = {}
    exec(compile(SOURCE, str(path), "exec"), loaded)
    table = loaded["Table"]()  # type: ignore[operator]
    table.rows = [1, 2]
    (site,) = (site for site in sites(path) if site.what == "0 → 1")
    assert (site.function, site.line, table.least()) == ("Table.least", 9, 1)
    put_into_process(site, str(path))
    assert table.least() == 2


def test_faults_are_spread_over_all_code_alike(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.py" for name in "abcd"]
    for path in paths:
        path.write_text(SOURCE, "utf-8")
    for seed in range(5):
        assert [site.path for site in spread(paths, 8, seed)] == sorted(2 * paths)


def test_a_function_says_that_it_was_entered() -> None:
    entered: set[str] = set()
    loaded: dict[str, object] = {"__entered__": entered}
    exec(marked(SOURCE, "a.module", "module.py"), loaded)
    assert not loaded["cheaper"](1)  # type: ignore[operator]
    assert entered == {"a.module:cheaper"}
    assert loaded["cheaper"].__doc__ == "Whether one is."
