"""Odd files through whole commands, from the file to the answer. By hand (20 CPU minutes):

    python -P tests/run.py tests.attack.whole_commands [FILES [KIND ...]]

Seeds are the valid files that the project has: presets, job files, files of the tests of each
reader, configs of known models, tables, answers. Each try is a file of the same form with other
values, keys, rows or lines. Printed: the tries, the slowest and the memory of each command, and
what was neither an answer nor a refusal in words; such files stay in the folder KEEP.
"""

import argparse
import ast
import io
import json
import os
import re
import resource
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from recommender.benchmarks.errors import BenchError
from recommender.benchmarks.record import dumps
from recommender.catalogs.errors import RecommendError
from recommender.catalogs.frozen import dataclass
from recommender.catalogs.load import SNAPSHOT
from recommender.cli import main
from recommender.job.preset_files import preset_text, presets
from recommender.networks.known_models import known_models
from tests.attack import seeds
from tests.attack.mutations import restructured
from tests.benchmarks.machines import record

MAX_S, MAX_KIB = 5.0, 2**20
TESTS = Path(__file__).parents[1]
ANSWERS = (0, 1, 2, 3, 4)
Seed = tuple[str, bytes]  # the ending of a file, and a valid one


def tried(act: Callable[[], object]) -> str:
    """What went wrong with an act that may only succeed or refuse; empty where nothing did."""
    began = time.process_time()
    try:
        act()
    except (RecommendError, BenchError) as error:
        if not str(error).strip() or "Traceback" in str(error):
            return f"said {error!r}"
    except Exception as error:  # what nobody has foreseen
        return f"{type(error).__name__}: {error}"[:200]
    took = time.process_time() - began
    return f"took {took:.1f} s" if took > MAX_S else ""


def called(words: list[str], codes: tuple[int, ...] = (0, 2, 3, 4)) -> str:
    """What went wrong with a call of the command line."""
    out, err, ended = io.StringIO(), io.StringIO(), []
    with redirect_stdout(out), redirect_stderr(err):
        problem = tried(lambda: ended.append(main(words)))
    if problem:
        return f"{words}: {problem}"
    code, said = ended[0], err.getvalue()
    if code not in codes or "internal error" in said or "Traceback" in said:
        return f"{words}: code {code}, {said[-200:]}"
    if code != 0 and not (said or out.getvalue()):  # that no plan is feasible is an answer
        return f"{words}: code {code} without a word"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return f"{words}: {peak} KiB" if peak > MAX_KIB else ""


def files(folder: str, *patterns: str) -> tuple[Seed, ...]:
    """The files of a folder of the tests."""
    found = (path for each in patterns for path in sorted((TESTS / folder).glob(each)))
    return tuple((path.suffix, path.read_bytes()) for path in found)


def texts_of(*modules: str) -> Iterator[str]:
    """The texts of several lines in test modules."""
    for module in modules:
        for node in ast.walk(ast.parse((TESTS / module).read_text("utf-8"))):
            value = node.value if isinstance(node, ast.Constant) else None
            if isinstance(value, str) and value.count("\n") > 1:
                yield value


def trainings() -> tuple[Seed, ...]:
    """Configurations and scripts of training tools."""
    folder = "recommender/inputs/training_configs"
    inline = texts_of(f"{folder}/test_read.py", f"{folder}/test_tools.py",
                      "recommender/inputs/test_project_software.py")  # fmt: skip
    return (*files(folder, "*.yaml", "*.json", "*.toml"),
            *((_ending(text), text.encode()) for text in inline))  # fmt: skip


def _ending(text: str) -> str:
    if text.lstrip().startswith("["):
        return ".toml"
    if "import " in text:
        return ".py"
    return ".sh" if " --" in text or "$" in text else ".yaml"


def jobs() -> tuple[Seed, ...]:
    """Presets and job files of questions."""
    own = tuple((".yaml", preset_text(name).encode()) for name in presets())
    return (
        own + files("research/contract/jobs", "*.yaml") + files("research/first_answers/jobs", "*")
    )


def networks() -> tuple[Seed, ...]:
    """A config of each kind of network that is known."""
    kinds = {(each.config.fields.get("model_type"), each.config.fields.get("_class_name")): each
             for each in known_models()}  # fmt: skip
    return tuple(
        (".json", json.dumps(dict(each.config.fields)).encode()) for each in kinds.values()
    )


