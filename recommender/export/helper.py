"""The checkpoint helper as one file beside a job: nothing has to be installed on its machines.

`recommender.train` needs the standard library and a few modules of ours, which Python imports from
a ZIP file on its path.
"""

import io
from importlib.resources import files
from zipfile import ZipFile, ZipInfo

from recommender.export.files import ExportFile

HELPER = "recommender-train.zip"
_MODULES = (
    "__init__", "errors", "text",
    "catalogs/__init__", "catalogs/bounds", "catalogs/errors", "catalogs/files", "catalogs/frozen",
)  # fmt: skip


def helper_file() -> ExportFile:
    """The ZIP; its bytes are those of its modules, whenever it is made."""
    package, held = files("recommender"), io.BytesIO()
    own = [f"train/{each.name}" for each in package.joinpath("train").iterdir()]
    names = [*(f"{name}.py" for name in _MODULES), *(n for n in sorted(own) if n.endswith(".py"))]
    with ZipFile(held, "w") as archive:
        for name in names:
            archive.writestr(ZipInfo(f"recommender/{name}"), package.joinpath(name).read_bytes())
    return ExportFile(HELPER, binary=held.getvalue())
