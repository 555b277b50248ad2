"""Sentences under the plans of an answer."""

from dataclasses import replace

from recommender.plan.plan import Plan, Spread
from recommender.report.advice import save_sentence, time_sentence
from tests.recommender.answers import GCP

HOUR = 3600.0


def with_time(made: Plan, time: Spread) -> Plan:
    return replace(made, estimate=replace(made.estimate, time=time))


def test_the_time_is_the_median_and_what_one_run_in_twenty_exceeds() -> None:
    times = Spread(mean=90 * HOUR, p05=HOUR, p50=2 * HOUR, p95=15 * HOUR, typical=4 * HOUR)
    said = time_sentence(with_time(GCP, times))
    assert said.startswith("2 h, 1 run in 20 over 15 h; a usual run: ")
    assert "90" not in said.partition(";")[0]


def test_intervals_that_are_as_good_are_named_where_there_are_others() -> None:
    saving = replace(GCP.checkpointing, interval_s=600.0, as_good_s=(300.0, 1200.0))
    said = save_sentence(replace(GCP, checkpointing=saving))
    assert said.startswith(
        "every 10 min to the bucket, 5 min to 20 min cost less than 0.1 % more (takes"
    )
    alone = replace(saving, as_good_s=(600.0, 600.0))
    assert "cost less than" not in save_sentence(replace(GCP, checkpointing=alone))
