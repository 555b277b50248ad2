"""The contract of an offer: every term that a plan counts with, or that its user has to know."""

from recommender.catalogs.countries import countries_of
from recommender.catalogs.registry import CLOUDS
from recommender.catalogs.schema import ONE_HOST, Offer
from recommender.market.offer_facts import Facts
from recommender.plan.plan import Terms


def terms_of(facts: Facts, offer: Offer) -> Terms:
    """The terms of an offer: its own where it states them, else those of its provider."""
    t = facts.catalog.type_of(offer)
    rule = facts.terms(t, offer.market)
    cloud = CLOUDS.get(t.provider)

    def fee(stated: float | None, item: str) -> float | None:
        return facts.known_fee(t.provider, item) if stated is None else stated

    return Terms(
        minimum_s=rule.minimum_s,
        step_s=rule.step_s,
        maximum_s=rule.maximum_s,
        notice_s=rule.notice_s,
        upfront=rule.upfront,
        egress_usd_per_gb=fee(rule.egress_usd_per_gb, "egress_internet_gb"),
        disk_usd_per_gib_month=fee(rule.disk_usd_per_gib_month, "boot_disk_gib_month"),
        currency=rule.currency,
        countries=rule.countries or tuple(sorted(countries_of(offer.provider, offer.region))),
        one_host=t.network_basis == ONE_HOST,
        rdma=t.network_kind == "rdma" and bool(t.network_gbit_per_s),
        new_account=rule.new_account,
        launcher=rule.launcher or (cloud.sky_name if cloud else ""),
        rented_as=rule.rented_as or (offer.instance_type if cloud else ""),
    )
