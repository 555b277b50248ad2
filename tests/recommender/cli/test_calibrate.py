"""`recommend calibrate`: from timed runs to a job file that plans use."""

import json
import re
from pathlib import Path

import jsonschema
import pytest

from recommender.api.calls import recommend
from recommender.inputs.yaml_text import load_yaml
from recommender.job.jobfile import find_job
from recommender.job.merge_layers import JobFlags
from recommender.plan.limits import Choice, Limits
from recommender.report.json_output import schema_text
from tests.recommender.cli.conftest import Run
from tests.shipped import snapshot

RUNS = "instance,machines,batch,step_s\np3.2xlarge,1,64,0.35\np3.2xlarge,4,256,0.61\n"
WORDS = ("calibrate", "resnet152-imagenet", "t.csv")


@pytest.fixture(autouse=True)
def timings(run: Run) -> None:
    """The runs, in the folder of the call."""
    Path("t.csv").write_text(RUNS, "utf-8")


def test_a_preset_becomes_a_job_file(run: Run) -> None:
    result = run(*WORDS)
    assert (result.code, result.err) == (0, "")
    job = find_job()
    assert job.calibration is not None
    assert job.calibration.rows == 2
    assert job.calibration.as_of == "2026-11-20"
    assert job.parameters == find_job("resnet152-imagenet").parameters


def test_constants_and_residuals_are_printed(run: Run) -> None:
    out = run(*WORDS).out
    for words in ("efficiency, V100", "latency", "network", "overlap", "line 3", "off by", "±"):
        assert words in out
    assert "recommend.yaml" in out


