"""Parsers and formatters of time, money, sizes and machines as people type them.

Every parser takes the text and the name it was given under (a flag or a key of a job file), and
raises `UsageError` with what failed, the value, why, and what to write instead. Every formatter is
exact: `parse(format(x)) == x`. Internal units: seconds, bytes, USD, shares.
"""

from recommender.inputs.units.machines import PROVIDERS as PROVIDERS
from recommender.inputs.units.machines import Comparison as Comparison
from recommender.inputs.units.machines import DataAt as DataAt
from recommender.inputs.units.machines import format_comparison as format_comparison
from recommender.inputs.units.machines import format_gpu as format_gpu
from recommender.inputs.units.machines import looks_like_instance as looks_like_instance
from recommender.inputs.units.machines import parse_comparison as parse_comparison
from recommender.inputs.units.machines import parse_country as parse_country
from recommender.inputs.units.machines import parse_data_at as parse_data_at
from recommender.inputs.units.machines import parse_discount as parse_discount
from recommender.inputs.units.machines import parse_gpu as parse_gpu
from recommender.inputs.units.moments import deadline_moment as deadline_moment
from recommender.inputs.units.moments import moment_in_words as moment_in_words
from recommender.inputs.units.moments import parse_deadline as parse_deadline
from recommender.inputs.units.quantities import count_of as count_of
from recommender.inputs.units.quantities import format_bytes as format_bytes
from recommender.inputs.units.quantities import format_count as format_count
from recommender.inputs.units.quantities import format_share as format_share
from recommender.inputs.units.quantities import parse_bytes as parse_bytes
from recommender.inputs.units.quantities import parse_count as parse_count
from recommender.inputs.units.quantities import parse_currency as parse_currency
from recommender.inputs.units.quantities import parse_hourly as parse_hourly
from recommender.inputs.units.quantities import parse_money as parse_money
from recommender.inputs.units.quantities import parse_share as parse_share
from recommender.inputs.units.quantities import parse_whole as parse_whole
from recommender.inputs.units.quantities import whole_of as whole_of
from recommender.inputs.units.times import brief_duration as brief_duration
from recommender.inputs.units.times import duration_of as duration_of
from recommender.inputs.units.times import format_duration as format_duration
from recommender.inputs.units.times import format_instant as format_instant
from recommender.inputs.units.times import parse_duration as parse_duration
from recommender.inputs.units.times import parse_instant as parse_instant
