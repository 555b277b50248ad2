"""Reading past the page cache: what was just written or read lies in memory otherwise."""

import os
from pathlib import Path

CHUNK = 2**20  # handed to the kernel at once: larger blocks gain nothing on ext4 and XFS
CAN_FORGET = hasattr(os, "posix_fadvise")


def forget(path: Path) -> bool:
    """Drop a file's pages from the cache; tell whether the system can."""
    if not CAN_FORGET:
        return False
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)  # dirty pages cannot be dropped
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(handle)
    return True


def write_safely(path: Path, data: bytes) -> None:
    """Write a file and wait until it is on the disk."""
    view = memoryview(data)
    with open(path, "wb", buffering=0) as file:
        for start in range(0, len(view), CHUNK):
            part = view[start : start + CHUNK]
            while part:
                part = part[file.write(part) or 0 :]
        os.fsync(file.fileno())


def read_into(path: Path, target: memoryview) -> int:
    """Read a file into memory that exists already; give the number of bytes."""
    done = 0
    with open(path, "rb", buffering=0) as file:
        while done < len(target):
            got = file.readinto(target[done : done + CHUNK])
            if not got:
                break
            done += got
    return done
