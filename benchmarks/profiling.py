"""The stall profile of a suite: times a training on four kinds of data and tells its stalls."""

from collections.abc import Callable
from contextlib import suppress

from benchmarks.attempt import attempt
from benchmarks.errors import BenchError, Skipped
from benchmarks.inputs import BATCH
from benchmarks.stalls import KINDS, Kind, Profile, Run, Training, profile, time_runs, what_ifs
from benchmarks.subject import Bench
from benchmarks.telling import Found
from benchmarks.training import workers_of

_STEPS, _WARM_UP = 60, 12


def steps_of(bench: Bench) -> tuple[int, int]:
    """Steps of a profile's runs that are timed, and those before: for many bursts of a loader.

    Workers that began together deliver together, and hold up to three batches each in advance.
    """
    workers = workers_of(bench)
    return max(_STEPS, 10 * workers), max(_WARM_UP, 3 * workers)


def stalls_of(
    bench: Bench, name: str, make: Callable[[], Training] | None, found: Found
) -> Profile | None:
    """Time a training on four kinds of data, if one was named."""
    if make is None:
        found.skipped.append("stall profile: no training named; --profile")
        return None
    found.say(f"stall profile of {name}: runs on {', '.join(_kinds(bench))}")
    told = attempt(lambda: profile(_timed(bench, make), name), f"stall profile of {name}")
    if isinstance(told, Skipped):
        if bench.world > 1:
            raise BenchError(f"process {bench.rank}, {told}")
        found.keep(told)
        return None
    if bench.world == 1:
        found.skipped.append("interconnect stall: one process; start it under torchrun")
    for each in told.stalls:
        found.say(
            f"{'stall':12}{each.name:36}{each.seconds * 1e3:11.4g} ms/step   "
            f"{each.share:4.0%} of the step, {each.low * 1e3:.3g} to {each.high * 1e3:.3g} ms"
        )
    for change in what_ifs(told):
        found.say(
            f"{'what if':12}{change.change:36}{change.step_s * 1e3:11.4g} ms/step   predicted"
        )
    return told


def _kinds(bench: Bench) -> tuple[Kind, ...]:
    """One process has nobody to exchange with: its run on one GPU is that on all."""
    return KINDS if bench.world > 1 else KINDS[1:]


def _timed(bench: Bench, make: Callable[[], Training]) -> tuple[Run, ...]:
    """The runs of a training."""
    steps, warm_up = steps_of(bench)
    training = make()
    try:
        return time_runs(
            training, _kinds(bench), steps, warm_up, bench.world, BATCH, machines=bench.machines
        )
    finally:
        with suppress(OSError):
            training.close()
