"""Reading past the page cache: what was just written or read lies in memory otherwise."""

import os
from pathlib import Path

BLOCK_MIB = 64  # of random data, over and over in larger files
CHUNK = 2**20  # handed to the kernel at once: larger blocks gain nothing on ext4 and XFS
CAN_FORGET = hasattr(os, "posix_fadvise")


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
    """The same for a file that was written safely long ago: waits for no disk."""
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
    """Tell whether a file is a block so many times and nothing else."""
    with open(path, "rb") as file:
        return all(file.read(len(block)) == block for _ in range(times)) and not file.read(1)
