"""Every system call on a folder can fail: once, or from some call on, with an error of choice.

Calls are those that Python makes on paths of the folder and on files opened there. A failed close
closes, a failed write may leave half of what it was to write: as disks do.
"""

import builtins
import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ERRORS = (errno.EIO, errno.ENOENT, errno.ESTALE, errno.ENOSPC)
_ON_PATHS = (
    "access", "link", "listdir", "lstat", "mkdir", "open", "remove", "rename", "replace", "rmdir",
    "scandir", "stat", "unlink", "utime",
)  # fmt: skip
_ON_HANDLES = ("fsync", "ftruncate", "fchmod", "fchown")


class FailingCalls:
    """Counts calls, and fails the one with number `at`, or all from it on."""

    def __init__(self, folder: Path, at: int, number: int, lasting: bool) -> None:
        self.folder, self.at, self.number, self.lasting = str(folder), at, number, lasting
        self.calls: list[str] = []
        self._handles: set[int] = set()

    def meet(self, name: str, *paths: object) -> None:
        """Count a call on paths, or on a handle; raise where it is its turn."""
        if not any(self._is_here(path) for path in paths):
            return
        self.calls.append(f"{name} {paths[0]}")
        turn = len(self.calls) - 1
        if turn == self.at or (self.lasting and turn > self.at):
            raise OSError(self.number, os.strerror(self.number), str(paths[0]))

    def opened(self, handle: int, path: object) -> None:
        """Remember a file of the folder."""
        (self._handles.add if self._is_here(path) else self._handles.discard)(handle)

    def _is_here(self, path: object) -> bool:
        if isinstance(path, int):
            return path in self._handles
        return isinstance(path, str | os.PathLike) and os.fspath(path).startswith(self.folder)


@contextmanager
def failing(
    folder: Path, at: int, number: int = errno.EIO, lasting: bool = False
) -> Iterator[FailingCalls]:
    """Let call `at` on a folder fail while the block runs; none where it is negative."""
    calls = FailingCalls(folder, at, number, lasting)
    with pytest.MonkeyPatch.context() as patch:
        for name in _ON_PATHS:
            patch.setattr(os, name, _on_paths(calls, name, getattr(os, name)))
        for name in _ON_HANDLES:
            patch.setattr(os, name, _on_handle(calls, name, getattr(os, name)))
        opener = _opener(calls)
        patch.setattr(io, "open", opener)
        patch.setattr(builtins, "open", opener)
        yield calls


def _on_paths(calls: FailingCalls, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def call(path: Any = ".", *others: Any, **named: Any) -> Any:
        calls.meet(name, path, *others[:1])
        found = real(path, *others, **named)
        if name == "open":
            calls.opened(found, path)
        return found

    if real in os.supports_dir_fd:
        os.supports_dir_fd.add(call)
    if real in os.supports_fd:
        os.supports_fd.add(call)
    if real in os.supports_follow_symlinks:
        os.supports_follow_symlinks.add(call)
    return call


def _on_handle(calls: FailingCalls, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def call(handle: int, *others: Any) -> Any:
        calls.meet(name, handle)
        return real(handle, *others)

    return call


def _opener(calls: FailingCalls) -> Callable[..., Any]:
    real = io.open

    class File(io.FileIO):
        def read(self, size: Any = -1, /) -> Any:
            calls.meet("read", self.name)
            return super().read(size)

        def readall(self) -> Any:
            calls.meet("read", self.name)
            return super().readall()

        def readinto(self, buffer: Any, /) -> Any:
            calls.meet("read", self.name)
            return super().readinto(buffer)

        def write(self, content: Any, /) -> Any:
            try:
                calls.meet("write", self.name)
            except OSError:
                super().write(bytes(content)[: len(content) // 2])
                raise
            return super().write(content)

        def close(self) -> None:
            was_open, name = not self.closed, self.name
            super().close()
            if was_open:
                calls.meet("close", name)

    def opened(file: Any, mode: str = "r", *others: Any, **named: Any) -> Any:
        if not calls._is_here(file):
            return real(file, mode, *others, **named)
        if not isinstance(file, int):
            calls.meet("open", file)
        raw = File(file, mode.replace("b", "").replace("t", ""))
        calls.opened(raw.fileno(), file if isinstance(file, int) else raw.name)
        calls._handles.add(raw.fileno())
        kind = io.BufferedReader if mode[0] == "r" else io.BufferedWriter
        binary = kind(raw)  # type: ignore[arg-type]
        if "b" in mode:
            return binary
        return io.TextIOWrapper(binary, named.get("encoding") or "utf-8")

    return opened
