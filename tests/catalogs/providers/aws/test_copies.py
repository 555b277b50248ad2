"""A public file that has not changed is not sent again; a changed or damaged one is."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from recommender.catalogs.errors import ProviderError
from recommender.catalogs.providers.contract import Fetched
from recommender.catalogs.providers.http import Copies
from tests.catalogs.providers.aws.cloud import REGIONS, Cloud, dimension_of
from tests.catalogs.providers.aws.conftest import Read

FILES = len(REGIONS) + 2  # price lists, their index, the spot advisor


def prices(found: Fetched) -> dict[tuple[str, str], float]:
    """On-demand prices by machine and region."""
    return {(o.instance_type, o.region): o.usd_per_hour for o in found.offers}


def test_files_that_have_not_changed_are_not_sent_again(
    cloud: Cloud, read: Read, nobody: None, tmp_path: Path
) -> None:
    first = read(copies=tmp_path)
    second = read(copies=tmp_path)
    assert cloud.seen["304"] == FILES
    assert (prices(second), second.offers) == (prices(first), first.offers)
    assert first.counters.bytes > 10_000
    assert second.counters.bytes == 0
    assert {o.as_of for o in second.offers} == {"2026-11-21"}  # the server has just vouched for it


def test_a_changed_price_is_read_again(
    cloud: Cloud, read: Read, nobody: None, tmp_path: Path
) -> None:
    read(copies=tmp_path)
    dimension_of(cloud.item("p5.48xlarge", "us-east-1"))["pricePerUnit"] = {"USD": "50.0000000000"}
    found = read(copies=tmp_path)
    assert prices(found)["p5.48xlarge", "us-east-1"] == 50.0
    assert cloud.seen["304"] == FILES - 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-30],
        lambda content: b"{}\n" + content,
        lambda content: content.replace(b"sha256", b"sha255"),
        lambda content: content.partition(b"\n")[0] + b"\n" + gzip.compress(b"another price list"),
        lambda content: b"",
    ],
)
def test_a_damaged_copy_is_never_read(
    cloud: Cloud, read: Read, nobody: None, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    first = read(copies=tmp_path)
    for path in tmp_path.iterdir():
        path.write_bytes(damage(path.read_bytes()))
    second = read(copies=tmp_path)
    assert second.offers == first.offers
    assert cloud.seen["304"] == 0


def test_a_file_that_was_cut_leaves_no_copy(
    cloud: Cloud, read: Read, nobody: None, tmp_path: Path
) -> None:
    cloud.trouble["GET", "/spot-advisor-data.json"] = ["truncate"]
    cloud.trouble["GET", "/offers/v1.0/aws/AmazonEC2/20261120/us-east-1/index.csv"] = ["truncate"]
    read(copies=tmp_path)
    kept = {path.name for path in tmp_path.iterdir()}
    assert kept == {"aws-price-lists", "aws-prices-eu-west-1", "aws-prices-us-west-2"}


def test_without_validators_or_without_a_folder_everything_is_sent(
    cloud: Cloud, read: Read, nobody: None, tmp_path: Path
) -> None:
    cloud.tagged = False
    read(copies=tmp_path)
    assert list(tmp_path.iterdir()) == []
    cloud.tagged = True
    read()
    assert list(tmp_path.iterdir()) == []
    assert cloud.seen["304"] == 0


def test_a_server_that_answers_304_to_a_plain_question_is_an_error(
    cloud: Cloud, read: Read, nobody: None, tmp_path: Path
) -> None:
    cloud.trouble["GET", ""] = [304] * 99
    with pytest.raises(ProviderError, match="HTTP 304"):
        read(copies=tmp_path)


def test_a_copy_of_another_address_is_none(tmp_path: Path) -> None:
    copies = Copies(tmp_path)
    copies.save("list", "https://one", {"ETag": '"1"'}, b"content")
    found = copies.find("list", "https://one")
    assert found is not None
    assert (found.content, found.headers) == (b"content", {"If-None-Match": '"1"'})
    assert copies.find("list", "https://other") is None


def test_a_full_disk_costs_the_copy_and_not_the_answer(
    cloud: Cloud, read: Read, nobody: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("recommender.catalogs.files.replace_file", full)
    assert prices(read(copies=tmp_path))["p5.48xlarge", "us-east-1"] == 55.04
