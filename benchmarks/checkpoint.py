"""How many bytes a second of a checkpoint reach a place where they are safe, and come back.

To a folder of the disk or of what is mounted: written, then fsync, which waits for the disk; read
back past the page cache. To an object store: put and get of one object (boto3). The data are
64 MiB of random bytes, over and over: farther back than any compression looks.
"""

import uuid
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from .errors import BenchError, Skipped, WrongResult
from .input_pipeline import BLOCK_MIB, CAN_FORGET, forget, holds, read_into, write_safely
from .subject import Bench, Case, Trial

MIB = 2**20
_SIZES_MIB = {"quick": (64,), "full": (64, 1024)}
_S3_TIMEOUT_S = 20


def checkpoint(bench: Bench) -> Iterator[Case | Skipped]:
    """Write and read of the disk, and of a mounted path and an object store that are named."""
    places = [("disk", bench.folder)] + ([("mount", bench.mount)] if bench.mount else [])
    for where, folder in places:
        for mib in _SIZES_MIB[bench.suite]:
            yield _case("write", where, mib, partial(_write, folder, mib))
            if CAN_FORGET:
                yield _case("read", where, mib, partial(_read, folder, mib))
    if not CAN_FORGET:
        yield Skipped("checkpoint read: this system cannot drop its page cache")
    if not bench.mount:
        yield Skipped("checkpoint to a mounted path: none named; --mount DIR")
    if not bench.s3:
        yield Skipped("checkpoint to an object store: none named; --s3 s3://bucket/prefix")
        return
    yield from _objects(bench)


def _case(what: str, where: str, mib: int, setup: "partial[Trial]") -> Case:
    facts: dict[str, object] = {"bytes": mib * MIB, "way": what, "where": where}
    name = f"{what} {where} {mib} MiB"
    return Case("checkpoint", name, "GB/s", mib * MIB * 1e-9, setup, None, facts)


def _write(folder: Path, mib: int) -> Trial:
    path, (block, times) = folder / f"recommend-{uuid.uuid4().hex}.bench", _blocks(mib)

    def timed() -> float:
        path.unlink(missing_ok=True)  # a new checkpoint is a new file; removing one is not timed
        start = perf_counter()
        write_safely(path, block, times)
        return perf_counter() - start

    return Trial(timed, lambda: _same(holds(path, block, times)), lambda: path.unlink(True), timed)


def _read(folder: Path, mib: int) -> Trial:
    path, (block, times) = folder / f"recommend-{uuid.uuid4().hex}.bench", _blocks(mib)
    write_safely(path, block, times)
    target = bytearray(len(block))

    def timed() -> float:
        forget(path)
        start = perf_counter()
        read_into(path, target)
        return perf_counter() - start

    def check() -> float:
        return _same(target == block and holds(path, block, times))

    return Trial(timed, check, lambda: path.unlink(True), timed)


def _blocks(mib: int) -> tuple[bytes, int]:
    """A block and how often it makes so many MiB."""
    return _random(min(mib, BLOCK_MIB)), -(-mib // BLOCK_MIB)


def _random(mib: int) -> bytes:
    return np.random.default_rng().bytes(mib * MIB)  # os.urandom takes three times as long


def _same(equal: bool) -> float:
    if not equal:
        raise WrongResult("a checkpoint read back differs from what was written")
    return 0.0


def _objects(bench: Bench) -> Iterator[Case | Skipped]:
    bucket, _, prefix = bench.s3.removeprefix("s3://").partition("/")
    if not bench.s3.startswith("s3://") or not bucket:
        raise BenchError(f"--s3 {bench.s3}: write s3://bucket/prefix")
    try:
        boto3 = import_module("boto3")
    except ImportError:
        yield Skipped("checkpoint to an object store: boto3 is not installed")
        return
    key = f"{prefix.rstrip('/')}/recommend-{uuid.uuid4().hex}.bench".lstrip("/")
    mib = _SIZES_MIB[bench.suite][0]
    for way in ("write", "read"):
        setup = partial(_object_trial, boto3, bench.s3_endpoint, (bucket, key), mib, way)
        yield _case(way, "s3", mib, setup)


def _object_trial(boto3: Any, endpoint: str, place: tuple[str, str], mib: int, way: str) -> Trial:
    """Put or get one object; credentials come from where boto3 finds them, never from us."""
    config = import_module("botocore.config").Config(
        connect_timeout=_S3_TIMEOUT_S, read_timeout=_S3_TIMEOUT_S, retries={"max_attempts": 1}
    )
    client = boto3.client("s3", endpoint_url=endpoint or None, config=config)
    where = {"Bucket": place[0], "Key": place[1]}
    data = _random(mib)

    def put() -> None:
        client.put_object(**where, Body=data)

    def get() -> bytes:
        return bytes(client.get_object(**where)["Body"].read())

    put()
    return Trial(
        put if way == "write" else get,
        lambda: _same(get() == data),
        lambda: client.delete_object(**where),
    )
