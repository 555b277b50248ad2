"""From a training job and limits to ranked plans of cloud GPU machines.

    from recommender import Limits, find_job, recommend
    answer = recommend(find_job("resnet50-imagenet"), Limits(deadline_s=24 * 3600))

The names below are loaded when they are first used, so that `import recommender` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recommender.catalogs.errors import CatalogError, RecommendError
    from recommender.catalogs.load import load as load_catalog
    from recommender.errors import UsageError
    from recommender.job.job import Job
    from recommender.job.jobfile import find_job, job_from_text, presets
    from recommender.plan.limits import Choice, GpuWish, Limits, Progress, QuotaLimit
    from recommender.plan.plan import Answer, Infeasible, Plan
    from recommender.planner.recommend import recommend
    from recommender.version import __version__

__all__ = [
    "Answer",
    "CatalogError",
    "Choice",
    "GpuWish",
    "Infeasible",
    "Job",
    "Limits",
    "Plan",
    "Progress",
    "QuotaLimit",
    "RecommendError",
    "UsageError",
    "__version__",
    "find_job",
    "job_from_text",
    "load_catalog",
    "presets",
    "recommend",
]

_HOME = {
    "catalogs.load:load": ("load_catalog",),
    "recommender.errors": ("CatalogError", "RecommendError", "UsageError"),
    "recommender.job.job": ("Job",),
    "recommender.job.jobfile": ("find_job", "job_from_text", "presets"),
    "recommender.plan.limits": ("Choice", "GpuWish", "Limits", "Progress", "QuotaLimit"),
    "recommender.plan.plan": ("Answer", "Infeasible", "Plan"),
    "recommender.planner.recommend": ("recommend",),
    "recommender.version": ("__version__",),
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


def _refuse_foreign() -> None:
    """Refuse packages of other projects that hide ours: both names are common."""
    for name in ("catalogs", "benchmarks"):
        try:
            package = import_module(name)
        except ImportError as error:
            raise ImportError(
                f"recommend is not complete: its package {name!r} cannot be imported ({error}); "
                "install recommend again",
                name=name,
            ) from error
        if getattr(package, "PROJECT", None) != "recommend":
            where = getattr(package, "__file__", None) or ", ".join(package.__path__)
            raise ImportError(
                f"{where} hides recommend's own package {name!r}; start Python elsewhere, "
                "rename that file, or install recommend into an environment of its own",
                name=name,
            )


_refuse_foreign()
