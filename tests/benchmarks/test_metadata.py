"""The cloud machine is recognised from its provider's service, asked only where there is one."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from recommender.benchmarks import metadata, suite
from recommender.benchmarks.metadata import Place, find_place, hashed, provider_of
from recommender.benchmarks.suite import SuiteOptions

PATIENT_S = 10.0  # a busy machine is slow to answer itself
Answer = Callable[[str, str, dict[str, str]], tuple[int, str]]


@contextmanager
def service(answer: Answer, flavour: str = "") -> Iterator[tuple[str, list[str]]]:
    """A metadata service on this machine; keeps what it was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def _do(self) -> None:
            asked.append(f"{self.command} {self.path}")
            headers = {name.lower(): value for name, value in self.headers.items()}
            code, body = answer(self.command, self.path, headers)
            self.send_response(code)
            if flavour:
                self.send_header("Metadata-Flavor", flavour)
            self.end_headers()
            self.wfile.write(body.encode())

        do_GET = do_PUT = _do

        def log_message(self, *words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}", asked
        server.shutdown()


def aws(method: str, path: str, headers: dict[str, str]) -> tuple[int, str]:
    if method == "PUT":
        known = "x-aws-ec2-metadata-token-ttl-seconds" in headers
        return (200, "TOKEN") if known and path == "/latest/api/token" else (400, "")
    if headers.get("x-aws-ec2-metadata-token") != "TOKEN":
        return 401, ""
    reported = {
        "instance-type": "p5.48xlarge",
        "placement/region": "us-east-1",
        "placement/availability-zone": "us-east-1b",
        "instance-life-cycle": "spot",
        "instance-id": "i-0123",
    }
    word = reported.get(path.removeprefix("/latest/meta-data/"))
    return (200, word) if word else (404, "")


def gcp(method: str, path: str, headers: dict[str, str]) -> tuple[int, str]:
    if headers.get("metadata-flavor") != "Google":
        return 403, ""
    reported = {
        "machine-type": "projects/12/machineTypes/a3-highgpu-8g",
        "zone": "projects/12/zones/us-central1-a",
        "scheduling/preemptible": "FALSE",
        "id": "42",
    }
    word = reported.get(path.removeprefix("/computeMetadata/v1/instance/"))
    return (200, word) if word else (404, "")


def azure(method: str, path: str, headers: dict[str, str]) -> tuple[int, str]:
    if headers.get("metadata") != "true" or "api-version=" not in path:
        return 400, ""
    return 200, (
        '{"vmSize": "Standard_ND96isr_H100_v5", "location": "eastus", "zone": "2", '
        '"priority": "Spot", "vmId": "abc"}'
    )


def test_aws_metadata_are_read_with_a_session_token():
    with service(aws) as (endpoint, asked):
        found = find_place("aws", endpoint, PATIENT_S)
    assert found == Place("aws", "p5.48xlarge", "us-east-1", "us-east-1b", "spot", hashed("i-0123"))
    assert asked[0] == "PUT /latest/api/token"


def test_gcp_and_azure_are_read():
    with service(gcp, "Google") as (endpoint, _):
        found = find_place("gcp", endpoint, PATIENT_S)
    assert found == Place(
        "gcp", "a3-highgpu-8g", "us-central1", "us-central1-a", "on_demand", hashed("42")
    )
    with service(azure) as (endpoint, _):
        found = find_place("azure", endpoint, PATIENT_S)
    assert found == Place("azure", "Standard_ND96isr_H100_v5", "eastus", "2", "spot", hashed("abc"))


@pytest.mark.parametrize(("provider", "answer"), [("aws", aws), ("gcp", gcp), ("azure", azure)])
def test_no_metadata_path_of_credentials_is_read(provider: str, answer: Answer):
    with service(answer, "Google") as (endpoint, asked):
        find_place(provider, endpoint, PATIENT_S)
    assert asked
    for word in ("credential", "iam", "service-accounts", "token?", "user-data", "attributes"):
        assert not [path for path in asked if word in path]


def test_a_service_that_is_not_googles_is_not_believed():
    with service(gcp, "Other") as (endpoint, _):
        assert find_place("gcp", endpoint, PATIENT_S) == Place("gcp")


def test_a_refusing_a_silent_and_a_nonsensical_service_leave_the_place_open():
    with service(lambda *_: (500, "")) as (endpoint, _):
        assert find_place("aws", endpoint, PATIENT_S) == Place("aws")
        assert find_place("azure", endpoint, PATIENT_S) == Place("azure")
    with service(lambda *_: (200, "not json")) as (endpoint, _):
        assert find_place("azure", endpoint, PATIENT_S) == Place("azure")
    assert find_place("aws", "127.0.0.1:9", 0.05) == Place("aws")
    assert find_place("", "127.0.0.1:9") == Place()


def test_one_missing_field_does_not_lose_the_others():
    def partly(method: str, path: str, headers: dict[str, str]) -> tuple[int, str]:
        return (404, "") if path.endswith("life-cycle") else aws(method, path, headers)

    with service(partly) as (endpoint, _):
        found = find_place("aws", endpoint, PATIENT_S)
    assert (found.instance_type, found.market) == ("p5.48xlarge", "")


def test_proxies_are_not_used(monkeypatch: pytest.MonkeyPatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with service(aws) as (endpoint, _):
        assert find_place("aws", endpoint, PATIENT_S).instance_type == "p5.48xlarge"


@pytest.mark.parametrize(
    ("files", "provider"),
    [
        ({"sys_vendor": "Xen", "bios_version": "4.11.amazon"}, "aws"),  # p3.2xlarge
        ({"sys_vendor": "Amazon EC2"}, "aws"),
        ({"product_name": "Google Compute Engine", "sys_vendor": "Google"}, "gcp"),
        ({"sys_vendor": "Microsoft Corporation",
          "chassis_asset_tag": "7783-7084-3265-9085-8269-3286-77"}, "azure"),
        ({"sys_vendor": "Microsoft Corporation", "product_name": "Surface"}, ""),
        ({"sys_vendor": "LENOVO"}, ""),
        ({}, ""),
    ],
)  # fmt: skip
def test_the_firmware_names_the_provider(tmp_path: Path, files: dict[str, str], provider: str):
    for name, text in files.items():
        (tmp_path / name).write_text(text + "\n")
    assert provider_of(tmp_path) == provider


def test_no_metadata_are_read_without_a_known_provider_or_with_no_metadata(
    monkeypatch: pytest.MonkeyPatch,
):
    def refuse(provider: str) -> Place:
        assert provider == ""
        return Place()

    monkeypatch.setattr(metadata, "provider_of", lambda: "")
    monkeypatch.setattr(metadata, "find_place", refuse)
    assert suite.find_place(SuiteOptions()) == Place()
    monkeypatch.setattr(metadata, "provider_of", lambda: pytest.fail("asked"))
    assert suite.find_place(SuiteOptions(ask_metadata=False)) == Place()


def test_flags_override_the_machines_metadata(monkeypatch: pytest.MonkeyPatch):
    reported = Place("aws", "p5.48xlarge", "us-east-1", "us-east-1b", "spot", "abc")
    monkeypatch.setattr(metadata, "provider_of", lambda: "aws")
    monkeypatch.setattr(metadata, "find_place", lambda provider: reported)
    found = suite.find_place(SuiteOptions(place=Place(market="on_demand")))
    assert found == Place("aws", "p5.48xlarge", "us-east-1", "us-east-1b", "on_demand", "abc")
