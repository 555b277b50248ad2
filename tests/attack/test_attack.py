"""Files, archives, flags and addresses of an enemy: one clear refusal each, soon, in little memory.

`make attack` tries 30,900; a sample runs with the other tests. Times are those of the processor.
"""

import gzip
import hashlib
import io
import json
import resource
import shutil
import string
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from datetime import date
from pathlib import Path
from random import Random

import pytest

from recommender.benchmarks.record import dumps, parse_record
from recommender.catalogs.archive import read_files
from recommender.catalogs.errors import RecommendError
from recommender.catalogs.load import SNAPSHOT, load, load_snapshot
from recommender.catalogs.remote import load_remote
from recommender.catalogs.validation import CANARIES, read_canaries
from recommender.cli import main
from recommender.export.answer_file import read_answer
from recommender.inputs import settings
from recommender.inputs.offers_file import read_offers
from recommender.inputs.quota_file import read_quotas
from recommender.inputs.training_configs.read import read_training_config
from recommender.job.jobfile import find_job, template
from recommender.job.timings import read_runs
from recommender.networks.find import find_network
from recommender.traces.law_store import stored
from recommender.traces.read import read_traces
from recommender.train.progress_file import read_progress
from tests.attack import seeds
from tests.attack.mutations import TOKENS, mutated
from tests.attack.whole_commands import MAX_KIB, READING, called, read_whole, tried
from tests.benchmarks.machines import record
from tests.catalogs import small

SAMPLE, SOME, WHOLE = 25, 3, 1_200
PRINTED = Path(__file__).parents[1] / "golden_answers" / "printed"
TRAINERS = Path(__file__).parents[1] / "recommender" / "inputs" / "training_configs"
MACHINES = tuple(load_snapshot().instance_types.values())
TODAY = date(2026, 11, 23)
MEMORY = {"T4": 16384, "H100": 81559}

Read = Callable[[Path], object]


def tarred(content: bytes, packed: str) -> bytes:
    """A tar archive of a manifest."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=f"w:{packed}") as archive:
        entry = tarfile.TarInfo("c/manifest.json")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def zipped(content: bytes) -> bytes:
    """A zip archive of a manifest."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("c/manifest.json", content)
    return out.getvalue()


def read_table(path: Path) -> object:
    """A catalog whose table is this file, and whose manifest says so."""
    folder = small.written(path.parent / "catalog")
    content = gzip.compress(path.read_bytes(), mtime=0)
    (folder / "offers.csv.gz").write_bytes(content)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["tables"]["offers"]["sha256"] = hashlib.sha256(content).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return load(folder)


def read_manifest(path: Path) -> object:
    """A catalog whose manifest is this file."""
    folder = path.parent / "catalog"
    if not folder.exists():
        shutil.copytree(SNAPSHOT, folder)
    shutil.copy(path, folder / "manifest.json")
    return load(folder)


def table() -> bytes:
    """The offers of a small catalog."""
    rows = "provider,instance_type,region,zone,market,usd_per_hour,obtainable,kind,flag,uncertainty"
    rows += ",interruption_range,source,as_of\n"
    rows += "aws,g4dn.xlarge,us-east-1,,on_demand,0.526,open,quote,,0,,1,2026-08-21\n"
    rows += "aws,g4dn.xlarge,us-east-1,use1-az1,spot,0.2,open,quote,,0,2,1,2026-08-21\n"
    return rows.encode()


