"""The states of all random number generators: torch, CUDA, Python and NumPy.

In types that `torch.load` reads without running code. NumPy's are its global ones.
"""

import random
import sys
from typing import Any


def random_numbers() -> dict[str, Any]:
    """The generator states of this process, for the libraries it has imported."""
    version, words, spare = random.getstate()
    numbers: dict[str, Any] = {"python": [version, list(words), spare]}
    if (torch := sys.modules.get("torch")) is not None:
        numbers["torch"] = torch.get_rng_state()
        if torch.cuda.is_available():
            numbers["cuda"] = torch.cuda.get_rng_state()
    if (numpy := sys.modules.get("numpy")) is not None:
        name, keys, place, gauss, kept = numpy.random.get_state()
        numbers["numpy"] = [name, keys.tolist(), place, gauss, kept]
    return numbers


def set_random_numbers(numbers: dict[str, Any]) -> None:
    """Restore generator states; libraries that are missing here are skipped."""
    version, words, spare = numbers["python"]
    random.setstate((version, tuple(words), spare))
    if "torch" in numbers and (torch := sys.modules.get("torch")) is not None:
        torch.set_rng_state(numbers["torch"].cpu())
        if "cuda" in numbers and torch.cuda.is_available():
            torch.cuda.set_rng_state(numbers["cuda"].cpu())
    if "numpy" in numbers and (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.set_state(tuple(numbers["numpy"]))