def quotas() -> tuple[Seed, ...]:
    """Tables of quotas, and what commands of clouds print."""
    return (*files("research/contract/quotas", "*.csv"), (".csv", seeds.QUOTAS.encode()),
            (".yaml", seeds.QUOTAS_YAML.encode()),
            *((".json", json.dumps(each).encode()) for each in seeds.PRINTED_QUOTAS))  # fmt: skip


def one(ending: str, content: str | bytes) -> Callable[[], tuple[Seed, ...]]:
    """A single seed."""
    return lambda: ((ending, content.encode() if isinstance(content, str) else content),)


def answers() -> tuple[Seed, ...]:
    """Answers with plans: of many providers, of a mix, and of each cloud alone."""
    found = files("golden_answers/printed", "deadline.json", "mix-quota.json")
    made = []
    for cloud, machine in CLOUDS.items():
        answer = re.sub(rb'("provider": )"\w+"', rb'\1"%s"' % cloud, found[0][1])
        made.append(re.sub(rb'("instance_type": )"[^"]+"', rb'\1"%s"' % machine, answer))
    return (*found, *((".json", answer) for answer in made))


@dataclass(frozen=True, slots=True)
class Reading:
    """A whole command that reads a file."""

    seeds: Callable[[], tuple[Seed, ...]]
    place: str  # in the folder; its ending is the seed's
    words: tuple[str, ...]  # FILE: the file

    def command(self, place: Path) -> list[str]:
        """The words of a call."""
        return [str(place) if word == "FILE" else word for word in self.words]


CLOUDS = {b"aws": b"p4d.24xlarge", b"gcp": b"a2-highgpu-1g", b"azure": b"Standard_NC24ads_A100_v4"}
EXPORTS = ("skypilot", "dstack", "slurm", "torchrun", "terraform", "aws-cli", "gcloud", "azure-cli")
MADE = ("--gpus", "8", "--examples", "50k", "--to", "made.yaml")
SIZE = (*MADE, "--tokens-per-example", "600")
QUICK = ("--deadline", "400h", "--gpu", "A100:1", "--no-spot")
RECORD = one(".json", dumps(record()))
READING: dict[str, Reading] = {
    "a training": Reading(trainings, "f", ("init", "--from", "FILE", *SIZE)),
    "a training of a model": Reading(trainings, "f", (
        "init", "--from", "FILE", "--model", "meta-llama/Llama-3.1-8B", *SIZE)),
    "a training with its data": Reading(trainings, "f", ("init", "--from", "FILE", "--to",
                                                         "made.yaml")),
    "a project": Reading(trainings, "train", ("init", "--model", "Qwen/Qwen2.5-7B", *SIZE)),
    "a job": Reading(jobs, "job", ("jobs", "show", "FILE")),
    "a job, planned": Reading(jobs, "job", ("FILE", "--deadline", "4000h", "--gpu", "A100:8",
                                            "--no-spot", "--provider", "aws")),
    "a network": Reading(networks, "f", ("init", "--model", "FILE", *SIZE)),
    "a network of images": Reading(networks, "f", ("init", "--model", "FILE", "--batch", "64",
                                                   *MADE)),
    "quotas": Reading(quotas, "q", ("explain", "a2-highgpu-1g", "resnet50-imagenet", *QUICK,
                                    "--quota", "FILE")),
    "own offers": Reading(one(".csv", seeds.OFFERS), "f", (
        "resnet50-imagenet", "--deadline", "400h", "--provider", "own", "--offers", "FILE")),
    "settings": Reading(one(".toml", seeds.SETTINGS), "XDG_CONFIG_HOME/recommend/config",
                        ("config", "show")),
    "settings of a project": Reading(one(".toml", "[tool.recommend]\n" + seeds.SETTINGS),
                                     "pyproject", ("config", "show")),
    "timings": Reading(one(".csv", seeds.TIMINGS), "f",
                       ("calibrate", "resnet50-imagenet", "FILE", "--to", "made.yaml")),
    "a trace": Reading(one(".csv", seeds.TRACE), "f", ("trace", "show", "FILE")),
    "a trace, fitted": Reading(one(".csv", seeds.TRACE), "f", ("trace", "fit", "FILE")),
    "prices of AWS": Reading(one(".json", seeds.AWS_PRICES), "f", ("trace", "convert", "FILE")),
    "spot laws": Reading(one(".json", seeds.LAWS), "XDG_DATA_HOME/recommend/spot-laws",
                         ("trace", "list")),
    "a record": Reading(RECORD, "f", ("bench", "import", "FILE")),
    "two records": Reading(RECORD, "f", ("bench", "compare", "FILE", "FILE")),
    "a manifest": Reading(lambda: ((".json", (SNAPSHOT / "manifest.json").read_bytes()),),
                          "c/manifest", ("catalog", "show", "H100", "--catalog", "c")),
    "progress": Reading(one(".json", seeds.PROGRESS), "p",
                        ("replan", str(TESTS / "golden_answers/printed/deadline.json"),
                         "--progress", "FILE", "--deadline", "400h")),
    **{f"an answer for {to}": Reading(answers, "f", ("export", "FILE", "--to", to, "--plan",
                                                     "cheapest", "-o", "run")) for to in EXPORTS},
}  # fmt: skip
# How many files of a kind beside one of another: many seeds, or seconds for a call.
SHARES = {"a training": 4.0, "a training of a model": 4.0, "a job": 4.0, "a network": 4.0,
          "a network of images": 2.0, "a job, planned": 2.0, "progress": 0.5,
          "quotas": 0.2}  # fmt: skip


