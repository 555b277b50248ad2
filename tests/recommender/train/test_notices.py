"""Notices are read from real local HTTP servers that answer as each provider documents."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from recommender.errors import UsageError
from recommender.train import Checkpointer, PickledState
from recommender.train.notices import (
    Notice,
    NoticeWatch,
    provider_of_this_machine,
    read_aws,
    read_azure,
    read_gcp,
)

TOKEN = "a-token"
AWS = json.dumps({"action": "terminate", "time": "2026-11-23T08:22:00Z"})
EVENT = {"EventId": "1", "EventType": "Preempt", "NotBefore": "Mon, 23 Nov 2026 08:22:00 GMT"}
AZURE = json.dumps({"DocumentIncarnation": 1, "Events": [{"EventType": "Freeze"}, EVENT]})


class Metadata(BaseHTTPRequestHandler):
    """The three services; `texts` says what each has, by path."""

    texts: dict[str, str] = {}

    def do_PUT(self) -> None:
        asked = self.headers["X-aws-ec2-metadata-token-ttl-seconds"]
        self._answer(TOKEN if self.path == "/latest/api/token" and asked else None)

    def do_GET(self) -> None:
        allowed = {
            "/latest": self.headers["X-aws-ec2-metadata-token"] == TOKEN,
            "/computeMetadata": self.headers["Metadata-Flavor"] == "Google",
            "/metadata": self.headers["Metadata"] == "true",
        }["/" + self.path.split("/")[1]]
        self._answer(self.texts.get(self.path) if allowed else None, 404 if allowed else 401)

    def _answer(self, text: str | None, otherwise: int = 404) -> None:
        self.send_response(200 if text is not None else otherwise)
        self.end_headers()
        self.wfile.write((text or "").encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serving(texts: dict[str, str]) -> Iterator[str]:
    handler = type("Handler", (Metadata,), {"texts": texts})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


AWS_PATH = "/latest/meta-data/spot/instance-action"
GCP_PATH = "/computeMetadata/v1/instance/preempted"
AZURE_PATH = "/metadata/scheduledevents?api-version=2020-07-01"


def test_awss_interruption_notice_is_read_with_a_token():
    with serving({AWS_PATH: AWS}) as endpoint:
        assert read_aws(endpoint) == Notice("aws", "terminate", "2026-11-23T08:22:00Z")


def test_googles_notice_is_read():
    with serving({GCP_PATH: "TRUE"}) as endpoint:
        assert read_gcp(endpoint) == Notice("gcp", "preempted", "")


def test_azures_notices_are_those_that_take_the_machine_and_not_freezes():
    with serving({AZURE_PATH: AZURE}) as endpoint:
        assert read_azure(endpoint) == Notice("azure", "Preempt", str(EVENT["NotBefore"]))


def test_machines_that_stay_have_no_notice():
    none = {GCP_PATH: "FALSE", AZURE_PATH: '{"DocumentIncarnation": 1, "Events": []}'}
    with serving(none) as endpoint:
        assert [read(endpoint) for read in (read_aws, read_gcp, read_azure)] == [None] * 3


def test_the_firmware_says_whose_machine_it_is(tmp_path: Path):
    assert provider_of_this_machine(tmp_path) is None
    for vendor, provider in (("Amazon EC2", "aws"), ("Google", "gcp"), ("Dell Inc.", None)):
        (tmp_path / "sys_vendor").write_text(f"{vendor}\n")
        assert provider_of_this_machine(tmp_path) == provider
    (tmp_path / "chassis_asset_tag").write_text("7783-7084-3265-9085-8269-3286-77\n")
    assert provider_of_this_machine(tmp_path) == "azure"


@pytest.mark.parametrize(
    ("variable", "path", "text"),
    [
        ("AWS_EC2_METADATA_SERVICE_ENDPOINT", AWS_PATH, AWS),
        ("GCE_METADATA_HOST", GCP_PATH, "TRUE"),
    ],
)
def test_the_clouds_own_variables_name_another_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, path: str, text: str
):
    with serving({path: text}) as endpoint:
        host = endpoint if variable.startswith("AWS") else endpoint.removeprefix("http://")
        monkeypatch.setenv(variable, host)
        training = Checkpointer(PickledState(), 10**9, folder=tmp_path, interval_s=3600)
        for _ in training.steps():
            if list(tmp_path.glob("step-*/complete.json")):
                break
    assert (tmp_path / "progress").exists()


def test_an_unknown_provider_is_refused():
    with pytest.raises(UsageError, match="did you mean aws"):
        NoticeWatch("awss")


class Counter:
    """A training whose state is a number."""

    def __init__(self) -> None:
        self.done = 0

    def state_dict(self) -> int:
        return self.done

    def load_state_dict(self, state: int) -> None:
        self.done = state


def test_a_notice_saves_at_once_and_only_once(tmp_path: Path):
    with serving({AWS_PATH: AWS}) as endpoint:
        watch = NoticeWatch("aws", endpoint, poll_s=0.001)
        counter = Counter()
        training = Checkpointer(
            PickledState(counter=counter), 10**9, folder=tmp_path, interval_s=3600, notices=watch
        )
        saved = 0
        for step in training.steps():
            counter.done = step + 1
            found = sorted(tmp_path.glob("step-*/complete.json"))
            saved = saved or (step if found else 0)
            if saved and step > saved + 1000:
                break
    assert len(found) == 1
    again = Counter()
    resumed = Checkpointer(PickledState(counter=again), 10**9, folder=tmp_path)
    assert resumed.restore() == again.done == int(found[0].parent.name.removeprefix("step-"))


def test_a_silent_service_is_no_reason_to_stop(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    with serving({}) as endpoint:
        gone = endpoint
    watch = NoticeWatch("gcp", gone, poll_s=0.001)
    training = Checkpointer(PickledState(), 200, folder=tmp_path, notices=watch)
    assert list(training.steps()) == list(range(200))
