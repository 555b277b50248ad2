"""Errors on runs that the constants have not seen, and the spread that follows from them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd

from recommender.arrays import Z_90, Bools, Floats
from recommender.performance.least_squares import students_excess
from recommender.performance.priors import UNSTATED, UNSTATED_OF
from recommender.performance.speed_spread import SIGMA_NEW_GPU
from tests.research.fits.estimate import ENOUGH, Trials, estimate, trials_of
from tests.research.fits.model import Constants, errors, left_out_by

FITTED = (
    ("cnn", "tuned"),
    ("cnn", "typical"),
    ("encoder", "tuned"),
    ("encoder", "typical"),
    ("decoder", "typical"),
    ("encdec", "tuned"),
)
# Families whose constants are fitted and used with the factors of GPUs (`transfer.py`), of which
# their own runs are a part: what is left out of a fit is left out of the factors too.
BY_OWN_GPU = (("cnn", "typical"),)
STATED_BOTH = ("cnn", "encoder")  # families with runs of both stacks
OVERLAPS = tuple(float(w) for w in np.arange(9) / 10)
OVERLAP_TRANSFERRED = 0.1  # what the fitted families show
OWN_WEIGHT = 3.0  # of the family's own errors in its spread, against 1 of all others
WANTED_INSIDE = 0.9
MIN_RUNS = 20  # of other laboratories, to determine a family's constants


@dataclass(frozen=True, slots=True)
class Left:
    """What a fold leaves out: a source, or a GPU, in all families."""

    by: str  # "source" or "gpu"
    name: str

    def keeps(self, rows: pd.DataFrame) -> Bools:
        """Which rows stay; (rows,)."""
        return np.asarray(rows[self.by] != self.name, dtype=bool)


# What the formulas miss on the GPU of each run, from what is not left out; (runs,)
GpuFactors = Callable[[pd.DataFrame, frozenset[Left]], Floats]


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """The published runs of one family in one software stack."""

    family: str
    stack: str
    by: str  # what its folds leave out
    trials: Trials  # runs on one machine
    many: pd.DataFrame  # runs on several, with a known network
    factors: GpuFactors | None = None  # with which its constants are fitted and used

    def scaled(self, rows: pd.DataFrame, out: frozenset[Left]) -> pd.DataFrame:
        """Runs on the GPUs as these constants take them, from what is not left out.

        As in answers (`machines._expected`), a GPU without runs is not expected to be better than
        its figures.
        """
        if self.factors is None:
            return rows
        seen = self.trials.rows[kept_rows(self.trials.rows, out)]
        each = self.factors(rows, out)
        each = np.where(rows.gpu.isin(seen.gpu), each, np.minimum(each, 1.0))
        return rows.assign(matmul=rows.matmul * each, memory=rows.memory * each)

    def folds(self) -> tuple[Left, ...]:
        """Every source (or GPU) once."""
        return tuple(Left(self.by, str(name)) for name in self.trials.rows[self.by].unique())


def groups_of(rows: pd.DataFrame, factors: GpuFactors | None = None) -> tuple[Group, ...]:
    """Published runs by family and stack; `factors` for those that are fitted with them."""
    found = []
    for family, stack in FITTED:
        mine = rows[(rows.family == family) & (rows.tuning == stack)]
        one, many = mine[mine.nodes == 1], mine[(mine.nodes > 1) & (mine.network > 0)]
        own = factors if (family, stack) in BY_OWN_GPU else None
        found.append(Group(family, stack, left_out_by(one), trials_of(one), many, own))
    return tuple(found)


@cache
def constants(groups: tuple[Group, ...], group: Group, out: frozenset[Left]) -> Constants:
    """The constants of a group from all but what is left out."""
    trials, kept = trials_without(group, out), kept_rows(group.trials.rows, out)
    cuda = trials.runs.fp32 & kept
    lacking = min(cuda.sum(), kept.sum() - cuda.sum()) < ENOUGH
    return estimate(trials, kept, fp32_ratio(groups, out) if lacking else 1.0)


@cache
def trials_without(group: Group, out: frozenset[Left]) -> Trials:
    """The runs of a group with the factors of their GPUs, from what is not left out."""
    if group.factors is None:
        return group.trials
    return trials_of(group.scaled(group.trials.rows, out))


@cache
def fp32_ratio(groups: tuple[Group, ...], out: frozenset[Left]) -> float:
    """ε of CUDA cores over ε of tensor cores: the median of the groups that show both."""
    ratios = []
    for group in groups:
        kept = kept_rows(group.trials.rows, out)
        cuda = group.trials.runs.fp32 & kept
        if min(cuda.sum(), kept.sum() - cuda.sum()) >= ENOUGH:
            found = estimate(trials_without(group, out), kept, 1.0)
            ratios.append(found.cuda / found.tensor)
    return float(np.median(ratios)) if ratios else 1.0


def gpu_sd(rows: pd.DataFrame, seen: pd.DataFrame) -> Floats:
    """What a GPU adds to the spread of each run, next to that of its family; (rows,).

    The range of its matrix rate, and `SIGMA_NEW_GPU` where no run of the family saw the GPU.
    """
    new = np.where(rows.gpu.isin(seen.gpu), 0.0, SIGMA_NEW_GPU)
    return np.hypot(new, np.asarray(rows.matmul_sd, dtype=np.float64))


def held_sd(base: float, group: Group, several: bool, *left: Left) -> Floats:
    """Spread of every run that is left out by the first of `left`, its GPU's included."""
    rows = group.many if several else group.trials.rows
    seen = group.trials.rows[kept_rows(group.trials.rows, frozenset(left))]
    return np.hypot(base, gpu_sd(_test_rows(rows, left[0], left[1:]), seen))


