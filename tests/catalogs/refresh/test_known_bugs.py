"""Every mistake that others have shipped and where it is tested here; and those of programs.

The list is that of published catalogs, issues and pull requests of 2022 to 2026. A test that is
renamed or lost is missed by the first test below.
"""

import ast
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

import recommender.catalogs
from recommender.catalogs.refresh.run import refresh
from recommender.catalogs.store import newest_good
from tests.catalogs.refresh.test_faults import STEPS, Stopped
from tests.catalogs.refresh.world import make_published_world

BUGS = {
    "gpuhunt #36, ec2-instance-selector: a Capacity Block at 0.00 wins": (
        "providers.aws.test_prices:test_a_capacity_block_at_0_00_is_no_price_gpuhunt_36",
        "refresh.test_validate:test_a_capacity_block_at_zero_next_to_the_price_leaves_the_price",
    ),
    "gpuhunt #164 #170: a fraction of a GPU as a CPU machine": (
        "providers.aws.test_machines:test_half_a_gpu_is_no_gpu_and_no_cpu_machine_gpuhunt_164",
        "refresh.test_cloud_bugs:test_gpuhunt_170_part_of_a_gpu_is_no_cpu_machine",
    ),
    "gpuhunt #92: memory of all GPUs taken as of each": (
        "providers.aws.test_machines:test_memory_of_all_gpus_taken_for_one_is_refused_gpuhunt_92",
        "providers.aws.test_machines:test_two_a100_differ_by_their_memory",
    ),
    "gpuhunt #108, skypilot #4652: a new GPU dropped, or called NVIDIA": (
        "providers.aws.test_machines:test_an_unknown_gpu_is_named_and_not_offered_gpuhunt_108",
        "providers.aws.test_machines:test_a_gpu_called_nvidia_is_not_guessed_skypilot_4652",
        "refresh.test_cloud_bugs:test_skypilot_4652_a_new_gpu_is_neither_dropped_in_silence_nor_guessed",
    ),
    "skypilot #4657: H200 for 0 USD": (
        "providers.aws.test_prices:test_an_h200_for_nothing_is_refused_skypilot_4657",
    ),
    "gpuhunt #226: one region down breaks the run": (
        "providers.aws.test_faults:test_one_region_down_is_one_failed_place_gpuhunt_226",
        "refresh.test_cloud_bugs:test_gpuhunt_226_one_region_down_does_not_break_the_run",
    ),
    "infracost #3123, cloud-pricing-api #230, gpuhunt #132: a SKU is renamed": (
        "refresh.test_cloud_bugs:test_gpuhunt_132_and_infracost_3123_all_names_of_a_renamed_sku_are_known",
        "providers.gcp.test_provider_mutations:"
        "test_cloud_pricing_api_230_names_of_before_and_after_a_renaming_are_known",
    ),
    "skypilot PR #8125: spot flagged on-demand": (
        "refresh.test_cloud_bugs:test_skypilot_8125_spot_b200_under_the_usage_type_of_on_demand",
        "providers.aws.test_calls:test_a_spot_price_in_a_perfect_on_demand_row_is_held_skypilot_8125",
    ),
    "gpuhunt #183: a preview for nothing": (
        "refresh.test_cloud_bugs:test_gpuhunt_183_a_preview_for_nothing_is_no_price",
    ),
    "skypilot PR #9156: B200 for a cent": (
        "refresh.test_cloud_bugs:test_skypilot_9156_a_b200_for_a_cent_is_no_price",
        "refresh.test_cloud_bugs:test_skypilot_9156_a_cent_for_an_on_demand_gpu_keeps_the_last_price",
    ),
    "gpuhunt #195: a missing RAM SKU crashes all": (
        "refresh.test_cloud_bugs:test_gpuhunt_195_a_missing_ram_sku_costs_its_machines_and_no_more",
    ),
    "dstack #1355, Vantage, SkyPilot: local disks left out": (
        "refresh.test_cloud_bugs:test_dstack_1355_local_disks_are_part_of_the_price",
    ),
    "Vantage, opencost #2215: the GPU left out": (
        "refresh.test_cloud_bugs:test_vantage_and_opencost_2215_a_gpu_machine_without_its_gpu_has_no_price",
    ),
    "gpuhunt #176: A4 missing": (
        "refresh.test_cloud_bugs:test_gpuhunt_176_a4_is_priced_by_its_slices",
    ),
    "gpuhunt: a constant defined twice": (
        "refresh.test_known_bugs:test_no_constant_and_no_key_is_defined_twice_gpuhunt",
    ),
    "skypilot #1367: duplicate rows": (
        "refresh.test_cloud_bugs:test_skypilot_1367_a_second_sku_at_another_price_is_not_used",
        "providers.aws.test_prices:test_two_prices_of_one_machine_are_both_refused_skypilot_1367",
    ),
    "skypilot #5438: 429 for everybody": (
        "refresh.test_cloud_bugs:test_skypilot_5438_throttling_is_waited_out",
        "providers.aws.test_faults:test_a_public_file_is_requested_again_after_429_skypilot_5438",
    ),
    "SkyPilot: a crash between file and checksum stops all later refreshes": (
        "refresh.test_known_bugs:test_a_crash_anywhere_never_stops_later_refreshes_skypilot",
    ),
    "SkyPilot: the age of a stale file is reset": (
        "refresh.test_run:test_the_age_of_what_was_kept_is_never_reset",
    ),
    "gpuhunt: the least price over zones": (
        "providers.aws.test_spot:test_each_zone_keeps_its_price_not_the_least_of_the_region",
    ),
    "autoscaler #6536: a price list in the program rots": (
        "refresh.test_known_bugs:test_no_price_is_written_into_the_program_autoscaler_6536",
        "recommender.cli.test_refresh:test_shipped_prices_that_rot_say_so_autoscaler_6536",
    ),
    "opencost #3725: the on-demand price in place of a missing spot price": (
        "providers.aws.test_spot:test_a_missing_spot_price_is_no_offer_opencost_3725",
        "refresh.test_cloud_bugs:test_opencost_3725_a_missing_spot_price_is_not_the_on_demand_price",
    ),
    "Vantage PR #964: a continent's price wins over the region's": (
        "refresh.test_cloud_bugs:test_vantage_964_the_price_of_a_region_wins_over_that_of_a_continent",
    ),
    "wrong catalog 1: DWS as on-demand": (
        "refresh.test_cloud_bugs:test_wrong_catalog_1_the_discount_of_dws_is_not_the_list_price",
        "refresh.test_cloud_bugs:test_wrong_catalog_1_half_the_price_in_every_region_is_held_back",
        "refresh.test_cloud_bugs:test_wrong_catalog_1_spot_above_on_demand_is_refused",
        "providers.gcp.test_provider_mutations:test_a_price_of_the_dynamic_scheduler_alone_is_not_used",
    ),
    "wrong catalog 2: half of the cores, no disks": (
        "refresh.test_cloud_bugs:test_wrong_catalog_2_a3_has_208_cores_1872_gib_and_its_disks",
        "providers.gcp.test_compute:test_a_machine_that_most_regions_contradict_is_doubted_as_a_sum",
        "refresh.test_validate:test_a_sum_that_the_provider_contradicts_keeps_the_last_price",
    ),
    "wrong catalog 3: cores and memory only": (
        "refresh.test_cloud_bugs:test_wrong_catalog_3_cores_and_memory_alone_are_not_believed",
    ),
}
SOURCES = sorted(path for path in Path(recommender.catalogs.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("bug", BUGS)
def test_every_bug_of_others_has_a_test_that_exists(bug: str) -> None:
    for place in BUGS[bug]:
        module, _, name = place.partition(":")
        home = "tests" if module.startswith("recommender") else "tests.catalogs"
        assert callable(getattr(import_module(f"{home}.{module}"), name))


def _twice(tree: ast.Module) -> list[str]:
    """Names defined twice in a module, and keys that stand twice in a dictionary."""
    names = [
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    ]
    names += [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    found = [name for name, count in Counter(names).items() if count > 1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            keys = Counter(ast.dump(key) for key in node.keys if isinstance(key, ast.Constant))
            found += [key for key, count in keys.items() if count > 1]
    return found


def test_no_constant_and_no_key_is_defined_twice_gpuhunt() -> None:
    found = {path.name: _twice(ast.parse(path.read_text())) for path in SOURCES}
    assert {name: twice for name, twice in found.items() if twice} == {}
    assert _twice(ast.parse("A = 1\nA = 2\nB = {'v5e': 1, 'v5e': 2}")) == [
        "A", "Constant(value='v5e')"
    ]  # fmt: skip


def test_no_price_is_written_into_the_program_autoscaler_6536() -> None:
    """Prices are rows of tables with a date and a source; what is fixed are bounds."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.col_offset == 0:
                names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
                usd = [name for name in names if "usd" in name.lower() and "MAX" not in name]
                assert usd == [], path


@pytest.mark.parametrize("step", STEPS)
def test_a_crash_anywhere_never_stops_later_refreshes_skypilot(tmp_path: Path, step: str) -> None:
    """SkyPilot writes the checksum after the file: a crash between counts as a user's change."""
    world = make_published_world(tmp_path)

    def stop(at: str) -> None:
        if at == step:
            raise Stopped

    with pytest.raises(Stopped):
        refresh(world.order("azure", at=stop))
    world.next_day()
    report = refresh(world.order("azure"))
    found = newest_good(world.store)
    assert (report.outcome, found.name, found.skipped) == ("published", report.version, ())
    dates = {o.as_of for o in found.catalog.offers if o.provider == "azure"}
    assert dates == {"2026-11-23"}
