"""What a plan needs of an account's quotas is all that its machines take, the fallback's too."""

from collections import Counter

import pytest

from recommender.job.jobfile import find_job
from recommender.plan.answer import Answer
from recommender.plan.limits import OTHERS, Choice, Limits, QuotaLimit
from recommender.plan.plan import Machines, Site
from tests.recommender.planning import HOUR, NOW, recommend
from tests.shipped import snapshot
from tests.speed.optimiser import quotas_of

CATALOG = snapshot()
UNNAMED = {(t.provider, t.quota_family) for t in CATALOG.instance_types.values()} - {
    (q.provider, q.quota_family) for q in CATALOG.quotas
}


def asked(choice: Choice, limits: Limits = Limits(deadline_s=12 * HOUR)) -> Answer:  # noqa: B008
    """Plans of a job whose deadline asks for a fallback."""
    job = find_job("resnet152-imagenet")
    return recommend(job, limits, choice, catalog=CATALOG, now=NOW)


COUNTED = {"flex_start": "spot", "reserved_block": "none"}  # as their clouds' pages say


def used(machines: tuple[Machines, ...], sites: tuple[Site, ...]) -> Counter[tuple[str, str]]:
    """What machines take of each quota in each region of their list, counted by hand."""
    markets = {m.market for m in machines}
    listed = "spot" if "spot" in markets else "on_demand"
    found: Counter[tuple[str, str]] = Counter()
    for m in machines:
        t = CATALOG.instance_types[m.provider, m.instance_type]
        market = COUNTED.get(m.market, m.market)
        if market == "none":
            continue
        (quota,) = (
            q for q in CATALOG.quotas
            if (q.provider, q.quota_family, q.market) == (m.provider, t.quota_family, market)
        )  # fmt: skip
        places = {s.region for s in sites} if sites and m.market == listed else {m.region}
        for region in places:
            found[quota.name, region] += m.count * (t.vcpus if quota.unit == "vcpu" else t.gpus)
    return found


@pytest.mark.parametrize(
    "choice",
    [Choice(providers=("aws",)), Choice(providers=("gcp",)), Choice(mix="yes", providers=("aws",))],
    ids=["aws", "gcp", "mixes"],
)
def test_needs_are_what_the_machines_of_the_cluster_and_of_its_fallback_take(
    choice: Choice,
) -> None:
    for plan in asked(choice).plans:
        now = used(plan.machines, plan.sites) + used(plan.checkpointing.machines, ())
        late = plan.fallback
        fallback = used(late.machines, late.sites) if late else Counter()
        beyond = {key: amount for key, amount in fallback.items() if amount > now[key]}
        reported = {(n.name, n.region): n.amount for n in plan.needs if not n.fallback}
        told_late = {(n.name, n.region): n.amount for n in plan.needs if n.fallback}
        assert (reported, told_late) == (dict(now), beyond)


def test_spot_is_not_failed_over_to_where_its_quota_is_0() -> None:
    """Only one region is listed, and not the cheapest: spot stays in it."""
    unhurried = Limits()
    free = asked(Choice(providers=("aws",), market="spot"), unhurried).plans[0]
    regions = sorted({o.region for o in CATALOG.offers if o.provider == "aws"})
    home = next(
        r for r in regions if r.startswith("us-") and r not in {s.region for s in free.sites}
    )
    quotas = (QuotaLimit("aws", "g", "spot", home, "vcpu", 200.0),)
    chosen = Choice(providers=("aws",), market="spot", quotas=quotas, quotas_known=True)
    plans = asked(chosen, unhurried).plans
    assert plans
    assert {s.region for plan in plans for s in plan.sites} == {home}


def test_a_fallback_stays_where_there_is_quota_for_it() -> None:
    quotas = (
        QuotaLimit("aws", OTHERS, "spot", "", "vcpu", float("inf")),
        QuotaLimit("aws", "g", "on_demand", "us-west-2", "vcpu", 300.0),
    )
    found = asked(Choice(providers=("aws",), quotas=quotas, quotas_known=True)).plans
    places = {
        (m.region, m.market)
        for plan in found
        for m in (*(plan.fallback.machines if plan.fallback else ()), *plan.machines)
        if m.market == "on_demand"
    }
    assert places == {("us-west-2", "on_demand")}


def test_quotas_of_clouds_that_the_file_does_not_name_are_reported_to_be_unchecked() -> None:
    def said(*quotas: QuotaLimit, provider: str = "aws") -> str:
        some_types = ("g5.12xlarge", "g2-standard-48")
        known = bool(quotas)
        choice = Choice(
            providers=(provider,), instances=some_types, quotas=quotas, quotas_known=known
        )
        return "; ".join(a for a in asked(choice, Limits()).assumptions if "quota" in a)

    some = QuotaLimit("aws", "g", "any", "", "vcpu", 500.0)
    others = QuotaLimit("aws", OTHERS, "any", "", "vcpu", float("inf"))
    assert said() == "quotas not checked (--quota)"
    assert said(some) == ""
    assert said(some, provider="gcp") == "quotas of GCP not checked: the file of --quota has none"
    assert said(some, others).startswith("quotas of AWS beyond those given not checked")


def test_no_mix_needs_more_of_a_quota_than_its_families_were_given() -> None:
    """Azure counts all spot machines in one quota, AWS all P instances on demand."""
    choice = Choice(quotas=quotas_of(CATALOG, 96.0), quotas_known=True)
    job, limits = find_job("gpt2-xl"), Limits(deadline_s=24 * HOUR)
    plans = recommend(job, limits, choice, catalog=CATALOG, now=NOW).plans
    assert any(len(plan.machines) > 2 for plan in plans)
    for need in (need for plan in plans for need in plan.needs):
        assert need.yours is None or need.amount <= need.yours