def one_machine(groups: tuple[Group, ...], group: Group, left: Left, *also: Left) -> Floats:
    """ln errors on one machine of what is left out; `also` is neither seen nor predicted."""
    out = frozenset((left, *also))
    test = _test_rows(group.trials.rows, left, also)
    return errors(group.scaled(test, out), constants(groups, group, out))


def several_machines(groups: tuple[Group, ...], group: Group, left: Left, *also: Left) -> Floats:
    """ln errors on several machines; the overlap too is fitted on the runs that stay."""
    out = frozenset((left, *also))
    found = constants(groups, group, out)
    seen = group.many[kept_rows(group.many, out)]
    overlap = OVERLAP_TRANSFERRED
    if len(seen) >= ENOUGH:
        lost = [np.abs(errors(seen, found, w)).mean() for w in OVERLAPS]
        overlap = OVERLAPS[int(np.argmin(lost))]
    return errors(_test_rows(group.many, left, also), found, overlap)


def unseen_errors(
    groups: tuple[Group, ...], group: Group, several: bool, *also: Left
) -> Iterator[Floats]:
    """ln errors of every fold of a group, each predicted from the other ones only."""
    return (missed for missed, _ in _unseen(groups, group, several, *also))


def _unseen(
    groups: tuple[Group, ...], group: Group, several: bool, *also: Left
) -> Iterator[tuple[Floats, Floats]]:
    """ln errors of every fold, and what their GPUs add to the spread."""
    predict = several_machines if several else one_machine
    for left in group.folds():
        if left not in also and kept_rows(group.trials.rows, frozenset((left, *also))).any():
            found = predict(groups, group, left, *also)
            if len(found):
                yield found, held_sd(0.0, group, several, left, *also)


def sigma(groups: tuple[Group, ...], group: Group, several: bool, *also: Left) -> float:
    """Spread of ln speed, its GPU aside: 90 % of unseen errors lie within 1.645 of both.

    A fold weighs the square root of its runs, the folds of the group itself three times that:
    one group has too few sources for a spread of its own. Next to it what laboratories differ by
    (`between_laboratories`): a user is one that no fit has seen.
    """
    parts, weights = [], []
    for each in groups:
        for missed, of_gpu in _unseen(groups, each, several, *also):
            parts.append(without(missed, of_gpu))
            own = OWN_WEIGHT if each is group else 1.0
            weights.append(np.full(len(missed), own / np.sqrt(len(missed))))
    return float(np.hypot(conformal(parts, weights), between_laboratories(groups, several, also)))


@cache
def between_laboratories(
    groups: tuple[Group, ...], several: bool, out: tuple[Left, ...] = ()
) -> float:
    """Sd of ln speed between laboratories that the folds of the groups do not hold.

    A random effect by the method of moments: the mean square of the mean error of whole
    laboratories left out, less that of the folds (versions of a laboratory's scripts, most of them
    judged by others of the same laboratory). All families are pooled, as one has two or three
    laboratories; each mean weighs the square root of its runs, 0 where nothing is left. As the
    effect comes from few laboratories, Student's law applies.
    """
    folds = [part for each in groups for part in unseen_errors(groups, each, several, *out)]
    whole = [part for each in groups for part in _other_laboratories(groups, each, several, *out)]
    found = float(np.sqrt(max(_mean_square(whole) - _mean_square(folds), 0.0)))
    return found * students_excess(max(len(whole) - 1.0, 1.0))


