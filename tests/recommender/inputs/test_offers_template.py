"""The offers file to start from can be read as it stands, and the documentation has its columns."""

from datetime import date
from pathlib import Path

from recommender.inputs.offers_file import COLUMNS, EXAMPLES, offers_template, read_offers
from tests.shipped import snapshot

CATALOG = snapshot()
DOCS = Path(__file__).parents[3] / "docs" / "own-machines.md"


def test_the_template_can_be_read_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "offers.csv"
    path.write_text(offers_template(CATALOG.gpus), encoding="utf-8")
    memory = {name: gpu.memory_mib for name, gpu in CATALOG.gpus.items()}
    own = read_offers(path, memory, CATALOG.instance_types.values(), date(2026, 11, 20))
    assert [(m.instance_type, m.gpu, m.gpus) for m in own.hardware.values()] == [
        ("lab", "H100", 8),
        ("workstation", "L40S", 4),
    ]
    assert [limit.amount for limit in own.limits] == [float(row["count"]) for row in EXAMPLES]


def test_every_column_and_every_gpu_is_explained() -> None:
    text = offers_template(CATALOG.gpus)
    assert all(f"{name} " in text and meaning in text for name, meaning in COLUMNS.items())
    assert all(gpu in text for gpu in CATALOG.gpus)
    assert max(map(len, text.splitlines()[:-3])) <= 100


def test_the_documentation_has_the_same_columns() -> None:
    rows = [f"| `{name}` | {meaning} |" for name, meaning in COLUMNS.items()]
    page = DOCS.read_text("utf-8").splitlines()
    assert [line for line in page if line.startswith("| `")] == rows


def test_the_example_of_the_documentation_can_be_read(tmp_path: Path) -> None:
    example = DOCS.read_text("utf-8").partition("```csv\n")[2].partition("```")[0]
    (tmp_path / "o.csv").write_text(example, encoding="utf-8")
    memory = {name: gpu.memory_mib for name, gpu in CATALOG.gpus.items()}
    own = read_offers(
        tmp_path / "o.csv", memory, CATALOG.instance_types.values(), date(2026, 11, 20)
    )
    assert list(own.hardware) == ["lab", "lambda"]