@cache
def good_seeds(name: str) -> tuple[Seed, ...]:
    """The seeds that the command answers; the others would all be refused for one reason."""
    return tuple(seed for seed in READING[name].seeds() if not called_with(name, seed))


def called_with(name: str, seed: Seed, codes: tuple[int, ...] = (0,)) -> str:
    """What went wrong with the command of a kind and a file, in an empty folder."""
    reading, (ending, content) = READING[name], seed
    path = Path(reading.place + ending)
    if path.parent.name == "c" and not path.parent.exists():
        shutil.copytree(SNAPSHOT, path.parent)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    Path("made.yaml").unlink(missing_ok=True)
    shutil.rmtree("run", ignore_errors=True)
    try:
        return called(reading.command(path), codes)
    finally:
        if path.parent.name != "c":
            path.unlink()


def read_whole(name: str, tries: int) -> Iterator[str]:
    """What each file of the same form as a valid one is answered; empty where that is right."""
    draw, valid = Random(f"{name} 20261129"), good_seeds(name)
    assert valid, name
    for number in range(tries):
        ending, content = valid[number % len(valid)]
        odd = restructured(content, ending, draw)
        if problem := called_with(name, (ending, odd), ANSWERS):
            keep = Path(os.environ.get("KEEP", ".")) / f"{name} {number}{ending}".replace(" ", "-")
            keep.write_bytes(odd)
            problem = f"{keep}: {problem}"
        yield problem


def main_() -> None:
    """Try so many files, and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("files", type=int, nargs="?", default=16_000)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="only these")
    given = parser.parse_args()
    tries, kinds = given.files, given.kinds or READING
    shares = {name: SHARES.get(name, 1.0) for name in READING}
    for name in kinds:
        wanted = round(tries * shares[name] / sum(shares.values()))
        began, bad, slowest = time.process_time(), [], 0.0
        with TemporaryDirectory() as folder:
            _alone_in(folder)
            count = len(good_seeds(name))
            last = time.process_time()
            for problem in read_whole(name, wanted):
                now = time.process_time()
                slowest, last = max(slowest, now - last), now
                bad += [problem] if problem else []
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        took = time.process_time() - began
        sys.stdout.write(f"{name}: {wanted} files of {count} seeds, {took:.0f} s, slowest "
                         f"{slowest:.2f} s, {peak} MiB, {len(bad)} bad\n")  # fmt: skip
        sys.stdout.write("".join(f"    {each}\n" for each in bad))
        sys.stdout.flush()


def _alone_in(folder: str) -> None:
    os.chdir(folder)
    os.environ["RECOMMEND_NOW"] = "2026-11-23T12:00Z"
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "HOME"):
        os.environ[name] = f"{folder}/{name}"


if __name__ == "__main__":
    main_()
