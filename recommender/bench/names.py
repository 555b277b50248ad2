"""Which GPU of the catalog a record was taken on."""

import re
from collections.abc import Mapping

from catalogs.catalog import Catalog
from catalogs.schema import Gpu
from recommender.errors import RecordError
from recommender.text import shown, unknown


def catalog_gpu(
    catalog: Catalog, device: str, provider: str, instance_type: str, given: str | None
) -> str:
    """The catalog's name: as given, of the instance type, or of the driver's words.

    Raises RecordError where none fits, or where the device is a slice of one (MIG, vGPU): a seventh
    of an H100 is no H100.
    """
    if given is not None:
        same = [name for name in catalog.gpus if name.lower() == given.lower()]
        if not same:
            raise RecordError(f"--gpu: {unknown('GPU', given, catalog.gpus)}")
        return same[0]
    if "mig" in _words(device):
        raise RecordError(
            f"'{shown(device)}' is a slice of a GPU; measure the whole one, or name what it is "
            "like with --gpu"
        )
    machine = catalog.instance_types.get((provider, instance_type))
    if machine is not None and machine.gpu in catalog.gpus:
        return machine.gpu
    found = by_words(device, catalog.gpus)
    if found is None:
        raise RecordError(
            f"'{shown(device)}' is no GPU of the catalog; name the one it is like with --gpu"
        )
    return found


def by_words(device: str, gpus: Mapping[str, Gpu]) -> str | None:
    """The catalog's GPU all of whose words the driver's name holds, the most exact one.

    "NVIDIA A100-SXM4-80GB" is A100-80GB. A PCIe card is slower than its namesake on a board
    (H100: 350 W against 700 W) and is not taken for it.
    """
    words = set(_words(device))
    fits = [
        name
        for name in gpus
        if set(_words(name)) <= words and ("pcie" in words) <= ("pcie" in _words(name))
    ]
    return max(fits, key=lambda name: (len(_words(name)), len(name)), default=None)


def _words(name: str) -> list[str]:
    return [word for word in re.split(r"[\s_-]+", name.lower()) if word]
