"""Memory as counted against readings that others publish."""

import numpy as np
import pytest

from recommender.performance.machines import USABLE
from recommender.performance.memory import largest_micro_batch
from tests.research.measured_memory import OVER, PAGE, ROWS, needs_of, off, page, room

LEAST, MOST = -0.10, 0.25
T4_BYTES = 14_912 * 2**20


def named(row: dict[str, str]) -> str:
    return f"{row['model']} {row['method']} {row['batch']} {row['tokens']} {row['attention']}"


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_no_reading_is_a_tenth_more_than_counted(row: dict[str, str]) -> None:
    assert off(row) > LEAST
    assert set(row["cause"].split()) <= set(OVER)
    assert (off(row) > MOST) == bool(row["cause"])  # and none that is mended has a cause any more


def test_what_a_plan_leaves_free_covers_nearly_all_that_is_counted_too_little() -> None:
    assert sum(room(row) >= 1.0 for row in ROWS) >= 0.95 * len(ROWS)


@pytest.mark.parametrize("held_out", ["0", "1"])
def test_nearly_all_are_within_a_tenth(held_out: str) -> None:
    """Of the software that is counted; nothing was derived from the readings held out."""
    asked = [row for row in ROWS if row["held_out"] == held_out and row["software"] != "GPTQ"]
    assert len(asked) >= 20
    assert sum(abs(off(row)) <= 0.10 for row in asked) >= 0.85 * len(asked)


# The largest batch that ran on a T4 and the next, where that one ran out of memory: QLoRA of rank
# 16, 1,024 tokens, layers recomputed (FitCheck, data/measurements/validation, 2026-09-21).
@pytest.mark.parametrize(
    ("model", "ran", "next_ran"),
    [
        ("Qwen/Qwen2.5-1.5B", 4, False),
        ("Qwen/Qwen2.5-7B-Instruct", 1, False),
        ("meta-llama/Llama-3.2-1B", 5, False),
        ("meta-llama/Llama-3.2-3B", 4, False),
        ("mistralai/Mistral-7B-v0.3", 7, True),
        ("deepseek-ai/deepseek-coder-1.3b", 15, True),
    ],
)
def test_the_batch_of_a_plan_is_the_largest_that_ran_or_one_less(
    model: str, ran: int, next_ran: bool
) -> None:
    row = next(
        row
        for row in ROWS
        if row["model"] == model and row["held_out"] == "1" and row["attention"] == "fused"
    )
    assert (row["rank"], row["tokens"]) == ("16", "1024")
    needs = needs_of(row)
    memory, held = np.array([USABLE * T4_BYTES]), np.array([[needs.states]])
    batch = largest_micro_batch(needs, memory, held, np.array([True])).item()
    assert ran - 1 <= batch <= (np.inf if next_ran else ran)


def test_the_page_holds_the_table_of_today() -> None:
    assert PAGE.read_text("utf-8") == page()
