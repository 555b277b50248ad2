"""Parsers and formatters of time, money, sizes and machines as people type them.

Every parser takes the text and the name it was given under (a flag or a key of a job file), and
raises `UsageError` with what failed, the value, why, and what to write instead. Every formatter is
exact: `parse(format(x)) == x`. Internal units: seconds, bytes, USD, shares.
"""

from recommender.inputs.units.machines import (
    PROVIDERS,
    Comparison,
    DataAt,
    format_comparison,
    format_gpu,
    looks_like_instance,
    parse_comparison,
    parse_country,
    parse_data_at,
    parse_discount,
    parse_gpu,
)
from recommender.inputs.units.moments import deadline_moment, moment_in_words, parse_deadline
from recommender.inputs.units.quantities import (
    count_of,
    format_bytes,
    format_count,
    format_share,
    parse_bytes,
    parse_count,
    parse_currency,
    parse_hourly,
    parse_money,
    parse_share,
    parse_whole,
    whole_of,
)
from recommender.inputs.units.times import (
    brief_duration,
    duration_of,
    format_duration,
    format_instant,
    parse_duration,
    parse_instant,
)

__all__ = [
    "PROVIDERS",
    "Comparison",
    "DataAt",
    "brief_duration",
    "count_of",
    "deadline_moment",
    "duration_of",
    "format_bytes",
    "format_comparison",
    "format_count",
    "format_duration",
    "format_gpu",
    "format_instant",
    "format_share",
    "looks_like_instance",
    "moment_in_words",
    "parse_bytes",
    "parse_country",
    "parse_currency",
    "parse_comparison",
    "parse_count",
    "parse_data_at",
    "parse_deadline",
    "parse_discount",
    "parse_duration",
    "parse_gpu",
    "parse_hourly",
    "parse_instant",
    "parse_money",
    "parse_share",
    "parse_whole",
    "whole_of",
]
