"""Own machines that differ by name only are one kind."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from recommender.catalogs.schema import InstanceType
from recommender.inputs.offers_file import read_offers
from recommender.job.job import Timing
from recommender.job.jobfile import find_job
from recommender.market.same_hardware import hardware_kinds, named_machines
from recommender.plan.limits import Choice
from tests.shipped import snapshot

NOW = datetime(2026, 11, 20, tzinfo=UTC)


def test_names_do_not_make_another_kind(tmp_path: Path) -> None:
    rows = ["x,L4,4,2,", "y,l4,4,3,", "z,L4,4,1,100", "w,L4,2,1,"]
    machines = _machines(tmp_path, "network_gbit_per_s", rows)
    kinds = hardware_kinds(machines, ())
    names = ("x", "y", "z", "w")
    assert [kinds.of["own", name] for name in names] == [0, 0, 1, 2]
    assert [t.instance_type for t in kinds.types] == ["x", "z", "w"]


def test_a_machine_that_timings_name_is_a_kind_of_its_own(tmp_path: Path) -> None:
    machines = _machines(tmp_path, "as_of", ["x,L4,4,2,", "y,L4,4,3,"])
    job = find_job("resnet50-imagenet")
    job = replace(job, timings=(Timing("y", 4, 1, 900.0, "y"),))
    kinds = hardware_kinds(machines, named_machines(job, Choice()))
    assert kinds.of == {("own", "x"): 0, ("own", "y"): 1}


def test_types_of_clouds_are_kinds_of_their_own() -> None:
    types = sorted(snapshot().instance_types.values(), key=lambda t: t.instance_type)
    assert hardware_kinds(types, ()).types == tuple(types)


def _machines(folder: Path, column: str, rows: list[str]) -> Sequence[InstanceType]:
    (folder / "o.csv").write_text(f"label,gpu,gpus,usd_per_hour,{column}\n" + "\n".join(rows))
    shipped = snapshot()
    memory = {name: gpu.memory_mib for name, gpu in shipped.gpus.items()}
    known = shipped.instance_types.values()
    return read_offers(folder / "o.csv", memory, known, NOW.date()).machines