# name: the file's ending, a valid one, what reads it
KINDS: dict[str, tuple[str, bytes, Read]] = {
    "job": (".yaml", template("resnet50-imagenet").encode(), lambda p: find_job(str(p))),
    "offers": (".csv", seeds.OFFERS.encode(), lambda p: read_offers(p, MEMORY, MACHINES, TODAY)),
    "quotas": (".csv", seeds.QUOTAS.encode(), read_quotas),
    "quotas in YAML": (".yaml", seeds.QUOTAS_YAML.encode(), read_quotas),
    "settings": (".toml", seeds.SETTINGS.encode(), lambda p: settings.load({}, p.parent, {}, p)),
    "trace": (".csv", seeds.TRACE.encode(), read_traces),
    "AWS prices": (".json", seeds.AWS_PRICES.encode(), read_traces),
    "spot laws": (".json", seeds.LAWS.encode(), stored),
    "benchmark record": (".json", dumps(record()).encode(),
                         lambda p: parse_record(p.read_text("utf-8", "replace"), p.name)),
    "catalog table": (".csv", table(), read_table),
    "catalog manifest": (".json", (SNAPSHOT / "manifest.json").read_bytes(), read_manifest),
    "timings": (".csv", seeds.TIMINGS.encode(), lambda p: read_runs(p, MACHINES, 256)),
    "answer": (".json", (PRINTED / "infeasible-deadline.json").read_bytes(), read_answer),
    "progress": (".json", seeds.PROGRESS.encode(), read_progress),
    "network": (".json", seeds.NETWORK.encode(), lambda p: find_network(str(p))),
    "training file": (".yaml", (TRAINERS / "axolotl_qlora.yaml").read_bytes(),
                      read_training_config),
    "training file in TOML": (".toml", (TRAINERS / "torchtitan.toml").read_bytes(),
                              read_training_config),
    "canaries": (".csv", CANARIES.read_bytes(), read_canaries),
    "tar.gz": (".tar.gz", tarred(b"{}" * 500, "gz"), read_files),
    "tar.xz": (".tar.xz", tarred(b"{}" * 500, "xz"), read_files),
    "zip": (".zip", zipped(b"{}" * 500), read_files),
}  # fmt: skip


def attacked(name: str, folder: Path, tries: int) -> list[str]:
    """Every file of a kind that was neither read nor refused well."""
    ending, valid, read = KINDS[name]
    draw, path, bad = Random(f"{name} 20261123"), folder / f"file{ending}", []
    path.write_bytes(valid)
    read(path)  # it is valid: else the same refusal would be met each time
    for number in range(tries):
        path.write_bytes(mutated(valid, draw))
        if problem := tried(lambda: read(path)):
            bad.append(f"{name} {number}: {problem}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return bad + ([f"{name}: {peak} KiB"] if peak > MAX_KIB else [])


@pytest.mark.parametrize("name", KINDS)
def test_a_sample_of_damaged_files_is_read_or_refused(name: str, tmp_path: Path) -> None:
    assert attacked(name, tmp_path, SAMPLE) == []


@pytest.mark.attack
@pytest.mark.parametrize("name", KINDS)
def test_damaged_files_are_read_or_refused(name: str, tmp_path: Path) -> None:
    assert attacked(name, tmp_path, WHOLE) == []


FLAGS = (
    "--deadline", "--budget", "--hourly", "--confidence", "--max-machines", "--gpu", "--region",
    "--zone", "--provider", "--market", "--top", "--discount", "--data-at", "--max-age", "--seed",
    "-o", "--color", "--store", "--catalog", "--quota", "--offers", "--deny", "--measured",
)  # fmt: skip
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("jobs", "list"), ("config", "show"), ("catalog", "show"), ("catalog", "status"),
    ("catalog", "export"), ("trace", "fit"), ("bench", "show"), ("accuracy",), ("schema",),
    ("jobs", "show"), ("catalog", "diff"), ("nothing",), ("plan",),
)  # fmt: skip
WORDS = ("resnet50-imagenet", "24h", "0", "-1", "90%", "aws", "H100:8", "", " ", "=", "--", "*")


def calls(draw: Random, tries: int) -> Iterator[list[str]]:
    """Calls that end before a plan is searched: a job among their words is never the first."""
    tokens = [token.decode("utf-8", "replace")[:200] for token in TOKENS if b"\x00" not in token]
    for _ in range(tries):
        words = list(draw.choice(COMMANDS))
        for _ in range(draw.randrange(4)):
            words.append(draw.choice((draw.choice(FLAGS), draw.choice(WORDS), draw.choice(tokens))))
        yield ["plan", "--nosuchflag", *words[1:]] if words[0] == "plan" else words


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, and nobody's settings."""
    monkeypatch.chdir(tmp_path)
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    return tmp_path


def test_a_sample_of_wrong_calls_is_refused(empty: Path) -> None:
    found = [called(words) for words in calls(Random(1), SAMPLE)]
    assert [each for each in found if each] == []


@pytest.mark.attack
def test_wrong_calls_are_refused(empty: Path) -> None:
    found = [called(words) for words in calls(Random(2), 1_500)]
    assert [each for each in found if each] == []


