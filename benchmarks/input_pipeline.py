"""How many samples a second a machine prepares for training, per core, and reads, cached or cold.

A sample is a picture of the size of ImageNet's (500 x 375, 110 kB), random but smooth. With
Pillow it is a JPEG; without it, deflated pixels: the record says which, they are not comparable.
Then a random crop of 224 x 224, a flip, and normalisation to float32.
"""

import io
import os
import uuid
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from pathlib import Path
from queue import Queue
from threading import Event, Thread
from time import perf_counter
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from .errors import Skipped, WrongResult
from .matmul import cpus
from .subject import Bench, Case, Trial

BLOCK_MIB = 64  # of random data, over and over in larger files
CHUNK = 2**20  # handed to the kernel at once: larger blocks gain nothing on ext4 and XFS
CAN_FORGET = hasattr(os, "posix_fadvise")
AHEAD = 2  # batches per worker that wait to be used, as in PyTorch's DataLoader
MIB = 2**20
BATCH = 16
_NOISE = 6  # grey levels: makes a JPEG of about 100 kB


def forget(path: Path) -> bool:
    """Drop a file's pages from the cache; tell whether the system can."""
    if not CAN_FORGET:
        return False
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)  # dirty pages cannot be dropped
    finally:
        os.close(handle)
    return drop(path)


def drop(path: Path) -> bool:
    """Drop a file that was written safely long ago from the page cache: waits for no disk."""
    if not CAN_FORGET:
        return False
    handle = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(handle)
    return True


def write_safely(path: Path, block: bytes, times: int = 1) -> None:
    """Write a block so many times into a file and wait until it is on the disk."""
    view = memoryview(block)
    with open(path, "wb", buffering=0) as file:
        for _ in range(times):
            for start in range(0, len(view), CHUNK):
                part = view[start : start + CHUNK]
                while part:
                    part = part[file.write(part) or 0 :]
        os.fsync(file.fileno())


def read_into(path: Path, target: bytearray) -> int:
    """Read a file to its end, over and over into the same memory; give the number of bytes."""
    view, done = memoryview(target), 0
    with open(path, "rb", buffering=0) as file:
        while True:
            at = done % len(view)
            got = file.readinto(view[at : at + CHUNK])
            if not got:
                return done
            done += got


def holds(path: Path, block: bytes, times: int) -> bool:
    """Whether a file is a block so many times and nothing else."""
    with open(path, "rb") as file:
        return all(file.read(len(block)) == block for _ in range(times)) and not file.read(1)


R = TypeVar("R")
B = TypeVar("B")