@pytest.mark.parametrize("columns", ["40", "80", "140"])
def test_the_page_fits_the_terminal(
    run: Run, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    lines = run(*WORDS).out.splitlines()
    assert [line for line in lines if len(line) > int(columns)] == []


def test_json_has_the_same_facts(run: Run) -> None:
    found = json.loads(run(*WORDS, "-o", "json").out)
    assert [r["step_s"] for r in found["runs"]] == [0.35, 0.61]
    assert found["written"] == "recommend.yaml"
    jsonschema.validate(found, json.loads(schema_text()))
    assert found["schema"] == "recommend.calibration/v1"
    filed = load_yaml(Path("recommend.yaml").read_text("utf-8"), "x")["calibration"]
    assert found["calibration"]["gpus"]["V100"]["sd"] == float(filed["gpus"]["V100"]["sd"])
    assert list(found["calibration"]) == list(filed)
    for r in found["runs"]:
        assert r["predicted_s"] == pytest.approx(r["step_s"], rel=0.05)


def test_a_file_that_exists_is_kept_unless_forced(run: Run) -> None:
    Path("recommend.yaml").write_text("mine", "utf-8")
    result = run(*WORDS)
    assert result.code == 2
    assert "--force" in result.err
    assert Path("recommend.yaml").read_text("utf-8") == "mine"
    assert run(*WORDS, "--force").code == 0
    assert find_job().calibration is not None


def test_a_job_file_gets_its_first_calibration_without_force(run: Run) -> None:
    mine = "# my job\nschema: recommend.job/v1\nlike: resnet152-imagenet\n"
    Path("mine.yaml").write_text(mine, "utf-8")
    assert run("calibrate", "mine.yaml", "t.csv").code == 0
    assert Path("mine.yaml").read_text("utf-8").startswith(mine)
    again = run("calibrate", "mine.yaml", "t.csv")
    assert again.code == 2
    assert "mine.yaml has a calibration; write --force to replace it" in again.err
    Path("other.yaml").write_text("mine", "utf-8")
    assert run("calibrate", "mine.yaml", "t.csv", "--to", "other.yaml").code == 2
    assert Path("other.yaml").read_text("utf-8") == "mine"


def test_a_job_file_keeps_all_but_its_calibration(run: Run) -> None:
    mine = (
        "# my job\nschema: recommend.job/v1\nlike: resnet152-imagenet\ncalibration:\n  old: 1\n"
        "\nepochs: 3  # few\n"
    )
    own = Path("mine.yaml")
    own.write_text(mine.replace("calibration:\n  old: 1\n", ""), "utf-8")
    assert run("calibrate", "mine.yaml", "t.csv", "--force").code == 0
    once = own.read_text("utf-8")
    assert once.startswith("# my job\n")
    assert "epochs: 3  # few\n" in once
    assert run("calibrate", "mine.yaml", "t.csv", "--force").code == 0
    assert own.read_text("utf-8") == once
    assert run("calibrate", "mine.yaml", "t.csv", "--to", "other.yaml").code == 0
    assert Path("other.yaml").read_text("utf-8") == once


def test_a_job_file_keeps_its_line_ends(run: Run) -> None:
    mine = b"# my job\r\nschema: recommend.job/v1\r\nlike: resnet152-imagenet\r\n\r\nepochs: 3\r\n"
    own = Path("mine.yaml")
    own.write_bytes(mine)
    assert run("calibrate", "mine.yaml", "t.csv", "--force").code == 0
    once = own.read_bytes()
    assert once.startswith(mine)
    assert once.count(b"\n") == once.count(b"\r\n")
    assert run("calibrate", "mine.yaml", "t.csv", "--force").code == 0
    assert own.read_bytes() == once


def test_the_page_says_where_spreads_begin_to_grow(run: Run) -> None:
    said = " ".join(run(*WORDS).out.split())
    assert re.search(r"of several: ± [0-9.]+ % up to [0-9]+, ± [0-9.]+ % beyond [0-9]+;", said)


def test_a_rate_above_that_of_matrix_multiplication_is_reported(run: Run) -> None:
    Path("t.csv").write_text("instance,machines,batch,step_s\np3.2xlarge,1,64,0.05\n", "utf-8")
    said = " ".join(run(*WORDS).out.split())
    assert "Your runs on V100 reach" in said
    assert "FLOP per sample right?" in said


def test_a_file_in_braces_is_refused(run: Run) -> None:
    text = "{schema: recommend.job/v1, like: resnet152-imagenet}\n"
    Path("mine.yaml").write_text(text, "utf-8")
    result = run("calibrate", "mine.yaml", "t.csv", "--force")
    assert result.code == 2
    assert "plain YAML" in result.err
    assert Path("mine.yaml").read_text("utf-8") == text


def test_bad_rows_are_listed_and_nothing_is_written(run: Run) -> None:
    Path("t.csv").write_text("instance,machines,step_s\np3.2xlarg,1,1\np3.2xlarge,1,0\n", "utf-8")
    result = run(*WORDS)
    assert result.code == 2
    assert len(result.err.splitlines()) == 2
    assert not Path("recommend.yaml").exists()


def test_a_run_that_cannot_have_been_is_refused(run: Run) -> None:
    Path("t.csv").write_text("instance,machines,step_s\ng4dn.xlarge,1,1\n", "utf-8")
    result = run("calibrate", "llama3-8b-sft", "t.csv")
    assert result.code == 2
    assert "t.csv, line 2: cannot have run as the job says" in result.err


def test_it_repeats_byte_for_byte(run: Run) -> None:
    first, text = run(*WORDS).out, Path("recommend.yaml").read_text("utf-8")
    assert run(*WORDS, "--force").out == first
    assert Path("recommend.yaml").read_text("utf-8") == text


def test_one_run_is_believed(run: Run, tmp_path: Path) -> None:
    """Three times slower than the shipped speed says: nothing else says that it was disturbed."""
    (tmp_path / "slow.csv").write_text("instance,machines,batch,step_s\np4d.24xlarge,1,2048,0.9\n")
    found = json.loads(run("calibrate", "resnet50-imagenet", "slow.csv", "-o", "json").out)
    assert found["runs"][0]["predicted_s"] == pytest.approx(0.9, rel=0.02)


def test_what_is_written_can_be_read_again(run: Run, tmp_path: Path) -> None:
    """Under parameter servers the overlap that is fitted is next to nothing."""
    job = "schema: recommend.job/v1\nlike: resnet50-imagenet\nsync: parameter_server\n"
    (tmp_path / "ps.yaml").write_text(job + "parameter_servers: 2\n")
    rows = "1,g4dn.xlarge,12\n4,g4dn.xlarge,3.5\n8,g4dn.xlarge,2.9\n"
    (tmp_path / "ps.csv").write_text("machines,instance,step_s\n" + rows)
    made = run("calibrate", "ps.yaml", "ps.csv", "--to", "made.yaml")
    assert (made.code, made.err) == (0, "")
    assert run("--deadline", "90h", "--provider", "aws", "made.yaml").code in (0, 3)


def test_a_calibration_in_another_precision_is_carried_and_the_answer_says_so(run: Run) -> None:
    run(*WORDS)
    job, choice = find_job(flags=JobFlags(precision="tf32")), Choice(instances=("p4d.24xlarge",))
    a100 = recommend(job, Limits(max_machines=2), choice, catalog=snapshot())
    # The runs are of a V100, which multiplies in fp32 if tf32 is allowed.
    assert a100.warnings == (
        "calibration is not used: its runs in mixed say nothing of tf32; run recommend calibrate "
        "again",
    )
    Path("recommend.yaml").write_text(Path("recommend.yaml").read_text().replace("V100", "A100"))
    a100 = recommend(
        find_job(flags=JobFlags(precision="tf32")),
        Limits(max_machines=2),
        choice,
        catalog=snapshot(),
    )
    assert a100.warnings == ()
    said = "speed carried from your own timings in bf16 to tf32: ± 21 % in addition"
    assert said in a100.assumptions


@pytest.mark.parametrize("flags", [{"stack": "tuned"}, {"precision": "fp32"}])
def test_a_flag_that_invalidates_a_calibration_is_reported(run: Run, flags: dict[str, str]) -> None:
    run(*WORDS)
    job = find_job(flags=JobFlags(**flags))  # type: ignore[arg-type]
    ((key, value),) = flags.items()
    assert job.calibration is None
    assert job.remarks == (
        f"recommend.yaml: calibration is not used: --{key} {value} is not what it was taken with; "
        "run recommend calibrate again",
    )


def test_an_answer_names_the_runs_behind_it_and_the_calibration_it_does_not_use(run: Run) -> None:
    run(*WORDS)
    choice = Choice(instances=("p3.2xlarge", "p4d.24xlarge"), regions=("us-east-1",))
    job, catalog = find_job(), snapshot()
    answer = recommend(job, Limits(max_machines=2), choice, catalog=catalog)
    said = next(each for each in answer.assumptions if each.startswith("speed calibrated"))
    assert said == ("speed calibrated on 2 of your own runs on 2026-11-20, none of them on A100")
    assert answer.warnings == ()
    tuned = find_job(flags=JobFlags(stack="tuned"))
    answer = recommend(tuned, Limits(max_machines=2), choice, catalog=catalog)
    assert "calibration is not used: --stack tuned" in answer.warnings[0]
    nothing = recommend(tuned, Limits(budget_usd=0.01), choice, catalog=catalog)
    assert "calibration is not used: --stack tuned" in nothing.warnings[0]


def test_stalls_without_a_batch_are_at_one_batch_per_gpu(run: Run) -> None:
    """p3.8xlarge: one V100 of four at a quarter of the job's batch; T1 - T0 = 20 % of 0.5 s."""
    Path("stalls.csv").write_text(
        "instance,machines,gpus,data,step_s\n"
        "p3.8xlarge,1,1,synthetic,0.3\np3.8xlarge,1,4,synthetic,0.4\n"
        "p3.8xlarge,1,4,cached,0.45\np3.8xlarge,1,4,cold,0.5\n",
        "utf-8",
    )
    result = run("calibrate", "resnet152-imagenet", "stalls.csv")
    assert "interconnect 20 %, preparation 10 %, fetching 10 %" in " ".join(result.out.split())
    rows = json.loads(
        run("calibrate", "resnet152-imagenet", "stalls.csv", "--force", "-o", "json").out
    )["runs"]
    assert rows[0]["batch"] * 4 == rows[1]["batch"]


def test_batches_that_differ_per_gpu_say_nothing_of_the_interconnect(run: Run) -> None:
    Path("stalls.csv").write_text(
        "instance,machines,gpus,data,batch,step_s\n"
        "p3.8xlarge,1,1,synthetic,64,0.3\np3.8xlarge,1,4,synthetic,512,0.4\n"
        "p3.8xlarge,1,4,cold,512,0.5\n",
        "utf-8",
    )
    assert "interconnect" not in run("calibrate", "resnet152-imagenet", "stalls.csv").out


def test_a_time_in_the_wrong_unit_is_refused_or_named(run: Run) -> None:
    Path("t.csv").write_text("instance,machines,batch,step_s\np3.2xlarge,1,64,0.0001\n", "utf-8")
    result = run(*WORDS)
    assert result.code == 2
    assert "t.csv, line 2: 1xV100: 6.4e+05 samples/s is" in result.err
    assert "times the vendor's peak; check the number and its unit" in result.err
    assert not Path("recommend.yaml").exists()
    Path("t.csv").write_text("instance,machines,batch,step_s\np3.2xlarge,1,64,350\n", "utf-8")
    assert "times slower than expected: is step_s in" in run(*WORDS).out


def test_a_bandwidth_that_runs_do_not_show_is_not_a_number(run: Run) -> None:
    """Steps that grow by the same for every doubling: all latency, and no bandwidth at all."""
    sizes = {1: 0.41, 2: 0.46, 4: 0.51, 8: 0.56, 16: 0.61}
    rows = [f"g5.xlarge,{n},{128 * n},{step}" for n, step in sizes.items()]
    Path("t.csv").write_text("\n".join(["instance,machines,batch,step_s", *rows]), "utf-8")
    printed = run("calibrate", "resnet50-imagenet", "t.csv").out
    network = next(line for line in printed.splitlines() if line.strip().startswith("network"))
    assert "no limit seen" in network


def test_a_latency_that_no_network_has_is_reported_however_little_is_known_of_it(run: Run) -> None:
    """Rings of two to eight machines wait seconds longer for each: no law of a network fits."""
    steps = {1: 0.35, 2: 9.1, 4: 19.1, 8: 40.1}
    rows = [f"p3.2xlarge,{n},{64 * n},{step}" for n, step in steps.items()]
    Path("t.csv").write_text("\n".join(["instance,machines,batch,step_s", *rows]), "utf-8")
    printed = run("calibrate", "resnet152-imagenet", "t.csv").out
    latency = next(line for line in printed.splitlines() if line.strip().startswith("latency"))
    assert float(latency.split("×")[2].split()[0].replace(",", "")) > 100
    assert "no such network is known" in " ".join(printed.split())


def test_a_stall_vector_that_contradicts_itself_is_named_and_has_no_shares(run: Run) -> None:
    rows = "1,p3.8xlarge,4,256,0.12,synthetic\n1,p3.8xlarge,4,256,0.40,cached\n"
    text = f"machines,instance,gpus,batch,step_s,data\n{rows}1,p3.8xlarge,4,256,0.20,cold\n"
    Path("t.csv").write_text(text, "utf-8")
    said = " ".join(run("calibrate", "resnet50-imagenet", "t.csv").out.split())
    assert (
        "contradict each other: cold data 200 ms, cached data 400 ms; are rows exchanged?" in said
    )
    assert "preparation 1" not in said


def test_runs_that_all_wait_for_input_say_so(run: Run) -> None:
    Path("t.csv").write_text("machines,instance,batch,step_s,data\n1,p3.2xlarge,64,0.4,cold\n")
    said = " ".join(run("calibrate", "resnet50-imagenet", "t.csv").out.split())
    assert "No run is on synthetic data: what waits for its input counts as compute." in said


def test_runs_may_have_been_on_own_machines(run: Run) -> None:
    Path("offers.csv").write_text("label,gpu,gpus,usd_per_hour\nlab,H100,8,12\n", "utf-8")
    Path("t.csv").write_text("instance,machines,batch,step_s\nlab,1,512,0.35\n", "utf-8")
    assert "unknown instance type 'lab'" in run(*WORDS).err
    result = run(*WORDS, "--offers", "offers.csv")
    assert (result.code, result.err) == (0, "")
    job = find_job()
    assert job.calibration is not None
    assert [gpu for gpu, _ in job.calibration.gpus] == ["H100"]
    assert "none.csv: no such file" in run(*WORDS, "--force", "--offers", "none.csv").err


def test_a_worker_timed_with_its_server_is_calibrated_as_it_is(run: Run) -> None:
    Path("job.yaml").write_text(
        "schema: recommend.job/v1\nlike: resnet50-imagenet\nsync: parameter_server\n", "utf-8"
    )
    found = {}
    for servers in ("", "0"):
        Path("t.csv").write_text(
            f"instance,machines,batch,step_s,servers\ng4dn.xlarge,1,64,0.35,{servers}\n", "utf-8"
        )
        words = ("calibrate", "./job.yaml", "t.csv", "--to", "to.yaml", "--force", "-o", "json")
        found[servers] = json.loads(run(*words).out)
    (with_one,), (alone,) = (found[key]["runs"] for key in ("", "0"))
    assert (with_one["servers"], alone["servers"]) == (1, 0)
    assert with_one["predicted_s"] == pytest.approx(0.35, rel=0.03)
    assert alone["predicted_s"] == pytest.approx(0.35, rel=0.03)
    # What the server took is no part of the GPU's step.
    faster = [found[key]["calibration"]["compute"]["factor"] for key in ("", "0")]
    assert faster[0] > 1.05 * faster[1]
