"""Renews prices once a day in the background, where the user asked for it once.

`recommend config set auto_update daily`. An answer never waits for it: the next one has the prices.
Settings of a project do not count: whoever is asked about a repository would else take its prices.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from recommender.inputs.settings import load, project_path

DAY_S = 86_400.0
STAMP = "auto-update"  # in the store: when an update was last begun
Start = Callable[[Sequence[str]], object]


def renew_if_due(folder: Path, root: Path, start: "Start | None" = None) -> bool:
    """Begin an update of the store if the user's settings ask for one today; whether it was."""
    settings, project = load({}, folder), str(project_path(folder))
    own = {key: str(each.value) for key, each in settings.items() if each.origin != project}
    if own.get("auto_update") != "daily" or not _is_due(root):
        return False
    address = own.get("update_from")
    words = ("--from", address) if address else ()
    try:
        (start or _started)((sys.executable, "-P", "-m", "recommender", *_UPDATE, *words))
    except OSError:
        return False  # as without it: the answer says how old its prices are
    return True


_UPDATE = ("catalog", "update")


def _is_due(root: Path) -> bool:
    """Whether a day has passed since the last one; of several programs one begins it."""
    stamp = root / STAMP
    try:
        root.mkdir(parents=True, exist_ok=True)
        if time.time() - stamp.stat().st_mtime < DAY_S:
            return False
        stamp.unlink()
    except FileNotFoundError:
        pass
    except OSError:
        return False
    try:
        os.close(os.open(stamp, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError:  # another program was faster, or nothing can be written there
        return False
    return True


def _started(command: Sequence[str]) -> object:
    quiet = subprocess.DEVNULL
    return subprocess.Popen(
        command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True, close_fds=True
    )