@pytest.mark.parametrize("name", READING)
def test_a_sample_of_odd_files_is_read_by_whole_commands(name: str, empty: Path) -> None:
    assert [each for each in read_whole(name, SOME) if each] == []


def addresses(draw: Random, tries: int) -> Iterator[str]:
    """Addresses near those that are allowed."""
    begins = (
        "https://", "http://", "http://127.0.0.1:1", "http://[::1", "https://[", "ftp://",
        "file://", "https://me:secret@", "https://\u0435xample.org", "HTTPS://x", "://",
    )  # fmt: skip
    ends = (
        "/manifest.json",
        "/manifest.json#sha256=",
        "/manifest.json#ed25519=",
        "?sig=secret",
        "",
    )
    letters = string.printable + "\u202e\u2028\x00"
    for _ in range(tries):
        middle = "".join(draw.choice(letters) for _ in range(draw.randrange(12)))
        yield draw.choice(begins) + middle + draw.choice(ends) + middle[: draw.randrange(3)]


def refused_address(address: str, cache: Path) -> str:
    """What went wrong with an address whose server answers nothing."""

    def silent(address: str, most: int) -> bytes:
        raise TimeoutError("timed out")

    try:
        load_remote(address, cache / "cache", silent, cache / "signers")
    except RecommendError as error:
        return f"{address!r} shows a secret" if "secret" in str(error) else ""
    except Exception as error:  # what nobody has foreseen
        return f"{address!r}: {type(error).__name__}: {error}"
    return f"{address!r} is read"


def test_a_sample_of_addresses_is_refused(tmp_path: Path) -> None:
    found = [refused_address(each, tmp_path) for each in addresses(Random(3), 300)]
    assert [each for each in found if each] == []


@pytest.mark.attack
def test_addresses_are_refused(tmp_path: Path) -> None:
    found = [refused_address(each, tmp_path) for each in addresses(Random(4), 2_000)]
    assert [each for each in found if each] == []


def outputs(draw: Random, tries: int) -> Iterator[str]:
    """Places in this folder where nothing can be written, or something odd lies, and good ones."""
    begins = ("", "./", "folder/../", "folder/", "nowhere/", "/proc/", "file/", "circle/")
    names = (
        "x", "folder", "file", "link", "circle", "x" * 300, "x/" * 2000, " ", "-", ".", "x.gz",
        "\n", "\u202e", "\x1b[31m", "*", "$HOME", "a\\b", "locked/x", "",
    )  # fmt: skip
    devices = ("/dev/full", "/dev/null", "/dev/zero/x", "/")
    for _ in range(tries):
        inside = (
            draw.choice(begins) + draw.choice(names) + draw.choice(("", "", "/", ".csv", ".gz"))
        )
        yield draw.choice(devices) if draw.random() < 0.1 else inside


def odd_outputs(folder: Path, tries: int) -> list[str]:
    """Outputs of which not one line was said, with code 0, 1 or 2, or that harmed a bystander."""
    (folder / "t.csv").write_text(seeds.TRACE)
    (folder / "folder").mkdir()
    (folder / "file").write_text("mine")
    (folder / "link").symlink_to("target")
    (folder / "circle").symlink_to("circle")
    draw, found = Random("outputs"), []
    for out in outputs(draw, tries):
        said = called(["trace", "convert", "t.csv", "--out", out], codes=(0, 1, 2))
        found += [said] if said else []
    if not (folder / "link").is_symlink() or not (folder / "folder").is_dir():
        found.append("a link or a folder was replaced")
    return found


def test_a_sample_of_outputs_is_written_or_refused(empty: Path) -> None:
    assert odd_outputs(empty, SAMPLE) == []


@pytest.mark.attack
def test_outputs_are_written_or_refused(empty: Path) -> None:
    assert odd_outputs(empty, 1_000) == []


@pytest.mark.parametrize("out", ["/dev/full", "nowhere/x", "/", "/proc/x", "circle"])
def test_an_output_that_cannot_be_written_is_one_line(out: str, empty: Path) -> None:
    (empty / "t.csv").write_text(seeds.TRACE)
    (empty / "circle").symlink_to("circle")
    err = io.StringIO()
    with redirect_stderr(err):
        assert main(["trace", "convert", "t.csv", "--out", out]) in (1, 2)
    assert err.getvalue().count("\n") == 1
