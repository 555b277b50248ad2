"""Bundles the benchmarks into one file that runs on a bare machine: `python bench.pyz`.

Inside it our own package comes first on Python's path, so a folder `benchmarks` in the working
directory, which training repositories often have, is not run by mistake.
"""

import shutil
import zipapp
from pathlib import Path
from tempfile import TemporaryDirectory

from .errors import BenchError

# Ubuntu 22.04, on which many GPU images rest, has Python 3.10; our other packages want 3.11.
_MAIN = """import sys
if sys.version_info < (3, 10):
    sys.exit("error: this needs Python 3.10 or newer: try python3.10, python3.11, python3.12")
try:
    import numpy
except ImportError:
    sys.exit("error: numpy is not installed here, with or without torch: pip install numpy")
from benchmarks.command import main
sys.exit(main())
"""


def write_bundle(target: Path, force: bool = False) -> None:
    """Write the archive. Raises BenchError where a file is in the way."""
    if target.exists() and not force:
        raise BenchError(f"{target.name} exists; name another file with -o, or add --force")
    source = Path(__file__).parent
    if not source.is_dir():
        raise BenchError("these benchmarks are packed already; copy the file itself")
    with TemporaryDirectory() as folder:
        skipped = shutil.ignore_patterns("__pycache__", "records")
        shutil.copytree(source, Path(folder) / "benchmarks", ignore=skipped)
        (Path(folder) / "__main__.py").write_text(_MAIN, "utf-8")
        zipapp.create_archive(folder, target, interpreter="/usr/bin/env python3", compressed=True)
