"""A problem derived from another equals one stated directly, and shares its data."""

from dataclasses import fields, replace

import numpy as np
import pytest

from recommender.catalogs.catalog import Catalog
from recommender.market.sites import SitePools
from recommender.plan.limits import Choice, Limits, Progress, QuotaLimit
from recommender.planner.problem import Problem, planning_problem
from tests.recommender.planning import DAY, HOUR, NOW, job, small

FEW = (QuotaLimit("aws", "g", "any", "", "vcpu", 12.0),)
OTHER_LIMITS = (
    replace(DAY, deadline_s=12 * HOUR),
    replace(DAY, hourly_usd=2.0),
    replace(DAY, max_machines=3),
)
OTHER_CHOICES = (
    Choice(mix="yes"),
    Choice(quotas=FEW, quotas_known=True),
    Choice(market="on_demand"),
    Choice(providers=("gcp",)),
)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return small()


def stated(catalog: Catalog, limits: Limits = DAY, choice: Choice = Choice()) -> Problem:  # noqa: B008
    return planning_problem(job(), limits, choice, catalog, Progress(), NOW, 7)


def columns_of(pools: SitePools) -> list[list[object]]:
    """Everything that sites hold about their entries and quotas."""
    return [
        [getattr(site.entries, f.name).tolist() for f in fields(site.entries)]
        + [site.quota_use.tolist(), site.quota.tolist(), site.fallbacks.usd_per_hour.tolist()]
        for site in pools.sites
    ]


def assert_same(derived: Problem, fresh: Problem) -> None:
    assert derived.limits == fresh.limits
    assert derived.choice == fresh.choice
    assert derived.rows == fresh.rows
    assert np.array_equal(derived.step_s, fresh.step_s)
    assert derived.single_type_sites.pools == fresh.single_type_sites.pools
    assert columns_of(derived.single_type_sites) == columns_of(fresh.single_type_sites)


@pytest.mark.parametrize("limits", OTHER_LIMITS)
def test_under_other_limits_a_problem_is_the_one_that_is_stated_with_them(
    catalog: Catalog, limits: Limits
) -> None:
    first = stated(catalog)
    assert first.single_type_sites.sites  # made before, so that it could be carried over
    assert_same(first.under(limits), stated(catalog, limits))


@pytest.mark.parametrize("choice", OTHER_CHOICES)
def test_among_other_offers_a_problem_is_the_one_that_is_stated_with_them(
    catalog: Catalog, choice: Choice
) -> None:
    first = stated(catalog)
    assert first.single_type_sites.sites
    assert_same(first.among(choice), stated(catalog, DAY, choice))


def test_what_the_limits_do_not_decide_is_made_once(catalog: Catalog) -> None:
    first = stated(catalog)
    assert first.under(replace(DAY, deadline_s=HOUR)).site_space is first.site_space
    assert first.under(replace(DAY, hourly_usd=2.0)).offers is first.offers
    assert first.under(replace(DAY, max_machines=3)).offers is not first.offers


def test_quotas_of_clouds_leave_the_offers_and_those_of_own_machines_do_not(
    catalog: Catalog,
) -> None:
    first = stated(catalog)
    assert first.among(Choice(quotas=FEW)).offers is first.offers
    own = (QuotaLimit("own", "box", "any", "", "machine", 2.0),)
    assert first.among(Choice(quotas=own)).offers is not first.offers


def test_another_job_is_planned_on_the_same_offers_with_its_own_speeds(catalog: Catalog) -> None:
    first = stated(catalog)
    larger = first.with_job(replace(first.job, global_batch=2 * first.job.global_batch))
    assert larger.rows == first.rows
    trains = np.isfinite(first.step_s)
    assert (larger.step_s[trains] > first.step_s[trains]).all()
