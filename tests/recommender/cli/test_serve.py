"""`recommend serve`: what it listens on, and the names it says it answers to.

Needs Starlette and uvicorn (extra `serve`).
"""

from types import SimpleNamespace
from typing import Any

import pytest

from recommender.cli import main
from recommender.cli.commands import serve

pytest.importorskip("starlette", reason="Starlette is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the web server is started with, instead of starting it."""
    calls: list[dict[str, Any]] = []

    def server(config: Any) -> Any:
        return SimpleNamespace(run=lambda: calls.append({"host": config.host}))

    monkeypatch.setattr(serve, "import_module", lambda name: SimpleNamespace(Server=server))
    return calls


@pytest.mark.parametrize(
    ("words", "host", "reported"),
    [
        ((), "127.0.0.1", False),
        (("--host", "0.0.0.0"), "0.0.0.0", True),
        (("--host", "::"), "::", True),
        (("--host", "0.0.0.0", "--allow-host", "plans.example.org"), "0.0.0.0", False),
        (("--host", "192.0.2.7"), "192.0.2.7", False),
    ],
)
def test_a_server_that_is_open_to_others_prints_the_names_it_answers_to(
    words: tuple[str, ...], host: str, reported: bool, started: list[dict[str, Any]],
    capsys: pytest.CaptureFixture[str],
):  # fmt: skip
    """Opened without a name it refused every caller from elsewhere, and nothing said why."""
    assert main(["serve", *words]) == 0
    assert [call["host"] for call in started] == [host]
    err = capsys.readouterr().err
    assert ("--allow-host" in err) is reported
    assert err.startswith("http://[::]:8000/" if host == "::" else f"http://{host}:8000/")


@pytest.mark.parametrize("words", [("--port", "99999"), ("--workers", "0"), ("--workers", "65")])
def test_what_cannot_be_served_is_refused(words: tuple[str, str], started: list[dict[str, Any]]):
    assert main(["serve", *words]) == 2
    assert started == []
