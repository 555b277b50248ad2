"""A real browser for tests of pages: Debian's Chromium, or that of `playwright install chromium`.

Needs Playwright (extra `browser`).
"""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PHONE = {"width": 375, "height": 812}
DESK = {"width": 1280, "height": 900}


def chromium() -> Iterator[Any]:
    """A browser, for a fixture; its test is skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with playwright.sync_playwright() as started:
        try:
            opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        except playwright.Error as error:
            pytest.skip(f"no Chromium: {error.message.splitlines()[0]}")
        yield opened
        opened.close()
