"""Own machines that differ by name only are one kind."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from recommender.catalogs.catalog import Catalog, extended
from recommender.inputs.offers_file import read_offers
from recommender.job.job import Timing
from recommender.job.jobfile import find_job
from recommender.market.same_hardware import hardware_kinds, named_machines
from recommender.plan.limits import Choice
from tests.shipped import snapshot

NOW = datetime(2026, 11, 20, tzinfo=UTC)


def test_names_do_not_make_another_kind(tmp_path: Path) -> None:
    rows = ["x,L4,4,2,", "y,l4,4,3,", "z,L4,4,1,100", "w,L4,2,1,"]
    names = ("x", "y", "z", "w")
    keys = [("own", name) for name in names]
    kinds = hardware_kinds(_catalog(tmp_path, "network_gbit_per_s", rows), keys, ())
    assert [kinds.of[key] for key in keys] == [0, 0, 1, 2]
    assert [t.instance_type for t in kinds.types] == ["x", "z", "w"]


def test_a_machine_that_timings_name_is_a_kind_of_its_own(tmp_path: Path) -> None:
    catalog = _catalog(tmp_path, "as_of", ["x,L4,4,2,", "y,L4,4,3,", "z,L4,4,3,"])
    job = find_job("resnet50-imagenet")
    job = replace(job, timings=(Timing("y", 4, 1, 900.0, "y"),))
    keys = [("own", name) for name in "xyz"]
    kinds = hardware_kinds(catalog, keys, named_machines(job, Choice()))
    assert [kinds.of[key] for key in keys] == [0, 1, 0]
    job = replace(job, timings=(Timing("x", 4, 1, 900.0, "x"),))  # the machine that others are like
    kinds = hardware_kinds(catalog, keys, named_machines(job, Choice()))
    assert [kinds.of[key] for key in keys] == [0, 1, 1]


def test_types_of_clouds_are_kinds_of_their_own() -> None:
    types = snapshot().instance_types
    assert hardware_kinds(snapshot(), sorted(types), ()).types == tuple(
        types[key] for key in sorted(types)
    )


def _catalog(folder: Path, column: str, rows: list[str]) -> Catalog:
    (folder / "o.csv").write_text(f"label,gpu,gpus,usd_per_hour,{column}\n" + "\n".join(rows))
    shipped = snapshot()
    memory = {name: gpu.memory_mib for name, gpu in shipped.gpus.items()}
    known = shipped.instance_types.values()
    own = read_offers(folder / "o.csv", memory, known, NOW.date())
    return extended(shipped, own.hardware, own.offers)
