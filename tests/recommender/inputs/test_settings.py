"""Settings: the nearest source wins, its origin is shown, and typos are not swallowed."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from recommender.errors import UsageError
from recommender.inputs.settings import KEYS, Setting, Value, load, project_path, save


def test_defaults(tmp_path: Path) -> None:
    found = _load(tmp_path)
    assert found["confidence"] == Setting("confidence", "0.95", "default")
    assert found["providers"].value == ()
    assert set(found) == set(KEYS)


def test_precedence(tmp_path: Path) -> None:
    user, project = tmp_path / "user.toml", tmp_path / "recommend.toml"
    assert _load(tmp_path)["confidence"].origin == "default"
    user.write_text("confidence = 0.5\nmax_machines = 4\n")
    assert _load(tmp_path)["confidence"] == Setting("confidence", "0.5", str(user))
    project.write_text("confidence = '60%'\n")
    assert _load(tmp_path)["confidence"] == Setting("confidence", "60%", str(project))
    env = {"RECOMMEND_CONFIDENCE": "0.7", "RECOMMEND_NOW": "2026-11-20T00:00Z"}
    assert _load(tmp_path, env)["confidence"].origin == "RECOMMEND_CONFIDENCE"
    flag = _load(tmp_path, env, {"confidence": "0.8", "market": None})
    assert flag["confidence"] == Setting("confidence", "0.8", "flag")
    assert flag["max_machines"] == Setting("max_machines", "4", str(user))
    assert flag["market"].origin == "default"


def test_lists_and_tables(tmp_path: Path) -> None:
    text = (
        'providers = ["aws", "gcp"]\ndiscount = {aws = 0.2, gcp = "15%"}\nregions = "us-east-1"\n'
    )
    (tmp_path / "recommend.toml").write_text(text)
    found = _load(tmp_path, {"RECOMMEND_GPU": "H100, A100:8"})
    assert found["providers"].value == ("aws", "gcp")
    assert found["discount"].value == ("aws=0.2", "gcp=15%")
    assert found["regions"].value == ("us-east-1",)
    assert found["gpu"].value == ("H100", "A100:8")


def test_pyproject_and_folders_above(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (tmp_path / "pyproject.toml").write_text("[tool.recommend]\nmarket = 'spot'\n")
    assert _load(deep)["market"].value == "spot"
    (tmp_path / "a" / "pyproject.toml").write_text("[tool.other]\nx = 1\n")
    assert _load(deep)["market"].value == "spot"
    (tmp_path / "recommend.toml").write_text("market = 'on-demand'\n")
    assert _load(deep)["market"].value == "on-demand"
    (tmp_path / "a" / ".git").mkdir()
    assert project_path(deep) is None


@pytest.mark.parametrize(
    "text",
    [
        "[tool.recommend]\nmarket = 'spot'\n",
        "[ tool . recommend ]\nmarket = 'spot'\n",
        "[tool.'recommend']\nmarket = 'spot'\n",
        "[tool]\nrecommend = { market = 'spot' }\n",
        "['tool']\nrecommend.market = 'spot'\n",
        "tool.recommend.market = 'spot'\n",
        "tool = { recommend = { market = 'spot' } }\n",
    ],
)
def test_our_table_is_found_however_toml_lets_one_write_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    assert project_path(tmp_path) == tmp_path / "pyproject.toml"


def test_a_pyproject_that_only_depends_on_us_is_not_ours(tmp_path: Path) -> None:
    text = "[project]\ndependencies = ['recommend']\n[tool.other]\nx = 1\n"
    (tmp_path / "pyproject.toml").write_text(text)
    (tmp_path / ".git").mkdir()
    assert project_path(tmp_path) is None


def test_a_broken_pyproject_of_others_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.recommend\nbroken")
    (tmp_path / ".git").mkdir()
    assert _load(tmp_path)["market"].origin == "default"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("provider = ['aws']", "unknown setting 'provider'; did you mean providers?"),
        ("providers = ['awz']", "providers: unknown value 'awz'; did you mean aws?"),
        ("confidence = 5", "confidence: 5 is not a share below 1"),
        ("confidence = true", "is not a word"),
        ("confidence = [0.5]", "is not a word"),
        ("regions = [[1]]", "is not a list of words"),
        ("max_age = 7", "max_age: 7 has no unit"),
        ("colour = 'never'", "did you mean color?"),
        ('regions = ["\\u001b[31m"]', "control characters"),
        ("x = [", "not TOML"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "recommend.toml").write_text(text)
    with pytest.raises(UsageError) as error:
        _load(tmp_path)
    assert reason in str(error.value)
    assert "recommend.toml" in str(error.value)


def test_a_bad_variable_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="RECOMMEND_MARKET unknown value 'sport'; did"):
        _load(tmp_path, {"RECOMMEND_MARKET": "sport"})


def test_save_keeps_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "new" / "user.toml"
    save("confidence", ("0.9",), path)
    save("providers", ("aws", "gcp"), path)
    path.write_text(path.read_text() + "# mine\n")
    save("confidence", ("0.8",), path)
    assert tomllib.loads(path.read_text()) == {"confidence": "0.8", "providers": ["aws", "gcp"]}
    assert "# mine" in path.read_text()
    assert [p.name for p in path.parent.iterdir()] == ["user.toml"]
    with pytest.raises(UsageError, match="unknown setting 'confidance'; did you mean confidence?"):
        save("confidance", ("0.9",), path)
    with pytest.raises(UsageError, match="confidence: high is not a share"):
        save("confidence", ("high",), path)


@given(st.text(max_size=80) | st.text("[]=\"'.\na1{}", max_size=60))
@hypothesis_settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_file_is_read_or_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "recommend.toml").write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        found = _load(tmp_path)
    except UsageError:
        return
    assert set(found) == set(KEYS)


def _load(
    folder: Path,
    environment: dict[str, str] | None = None,
    flags: dict[str, Value | None] | None = None,
) -> dict[str, Setting]:
    return load(flags or {}, folder, environment or {}, folder / "user.toml")
