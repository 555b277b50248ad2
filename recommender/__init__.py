"""From a training job and limits to ranked plans of cloud GPU machines.

    from recommender import recommend
    answer = recommend("resnet50-imagenet", deadline="24h")

The names below are loaded when they are first used, so that `import recommender` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recommender.api.calls import backtest, recommend, simulate
    from recommender.catalogs.errors import CatalogError, RecommendError
    from recommender.catalogs.load import load as load_catalog
    from recommender.errors import UsageError
    from recommender.job.job import Job
    from recommender.job.jobfile import find_job, job_from_text
    from recommender.job.preset_files import presets
    from recommender.plan.answer import Answer, Infeasible
    from recommender.plan.limits import Choice, GpuFilter, Limits, Progress, QuotaLimit
    from recommender.plan.plan import Plan
    from recommender.plan.version import __version__

__all__ = [
    "Answer",
    "CatalogError",
    "Choice",
    "GpuFilter",
    "Infeasible",
    "Job",
    "Limits",
    "Plan",
    "Progress",
    "QuotaLimit",
    "RecommendError",
    "UsageError",
    "__version__",
    "backtest",
    "find_job",
    "job_from_text",
    "load_catalog",
    "presets",
    "recommend",
    "simulate",
]

_HOME = {
    "recommender.api.calls": ("backtest", "recommend", "simulate"),
    "recommender.catalogs.load:load": ("load_catalog",),
    "recommender.errors": ("CatalogError", "RecommendError", "UsageError"),
    "recommender.job.job": ("Job",),
    "recommender.job.jobfile": ("find_job", "job_from_text"),
    "recommender.job.preset_files": ("presets",),
    "recommender.plan.limits": ("Choice", "GpuFilter", "Limits", "Progress", "QuotaLimit"),
    "recommender.plan.answer": ("Answer", "Infeasible"),
    "recommender.plan.plan": ("Plan",),
    "recommender.plan.version": ("__version__",),
}


def __getattr__(name: str) -> Any:
    """Load a public name from the module that defines it."""
    for home, names in _HOME.items():
        if name in names:
            module, _, renamed = home.partition(":")
            value = getattr(import_module(module), renamed or name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'recommender' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _refuse_source() -> None:
    """Refuse the folder of a clone: two of our packages lie next to it until they are installed."""
    try:
        import_module("recommender.catalogs")
    except ModuleNotFoundError as error:
        raise ImportError(
            f"{__path__[0]} is recommend's source, not an installed package: start Python in "
            "another folder, run `recommend`, or install the clone with `pip install -e .`",
            name=error.name,
        ) from None


_refuse_source()
