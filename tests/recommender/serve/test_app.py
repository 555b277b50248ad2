"""The server over HTTP: the answers of the planner, hostile requests refused, nothing kept open.

Needs Starlette (extra `serve`).
"""

import asyncio
import json
from array import array
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any

import httpx
import jsonschema
import pytest

from recommender.api.calls import recommend
from recommender.catalogs.catalog import Catalog
from recommender.catalogs.errors import CatalogError
from recommender.job.jobfile import find_job
from recommender.plan.limits import Limits
from recommender.report.answer_frame import PlanRequest
from recommender.report.json_output import document, schema_text
from recommender.serve import app
from recommender.serve.app import MAX_BODY_BYTES, Server
from recommender.serve.catalog_source import CatalogSource
from recommender.serve.planning import Planning
from recommender.serve.workers import Workers
from tests.recommender.planning import small
from tests.recommender.report.html.reports import Read

pytest.importorskip("starlette", reason="Starlette is not installed")

JOB = "resnet18-cifar10"
BODY = {"job": JOB, "limits": {"deadline_s": 86400, "max_machines": 4}}


class Client:
    """Requests to the application, in a loop of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.workers = Workers(small(), 1)
        self.server = Server(self.workers, Planning(self.workers))
        transport = httpx.ASGITransport(self.server.app())
        self.http = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")

    def get(self, path: str, **given: Any) -> httpx.Response:
        return self.loop.run_until_complete(self.http.get(path, **given))

    def post(self, path: str, **given: Any) -> httpx.Response:
        return self.loop.run_until_complete(self.http.post(path, **given))


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    made = Client()
    made.loop.run_until_complete(made.workers.start())
    yield made
    made.workers.end()
    made.loop.run_until_complete(made.http.aclose())
    made.loop.close()


async def slow(client: Client, receive: Callable[[], Awaitable[dict[str, Any]]]) -> int:
    """The status of a question whose body comes from `receive`."""
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/api/plan", "query_string": b"",
             "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
             "http_version": "1.1", "scheme": "http", "root_path": ""}  # fmt: skip
    await Server(client.workers, Planning(client.workers)).app()(scope, receive, send)
    return int(sent[0]["status"])


def test_an_answer_is_the_planners(client: Any):
    found = client.post("/api/plan", json=BODY)
    assert found.status_code == 200
    reported = found.json()
    jsonschema.validate(reported, json.loads(schema_text()))
    limits = Limits(deadline_s=86400.0, max_machines=4)
    answer = recommend(find_job(JOB), limits, catalog=small(), worth=True)
    request = PlanRequest(find_job(JOB), limits, catalog=small().version)
    assert reported == json.loads(json.dumps(document(answer, request)))


def test_exactly_as_many_machines_as_are_stated_are_planned(client: Any):
    reported = client.post("/api/plan", json={**BODY, "machines": 2}).json()
    counts = [sum(m["count"] for m in plan["machines"]) for plan in reported["plans"]]
    assert counts
    assert set(counts) == {2}


def test_a_frontier_has_its_schema(client: Any):
    reported = client.post("/api/frontier", json=BODY).json()
    jsonschema.validate(reported, json.loads(schema_text()))
    assert reported["frontier"]["points"]


def test_a_report_has_a_form_for_the_next_question(client: Any):
    found = client.get("/report", params={"job": JOB, "deadline": "24h"})
    read = Read(found.text)
    assert found.status_code == 200
    forms = [own for tag, own in read.elements if tag == "form"]
    assert [(form["action"], form["method"]) for form in forms] == [("report", "get")]
    assert "form-action 'self'" in found.text


def test_the_first_page_is_a_form(client: Any):
    read = Read(client.get("/").text)
    names = {own["name"] for tag, own in read.elements if tag in ("select", "input", "textarea")}
    own = {"model", "examples", "tokens", "epochs", "seq_len", "batch", "method", "stack"}
    assert (
        names == {"job", "deadline", "budget", "confidence", "account", "measured", "quotas"} | own
    )


def test_a_caller_for_whom_there_is_no_place_gets_a_retry_time(client: Any):
    full = Server(client.workers, Planning(client.workers, most_waiting=0)).app()
    http = httpx.AsyncClient(transport=httpx.ASGITransport(full), base_url="http://localhost")
    found = client.loop.run_until_complete(http.post("/api/plan", json=BODY))
    assert found.status_code == 503
    assert int(found.headers["retry-after"]) > 0
    jsonschema.validate(found.json(), json.loads(schema_text()))


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b"[" * 60_000, "application/json", 400),
        (b"{}", "text/plain", 415),
        (b" " * (MAX_BODY_BYTES + 1), "application/json", 413),
        (json.dumps({"job": "no"}).encode(), "application/json", 400),
        (b'{"job": "resnet18-cifar10", "limits": {"deadline_s": NaN}}', "application/json", 400),
        (b'{"job": "dlrm", "job": "resnet18-cifar10"}', "application/json", 400),
        (b'{"job": "dlrm", "limits": {"budget_usd": 1, "budget_usd": 2}}', "application/json", 400),
    ],
)
def test_hostile_bodies_are_refused_in_the_schema(
    client: Any, content: bytes, kind: str, status: int
):
    found = client.post("/api/plan", content=content, headers={"content-type": kind})
    assert found.status_code == status
    jsonschema.validate(found.json(), json.loads(schema_text()))


def test_a_body_that_never_ends_is_refused(client: Any, monkeypatch: pytest.MonkeyPatch):
    """Nothing arrives: a client that sends so slowly loses its place."""
    monkeypatch.setattr(app, "BODY_S", 0.0)

    async def receive() -> dict[str, Any]:
        return await asyncio.Event().wait()  # type: ignore[return-value]

    assert client.loop.run_until_complete(slow(client, receive)) == 408


def test_another_name_for_this_machine_is_refused(client: Any):
    """A page elsewhere whose name points to 127.0.0.1 cannot read answers."""
    assert client.get("/healthz", headers={"host": "evil.example"}).status_code == 421
    for host in ("localhost:8000", "127.0.0.1", "[::1]:8000"):
        assert client.get("/healthz", headers={"host": host}).status_code == 200


def test_nothing_of_a_request_is_reflected_unescaped_or_kept_by_browsers(client: Any):
    asked = {"job": "<script>alert(1)</script>", "region": '"><script>'}
    for path, status in (("/report", 400), ("/catalog", 400)):
        found = client.get(path, params=asked)
        assert found.status_code == status
        assert "script" not in {tag for tag, _ in Read(found.text).elements}
        assert found.headers["x-content-type-options"] == "nosniff"
        assert found.headers["cache-control"] == "no-store"


def test_a_form_says_what_is_wrong_and_can_be_corrected(client: Any):
    found = client.get("/report", params={"job": JOB, "deadline": "soon", "confidence": "2"})
    read = Read(found.text)
    assert found.status_code == 400
    assert [reported.partition(":")[0].split()[0] for reported in read.of("li")] == [
        "deadline",
        "confidence",
    ]
    fields = {own["name"]: own for tag, own in read.elements if tag in ("input", "select")}
    assert (fields["deadline"]["value"], fields["confidence"]["value"]) == ("soon", "2")
    chosen = [own["value"] for tag, own in read.elements if tag == "option" and "selected" in own]
    assert [each for each in chosen if each] == [JOB]


def test_wrong_filters_are_requested_again_as_filters(client: Any):
    found = client.get("/catalog", params={"name": "H100\x00", "region": "eu", "top": "many"})
    fields = {own["name"]: own for tag, own in Read(found.text).elements if tag == "input"}
    assert found.status_code == 400
    assert {name: own["value"] for name, own in fields.items()} == {"name": "H100�", "region": "eu"}


def test_the_catalog_page_lists_what_the_api_lists(client: Any):
    filters = {"market": "spot", "name": "a10", "top": "20"}
    offers = client.get("/api/catalog", params=filters).json()["offers"]
    found = client.get("/catalog", params={**filters, "provider": "", "region": ""})
    read = Read(found.text)
    assert found.status_code == 200
    assert [name.split()[0] for name in read.of("th", scope="row")] == [
        offer["instance_type"] for offer in offers
    ]
    chosen = [own["value"] for tag, own in read.elements if "selected" in own]
    assert chosen == ["", "spot", "20"]
    assert [own["value"] for _, own in read.elements if own.get("name") == "name"] == ["a10"]


def test_a_catalog_page_without_offers_says_so(client: Any):
    assert "No offer matches." in client.get("/catalog", params={"name": "abacus"}).text


def test_offers_are_filtered(client: Any):
    offers = client.get("/api/catalog", params={"market": "spot", "top": "3"}).json()["offers"]
    assert [offer["market"] for offer in offers] == ["spot"] * 3
    assert client.get("/api/catalog", params={"top": "0"}).status_code == 400


def dearer() -> Catalog:
    """The same machines at twice the price."""
    offers = small().offers
    twice = array("d", (2.0 * usd for usd in offers.usd_per_hour))
    return replace(small(), offers=replace(offers, usd_per_hour=twice), sha256="2" * 64)


def test_a_catalog_that_is_published_while_it_runs_answers_the_next_question(client: Any):
    """Plans, lists and health tell of it; the process that planned with the last one stays."""
    held = ["first"]
    catalogs = {"first": small(), "second": dearer()}
    source = CatalogSource(lambda: held[0], lambda: catalogs[held[0]])
    renew = client.server.renew

    def usd() -> tuple[float, float, str]:
        plan = client.post("/api/plan", json=BODY).json()["plans"][0]
        listed = client.get("/api/catalog", params={"top": "1"}).json()["offers"][0]
        health = client.get("/healthz").json()
        return plan["usd_per_hour"], listed["usd_per_hour"], health["catalog"]

    before, processes = usd(), set(client.workers.all)
    client.loop.run_until_complete(renew(source))
    assert usd() == before
    held[0] = "second"
    client.loop.run_until_complete(renew(source))
    after = usd()
    assert after == (
        pytest.approx(2.0 * before[0]),
        pytest.approx(2.0 * before[1]),
        dearer().version,
    )
    assert set(client.workers.all) == processes
    client.workers.catalog = small()
    assert usd() == before


def test_a_catalog_that_cannot_be_read_leaves_the_one_before(
    client: Any, caplog: pytest.LogCaptureFixture
):
    def load() -> Catalog:
        if marks == ["damaged"]:
            raise CatalogError("offers.csv.gz: its checksum is another")
        return small()

    marks = ["whole"]
    source = CatalogSource(lambda: marks[0], load)
    marks[0] = "damaged"
    client.loop.run_until_complete(client.server.renew(source))
    assert client.get("/healthz").json()["catalog"] == small().version
    assert "its checksum is another; catalog" in caplog.text


def test_metrics_count_requests(client: Any):
    client.get("/healthz")
    text = client.get("/metrics").text
    assert 'recommend_requests_total{path="/healthz",status="200"}' in text
    assert text.endswith("\n")


@pytest.mark.parametrize("digits", [309, 400, 4000, 5000])
def test_a_number_of_many_digits_is_refused(client: Any, digits: int):
    body = f'{{"job": "{JOB}", "limits": {{"deadline_s": {"9" * digits}}}, "machines": 1e999}}'
    found = client.post("/api/plan", content=body, headers={"content-type": "application/json"})
    assert found.status_code == 400


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nope", 404), ("GET", "/report/", 404), ("PUT", "/api/plan", 405),
     ("POST", "/report", 405), ("GET", "/<script>%F0%9F%98%80", 404)],
)  # fmt: skip
def test_what_is_not_served_is_an_error_document(client: Any, method: str, path: str, status: int):
    reply = client.loop.run_until_complete(client.http.request(method, path))
    assert (reply.status_code, reply.json()["code"]) == (status, "USAGE")
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert "location" not in reply.headers


def test_an_error_of_our_own_is_an_error_document(client: Any, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(app, "question_of", broken)
    found = client.post("/api/plan", json=BODY)
    assert found.status_code == 500
    assert "INTERNAL" in found.text