class Loader(Generic[R, B]):
    """Gives batches in any order; `next()` waits for one, `close()` ends the workers."""

    def __init__(self, fetch: Callable[[int], R], prepare: Callable[[R], B], workers: int) -> None:
        self._fetch, self._prepare = fetch, prepare
        self._ready: Queue[B | BaseException] = Queue(AHEAD * workers)
        self._stop = Event()
        self._threads = [
            Thread(target=self._work, args=(first, workers), daemon=True)
            for first in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    def next(self) -> B:
        """The next batch; raises what went wrong in a worker."""
        batch = self._ready.get()
        if isinstance(batch, BaseException):
            raise batch
        return batch

    def close(self) -> None:
        """End the workers; what they prepared is dropped."""
        self._stop.set()
        while any(thread.is_alive() for thread in self._threads):
            while not self._ready.empty():
                self._ready.get_nowait()
            for thread in self._threads:
                thread.join(0.01)

    def _work(self, number: int, stride: int) -> None:
        while not self._stop.is_set():
            try:
                self._ready.put(self._prepare(self._fetch(number)))
            except (OSError, ValueError, ArithmeticError) as error:
                self._ready.put(error)
                return
            number += stride


HEIGHT, WIDTH, CROP = 375, 500, 224  # mean size of ImageNet's pictures, usual crop
_FILE_MIB = {"quick": 64, "full": 512}
# Means and standard deviations of ImageNet's three colours.
_MEAN = np.array([0.485, 0.456, 0.406], np.float32)
_SD = np.array([0.229, 0.224, 0.225], np.float32)

Decoder = Callable[[bytes], NDArray[np.uint8]]


def inputs(bench: Bench) -> Iterator[Case | Skipped]:
    """Decode and augment on one core and on all, then reads of a file of samples."""
    name, encoded, decode = coder(picture(1))
    for threads in dict.fromkeys((1, cpus())):
        facts: dict[str, object] = {"decoder": name, "threads": threads, "bytes": len(encoded)}
        setup = partial(_prepare_trial, encoded, decode, threads)
        on = "core" if threads == 1 else "cores"
        label = f"decode {name} and augment, {threads} {on}"
        yield Case("inputs", label, "samples/s", float(BATCH * threads), setup, None, facts)
    mib = _FILE_MIB[bench.suite]
    for cold in (False, True):
        if cold and not CAN_FORGET:
            yield Skipped("cold reads: this system cannot drop its page cache")
            continue
        label = f"read {'cold' if cold else 'cached'} {mib} MiB"
        setup = partial(_read_trial, bench, mib, cold)
        facts = {"cold": cold, "bytes": mib * MIB}
        yield Case("inputs", label, "GB/s", mib * MIB * 1e-9, setup, None, facts)


def picture(seed: int) -> NDArray[np.uint8]:
    """A smooth random picture with a little noise, which compresses like a photograph."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (HEIGHT // 25, WIDTH // 25, 3)).repeat(25, 0).repeat(25, 1)
    noise = rng.integers(-_NOISE, _NOISE + 1, (HEIGHT, WIDTH, 3))
    made: NDArray[np.uint8] = np.clip(coarse + noise, 0, 255).astype(np.uint8)
    return made


def coder(sample: NDArray[np.uint8]) -> tuple[str, bytes, Decoder]:
    """The name of the decoder that is there, the sample encoded, and how to decode it."""
    try:
        pillow: Any = import_module("PIL.Image")
    except ImportError:
        return "deflate", zlib.compress(sample.tobytes(), 6), _inflate
    buffer = io.BytesIO()
    pillow.fromarray(sample).save(buffer, "JPEG", quality=90)
    return "jpeg", buffer.getvalue(), lambda data: np.asarray(pillow.open(io.BytesIO(data)))


def _inflate(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(zlib.decompress(data), np.uint8).reshape(HEIGHT, WIDTH, 3)


def augment(pixels: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.float32]:
    """Crop at random, flip half of the time, normalise."""
    top, left = rng.integers(0, HEIGHT - CROP + 1), rng.integers(0, WIDTH - CROP + 1)
    cut = pixels[top : top + CROP, left : left + CROP]
    cut = cut[:, ::-1] if rng.random() < 0.5 else cut
    return np.asarray((cut.astype(np.float32) / 255 - _MEAN) / _SD, np.float32)


def _prepare_trial(encoded: bytes, decode: Decoder, threads: int) -> Trial:
    pool = ThreadPoolExecutor(threads)

    def batch(seed: int) -> NDArray[np.float32]:
        rng = np.random.default_rng(seed)
        return np.stack([augment(decode(encoded), rng) for _ in range(BATCH)])

    def run() -> list[NDArray[np.float32]]:
        return list(pool.map(batch, range(threads)))

    def check() -> float:
        if run()[0].shape != (BATCH, CROP, CROP, 3):
            raise WrongResult("a prepared batch has the wrong shape")
        return 0.0

    return Trial(run, check, pool.shutdown)


def _read_trial(bench: Bench, mib: int, cold: bool) -> Trial:
    path = bench.folder / f"recommend-{uuid.uuid4().hex}.bench"
    block = np.random.default_rng().bytes(min(mib, BLOCK_MIB) * MIB)
    times = -(-mib // BLOCK_MIB)
    write_safely(path, block, times)
    target = bytearray(len(block))

    def timed() -> float:
        if cold:
            forget(path)
        start = perf_counter()
        read_into(path, target)
        return perf_counter() - start

    def check() -> float:
        if target != block or not holds(path, block, times):
            raise WrongResult("a file read back differs from what was written")
        return 0.0

    return Trial(timed, check, lambda: path.unlink(missing_ok=True), timed)
