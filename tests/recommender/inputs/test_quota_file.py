"""Quotas from files: typed rows, or every mistake with its line."""

import math
from pathlib import Path

import pytest

from recommender.errors import UsageError
from recommender.inputs.quota_file import read_quotas
from recommender.plan.limits import QuotaLimit


def test_quotas_from_csv(tmp_path: Path) -> None:
    limits = _quotas(
        tmp_path,
        "provider,family,market,region,unit,amount\n"
        'aws,"All P5 Spot Instance Requests",spot,us-east-2,vcpu,192\n'
        "gcp,NVIDIA_H100_GPUS,,,,8\n"
        "azure,standardNDSH100v5Family,on-demand,*,vCPUs,0\n",
    )
    assert limits == (
        QuotaLimit("aws", "All P5 Spot Instance Requests", "spot", "us-east-2", "vcpu", 192),
        QuotaLimit("gcp", "NVIDIA_H100_GPUS", "any", "", "gpu", 8),
        QuotaLimit("azure", "standardNDSH100v5Family", "on_demand", "", "vcpu", 0),
    )


@pytest.mark.parametrize("word", ["unlimited", "Unlimited"])
def test_others_and_families_may_be_unlimited(tmp_path: Path, word: str) -> None:
    rows = f"aws,others,{word}\naws,P5,{word}\ngcp,Others,0\n"
    assert _quotas(tmp_path, "provider,family,amount\n" + rows) == (
        QuotaLimit("aws", "others", "any", "", "vcpu", math.inf),
        QuotaLimit("aws", "P5", "any", "", "vcpu", math.inf),
        QuotaLimit("gcp", "Others", "any", "", "gpu", 0.0),
    )
    text = f"- {{provider: aws, family: others, amount: {word}}}\n"
    assert _quotas(tmp_path, text, "q.yaml")[0].amount == math.inf


@pytest.mark.parametrize("head", ["", "quotas:\n"])
def test_quotas_from_yaml(tmp_path: Path, head: str) -> None:
    text = head + "- {provider: aws, quota: P5, market: spot, limit: 192}\n"
    assert _quotas(tmp_path, text, "q.yaml") == (QuotaLimit("aws", "P5", "spot", "", "vcpu", 192),)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("provider,family\naws,P5\n", "q.csv, line 1: column amount is missing"),
        ("provider,famly,amount\n", "unknown column 'famly'; did you mean family?"),
        ("provider,family,amount,amount\n", "a column occurs twice"),
        ("provider,family,limit,amount\n", "a column occurs twice"),
        ("provider,family,amount\n", "q.csv: holds no rows"),
        ("", "column provider is missing"),
        ("provider,family,amount\naws,P5,x\n", "q.csv, line 2, column amount: x is not a number"),
        ("provider,family,amount\naws,P5,-3\n", "line 2, column amount: -3 is negative"),
        ("provider,family,amount\naws,P5,=1+1\n", "line 2, column amount: '=1+1' looks like"),
        ("provider,family,amount\naws,@SUM(A1),3\n", "column family: '@SUM(A1)' looks like"),
        ("provider,family,amount\naws,P\x1b[31m5,3\n", "column family:"),
        ("provider,family,amount\naws,,3\n", "line 2, column family: is empty"),
        ("provider,family,amount\naws,others,64\n", "64 of all others; write unlimited or 0"),
        ("provider,family,amount\naws,P5,nan\n", "nan is not a finite number"),
        ("provider,family,amount\nawz,P5,3\n", "unknown value 'awz'; did you mean aws?"),
        ("provider,family,amount\naws,P5,3,4\n", "line 2: 4 cells under 3 columns"),
        ('provider,family,amount\naws,"P5,3\n', "not CSV"),
    ],
)
def test_bad_quota_files(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(UsageError) as error:
        _quotas(tmp_path, text)
    assert reason in str(error.value)
    assert "\x1b" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: 1\n", "not a list of quotas"),
        ("- 5\n", "entry 1: not a quota"),
        ("- {provider: aws, famly: x, amount: 1}\n", "did you mean family?"),
        ("- {provider: aws, family: x}\n", "entry 1, column amount: is missing"),
        ("- {provider: aws, family: [x], amount: 1}\n", "must be one value"),
    ],
)
def test_bad_quota_yaml(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(UsageError) as error:
        _quotas(tmp_path, text, "q.yml")
    assert reason in str(error.value)


def test_all_mistakes_are_named_with_their_lines(tmp_path: Path) -> None:
    rows = "aws,P5,x\naws,P5,3\ngpc,P5,3\n"
    with pytest.raises(UsageError) as error:
        _quotas(tmp_path, "provider,family,amount\n" + rows)
    assert [p.split(",")[1].strip() for p in error.value.problems] == ["line 2", "line 4"]
    with pytest.raises(UsageError) as error:
        _quotas(tmp_path, "provider,family,amount\n" + "aws,P5,x\n" * 50)
    assert len(error.value.problems) == 21
    assert error.value.problems[-1] == "and 30 more"


def test_every_wrong_cell_of_a_row_is_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        _quotas(tmp_path, "provider,family,amount,market,unit\naws,,abc,spott,core\nawz,P,,,\n")
    columns = [p.split("column ")[1].split()[0].strip(":") for p in error.value.problems]
    assert columns == ["family", "market", "unit", "amount", "provider", "amount"]


def _quotas(folder: Path, text: str, name: str = "q.csv") -> tuple[QuotaLimit, ...]:
    (folder / name).write_text(text)
    return read_quotas(folder / name)
