"""Confidential VMs: only where requested, slower, and started with their security type."""

import numpy as np
import pytest

from recommender.catalogs.registry import is_confidential
from recommender.job.jobfile import find_job
from recommender.performance.machines import machine_columns
from recommender.plan.limits import Choice
from recommender.report.launch import launch_line
from tests.recommender.planning import HOUR, ask, everything, machines_of
from tests.shipped import snapshot

JOB = "resnet50-imagenet"


@pytest.mark.parametrize("asked", [False, True])
def test_plans_rent_confidential_machines_if_and_only_if_requested(asked):
    answer = ask(snapshot(), find_job(JOB), Choice(confidential=asked), deadline_s=24 * HOUR)
    rented = [m for plan in everything(answer) for m in machines_of(plan)]
    assert rented
    assert {is_confidential(m.provider, m.instance_type) for m in rented} == {asked}
    assert {m.confidential for m in rented} == {asked}


def test_confidential_mode_costs_what_published_trainings_lost():
    """18 to 32 % of the throughput (Tinfoil, 2026-06-23), next to the same machine without it."""
    catalog = snapshot()
    types = [
        catalog.instance_types["azure", name]
        for name in ("Standard_NC40ads_H100_v5", "Standard_NCC40ads_H100_v5")
    ]
    found = machine_columns(find_job(JOB), types, catalog.gpus, catalog.achieved)
    plain, confidential = found.compute_per_s
    assert 0.18 < 1.0 - confidential / plain < 0.32
    assert found.speed_sigma[1] > found.speed_sigma[0]
    assert np.hypot(found.speed_sigma[0], 0.2) > found.speed_sigma[1]


def test_the_launch_line_sets_the_security_type():
    answer = ask(snapshot(), find_job(JOB), Choice(confidential=True), deadline_s=24 * HOUR)
    for plan in answer.plans:
        words = str(launch_line(plan, 1)).split()
        if not plan.mixed:
            assert words[words.index("--security-type") + 1] == "ConfidentialVM"
            assert words[words.index("--size") + 1] == plan.machines[0].instance_type
    plain = ask(snapshot(), find_job(JOB), deadline_s=24 * HOUR).plans[0]
    assert "--security-type" not in str(launch_line(plain, 1))


@pytest.mark.parametrize(
    ("provider", "name", "confidential"),
    [
        ("azure", "Standard_NCC40ads_H100_v5", True),
        ("azure", "Standard_DC4as_v5", True),
        ("azure", "Standard_EC8ads_v5", True),
        ("azure", "Standard_NC40ads_H100_v5", False),
        ("azure", "Standard_E4s_v5", False),
        ("aws", "p5.48xlarge", False),
        ("own", "Standard_NCC-like", False),
    ],
)
def test_confidential_series_are_known_by_their_names(provider, name, confidential):
    assert is_confidential(provider, name) == confidential