def _other_laboratories(
    groups: tuple[Group, ...], group: Group, several: bool, *out: Left
) -> Iterator[Floats]:
    """ln errors of every laboratory of a group, where others have runs enough."""
    predict = several_machines if several else one_machine
    rows = group.trials.rows
    for name in rows.laboratory.unique():
        left = Left("laboratory", str(name))
        if left not in out and kept_rows(rows, frozenset((left, *out))).sum() >= MIN_RUNS:
            found = predict(groups, group, left, *out)
            if len(found):
                yield found


def _mean_square(parts: Sequence[Floats]) -> float:
    """The mean square of the mean of each part, which weighs the square root of its length."""
    weights = np.sqrt([len(part) for part in parts])
    means = np.array([part.mean() for part in parts])
    return float((weights * means**2).sum() / weights.sum()) if len(parts) else 0.0


def without(missed: Floats, known: Floats) -> Floats:
    """The sd that just holds each ln error in its span, next to a part that is known."""
    return np.asarray(np.sqrt(np.maximum((missed / Z_90) ** 2 - known**2, 0.0)))


def conformal(parts: Sequence[Floats], weights: Sequence[Floats]) -> float:
    """The sd that held 90 % of the weight of some folds, were there one run more.

    The run that is still to come may lie anywhere: the finite-sample correction of split
    conformal prediction (Vovk et al. 2005), n being the effective number (Kish) of runs.
    """
    every = np.concatenate(weights)
    share = WANTED_INSIDE * (1.0 + float((every**2).sum() / every.sum() ** 2))
    return weighted_quantile(parts, weights, min(float(share), 1.0))


def unstated_errors_of(groups: tuple[Group, ...], family: str, left: Left, *also: Left) -> Floats:
    """ln errors of a source of either stack whose job does not say its stack: between both."""
    share = UNSTATED_OF.get(family, UNSTATED)
    typical, tuned = _errors_by_stack(groups, family, left, *also)
    return np.asarray((1.0 - share) * typical + share * tuned)


def _errors_by_stack(
    groups: tuple[Group, ...], family: str, left: Left, *also: Left
) -> tuple[Floats, Floats]:
    """ln errors of a source of either stack as a typical script, and as a tuned recipe."""
    out = frozenset((left, *also))
    both = pd.concat([g.trials.rows for g in groups if g.family == family])
    test = _test_rows(both, left, also)
    typical, tuned = (
        errors(group.scaled(test, out), constants(groups, group, out))
        for group in (_group(groups, family, stack) for stack in ("typical", "tuned"))
    )
    return typical, tuned


def _group(groups: tuple[Group, ...], family: str, stack: str) -> Group:
    return next(g for g in groups if (g.family, g.stack) == (family, stack))


def unstated_errors(groups: tuple[Group, ...], family: str, *also: Left) -> Iterator[Floats]:
    """The same of every source of a family."""
    folds = [left for g in groups if g.family == family for left in g.folds()]
    typical = _group(groups, family, "typical")
    for left in dict.fromkeys(folds):
        seen = kept_rows(typical.trials.rows, frozenset((left, *also)))
        if left not in also and seen.any():
            yield unstated_errors_of(groups, family, left, *also)


def unstated_sds(groups: tuple[Group, ...], family: str, left: Left) -> Floats:
    """Spread of ln speed of every run of `unstated_errors_of`, as `gpu_speed.scaled_speed` says."""
    typical, share = _group(groups, family, "typical"), UNSTATED_OF.get(family, UNSTATED)
    both = pd.concat([g.trials.rows for g in groups if g.family == family])
    apart = np.subtract(*_errors_by_stack(groups, family, left))
    between = apart * np.sqrt(share * (1.0 - share))
    of_gpu = gpu_sd(_test_rows(both, left, ()), both[left.keeps(both)])
    return np.asarray(np.hypot(np.hypot(sigma(groups, typical, False, left), of_gpu), between))


def weighted_quantile(parts: Sequence[Floats], weights: Sequence[Floats], share: float) -> float:
    """The least value that `share` of the weight does not exceed."""
    values, weight = np.concatenate(parts), np.concatenate(weights)
    order = values.argsort()
    reached = weight[order].cumsum() / weight.sum()
    at = min(int(np.searchsorted(reached, share - 1e-12)), len(values) - 1)
    return float(values[order][at])


def kept_rows(rows: pd.DataFrame, out: frozenset[Left]) -> Bools:
    """Which rows stay; (rows,)."""
    kept = np.ones(len(rows), dtype=bool)
    for left in out:
        kept &= left.keeps(rows)
    return kept


def _test_rows(rows: pd.DataFrame, left: Left, also: Sequence[Left]) -> pd.DataFrame:
    return rows[~left.keeps(rows) & kept_rows(rows, frozenset(also))]
