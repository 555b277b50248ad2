"""The CSV file of timed runs: what is read, and what is refused."""

from pathlib import Path

import pytest

from recommender.errors import UsageError
from recommender.inputs.csv_text import parse_csv
from recommender.job.timings import read_runs
from tests.recommender.performance.parts import G6, G6X8, P3, P5

TYPES = (P5, G6, G6X8, P3)


def read(folder: Path, text: str, batch: int = 256, servers: int = 0):
    path = folder / "timings.csv"
    path.write_text(text, "utf-8")
    return read_runs(path, TYPES, batch, servers)


def problems(folder: Path, text: str, servers: int = 0) -> tuple[str, ...]:
    with pytest.raises(UsageError) as error:
        read(folder, text, servers=servers)
    return error.value.problems


def test_a_run_says_how_many_parameter_servers_it_had(tmp_path):
    text = "instance,machines,step_s,servers\n" + "".join(
        f"p3.2xlarge,{machines},1,{servers}\n"
        for machines, servers in ((1, ""), (1, 0), (1, 3), (4, ""), (4, 1))
    )
    assert [run.servers for run in read(tmp_path, text, servers=2)] == [2, 0, 3, 2, 1]
    without = text.replace(",3\n", ",\n").replace(",1\n", ",\n")
    assert {run.servers for run in read(tmp_path, without)} == {0}


def test_servers_that_cannot_have_been_are_refused(tmp_path):
    text = "instance,machines,step_s,servers\np3.2xlarge,2,1,0\n"
    assert "servers: 0 of 2 machines" in problems(tmp_path, text, servers=1)[0]
    text = "instance,machines,step_s,servers\np3.2xlarge,2,1,1\n"
    assert "the job has no sync: parameter_server" in problems(tmp_path, text)[0]


def test_an_instance_brings_its_gpus_and_the_job_its_batch(tmp_path):
    (run,) = read(tmp_path, "instance,machines,step_s\np5.48xlarge,2,0.5\n")
    assert (run.machine, run.gpu, run.gpus, run.machines) == ("aws/p5.48xlarge", "H100", 16, 2)
    assert (run.batch, run.step_s, run.data) == (256, 0.5, "")
    assert run.place == "timings.csv, line 2"


def test_a_rate_becomes_a_step(tmp_path):
    text = "nodes,instance_type,global_batch,samples_per_s,data\n1,p3.2xlarge,64,128,Cached\n"
    (run,) = read(tmp_path, text)
    assert (run.step_s, run.batch, run.data) == (0.5, 64, "cached")


def test_the_batch_of_each_gpu_is_that_of_a_row_or_of_the_job(tmp_path):
    text = "instance,machines,step_s,batch_per_gpu\np5.48xlarge,2,0.5,4\n"
    assert read(tmp_path, text)[0].batch == 64
    path = tmp_path / "timings.csv"
    table = "instance,machines,step_s,batch\np5.48xlarge,2,1,\np5.48xlarge,2,1,80\n"
    path.write_text(table, "utf-8")
    assert [run.batch for run in read_runs(path, TYPES, 8, batch_per_gpu=True)] == [128, 80]
    both = "instance,machines,step_s,batch,batch_per_gpu\np5.48xlarge,2,0.5,64,4\n"
    assert "has both batch and batch_per_gpu" in problems(tmp_path, both)[0]


def test_a_gpu_is_taken_for_the_machine_that_holds_as_many(tmp_path):
    text = "gpu,gpus,machines,step_s\nl4,1,1,1\nL4,8,1,1\nL4,6,1,1\nL4,4,4,1\n"
    machines = [run.machine for run in read(tmp_path, text)]
    one, eight = "aws/g6.xlarge", "aws/g6.48xlarge"
    assert machines == [one, eight, eight, one]


def test_a_part_of_a_machine_may_have_run(tmp_path):
    text = "instance,gpus,machines,step_s,data\np5.48xlarge,1,1,1,synthetic\n"
    assert read(tmp_path, text)[0].gpus == 1


def test_every_bad_row_is_named_at_once(tmp_path):
    text = (
        "instance,gpu,gpus,machines,batch,step_s,samples_per_s,data\n"
        "p5.48xlarg,,,1,,1,,\n"
        ",H1000,8,1,,1,,\n"
        ",H100,,1,,1,,\n"
        "p5.48xlarge,,,1,,nan,,\n"
        "p5.48xlarge,,,1,,0,,\n"
        "p5.48xlarge,,,1,,,inf,\n"
        "p5.48xlarge,,,1,,,,\n"
        "p5.48xlarge,,,,,1,,\n"
        "p5.48xlarge,,17,1,,1,,\n"
        "p5.48xlarge,,,1,4,1,,\n"
        "p5.48xlarge,,,1,,1,,warm\n"
    )
    found = problems(tmp_path, text)
    said = (
        "did you mean p5.48xlarge",
        "unknown GPU 'H1000'",
        "column gpus: is empty",
        "nan is not a finite number",
        "0 is zero",
        "inf is not a finite number",
        "neither step_s nor samples_per_s",
        "column machines: is empty",
        "17 GPUs on 1 machines; p5.48xlarge has 8 each",
        "4 samples on 8 GPUs",
        "unknown value 'warm'",
    )
    assert len(found) == len(said)
    for number, (problem, words) in enumerate(zip(found, said, strict=True), 2):
        assert f"line {number}" in problem
        assert words in problem


def test_columns_are_checked(tmp_path):
    assert "unknown column 'speed'" in problems(tmp_path, "instance,machines,speed\nx,1,1\n")[0]
    assert "column machines is missing" in problems(tmp_path, "instance,step_s\nx,1\n")[0]
    assert "holds no rows" in problems(tmp_path, "instance,machines,step_s\n")[0]


def test_both_an_instance_and_a_gpu_are_one_too_many(tmp_path):
    text = "instance,gpu,machines,step_s\np5.48xlarge,H100,1,1\n"
    assert "both instance and gpu" in problems(tmp_path, text)[0]


def test_a_log_of_every_step_is_refused(tmp_path):
    rows = "p3.2xlarge,1,1\n" * 1001
    assert "1001 runs" in problems(tmp_path, f"instance,machines,step_s\n{rows}")[0]


@pytest.mark.parametrize("mark", [";", "\t"])
def test_a_sheet_saved_without_commas_is_read_with_its_decimal_commas(tmp_path, mark):
    text = (
        mark.join(("instance", "machines", "step_s")) + "\n" + mark.join(("x", "1", "0,9")) + "\n"
    )
    (said,) = problems(tmp_path, text)
    assert "line 2, column instance: unknown instance type 'x'" in said
    found = parse_csv(text, "timings.csv", ("machines",), ("instance", "step_s"), {})
    assert found.column("step_s") == ["0.9"]


def test_a_time_with_a_unit_is_requested_in_seconds(tmp_path):
    (said,) = problems(tmp_path, "instance,machines,step_s\np5.48xlarge,1,900ms\n")
    assert said.endswith("write seconds, such as 0.35")
