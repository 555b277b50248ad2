"""Prices are renewed in the background once a day, if the user asked for it once."""

import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from recommender.cli import main
from recommender.cli.auto_update import STAMP, renew_if_due

DAY_S = 86_400.0


class Started:
    """The programs that were begun."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, ...]] = []

    def __call__(self, command: Sequence[str]) -> object:
        self.calls.append(tuple(command[4:]))
        return None


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    user = tmp_path / "config.toml"
    monkeypatch.setattr("recommender.inputs.settings.user_path", lambda: user)
    (tmp_path / "project").mkdir()
    return tmp_path


def set_(home: Path, text: str) -> None:
    (home / "config.toml").write_text(text)


def test_nothing_is_fetched_unless_it_was_asked_for(home: Path) -> None:
    started = Started()
    assert not renew_if_due(home / "project", home / "store", started)
    set_(home, 'auto_update = "off"\n')
    assert not renew_if_due(home / "project", home / "store", started)
    assert started.calls == []
    assert not (home / "store").exists()


def test_one_update_is_begun_a_day(home: Path) -> None:
    started = Started()
    set_(home, 'auto_update = "daily"\n')
    found = [renew_if_due(home / "project", home / "store", started) for _ in range(3)]
    assert found == [True, False, False]
    stamp = home / "store" / STAMP
    yesterday = time.time() - DAY_S - 60
    os.utime(stamp, (yesterday, yesterday))
    assert renew_if_due(home / "project", home / "store", started)
    assert started.calls == [("catalog", "update")] * 2


def test_the_address_is_the_users_and_never_a_projects(home: Path) -> None:
    started, project = Started(), home / "project"
    (project / "recommend.toml").write_text(
        'auto_update = "daily"\nupdate_from = "https://evil.example.org/manifest.json"\n'
    )
    assert not renew_if_due(project, home / "store", started)
    set_(home, 'auto_update = "daily"\nupdate_from = "https://a.example.org/manifest.json"\n')
    (project / "recommend.toml").unlink()
    assert renew_if_due(project, home / "store", started)
    address = "https://a.example.org/manifest.json"
    assert started.calls == [("catalog", "update", "--from", address)]


def test_a_store_that_cannot_be_written_is_no_error(home: Path) -> None:
    set_(home, 'auto_update = "daily"\n')
    (home / "file").write_text("")
    assert not renew_if_due(home / "project", home / "file" / "store", Started())


def test_an_address_without_a_key_is_not_taken_over(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["catalog", "update", "--from", "https://a.example.org/manifest.json"]
    assert main([*words, "--store", str(home / "store")]) == 4
    assert "names no key" in capsys.readouterr().err


def test_an_empty_store_has_nothing_to_publish(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["catalog", "publish", str(home / "out"), "--key", "key.pem"]
    assert main([*words, "--store", str(home / "store")]) == 4
    assert "no version to publish" in capsys.readouterr().err
    assert not (home / "out").exists()
