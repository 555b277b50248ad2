"""The recorded market that comes with the tool: three zones of AWS, February to April 2023.

Whether a spot machine with a V100 (p3.2xlarge) was there, probed every 195 s for 45 days by the
authors of "Can't Be Late" (Wu et al., NSDI 2024); the series unchanged from SkyNomad's artifact
(andylizf/skynomad-artifact 62b9aaa, 2026-08-09, Apache-2.0). The file holds change points in our
own format, computed from them.
"""

import os
from importlib import resources
from pathlib import Path

SAMPLE = "sample"  # in the place of a file's name


def trace_path(word: str) -> Path:
    """The file of a name; `sample` is the shipped one, unless there is such a file."""
    if word != SAMPLE or os.path.exists(word):
        return Path(word)
    return Path(str(resources.files("recommender.traces") / "sample.csv"))
