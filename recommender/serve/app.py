"""The server: a JSON API with the schema of the command line, and the report as its page.

Starlette is loaded where a server is made, so that nothing else needs it.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from importlib import import_module
from time import monotonic
from typing import Any

from recommender.catalogs.catalog import Catalog
from recommender.catalogs.frozen import dataclass
from recommender.errors import RecommendError, UsageError
from recommender.job.jobfile import find_job
from recommender.job.preset_files import presets
from recommender.plan.frontier import frontier_of
from recommender.planner.recommend import recommend
from recommender.report import catalog as catalog_view
from recommender.report import frontier as frontier_view
from recommender.report import json_output
from recommender.report.answer_frame import PlanRequest
from recommender.report.html.page import render
from recommender.serve import metrics, openapi, start_page
from recommender.serve.planning import Busy, Planning
from recommender.serve.question import Question, filter_of, question_of, question_of_form

MOST_BODY_BYTES = 65_536
LOCAL = ("127.0.0.1", "localhost", "[::1]")  # names that a browser on this machine may use
JSON, HTML = "application/json", "text/html; charset=utf-8"
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}

Handler = Callable[[Any], Awaitable[Any]]


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, code: str, *problems: str) -> None:
        self.status, self.code, self.problems = status, code, problems
        super().__init__(*problems)


@dataclass(frozen=True)
class Server:
    """What requests are answered from."""

    catalog: Catalog
    planning: Planning = field(default_factory=Planning)
    counts: metrics.Metrics = field(default_factory=metrics.Metrics)
    hosts: tuple[str, ...] = LOCAL  # names under which it may be asked for; "*": any

    def app(self) -> Any:
        """The ASGI application."""
        route = import_module("starlette.routing").Route
        paths: dict[str, tuple[str, Handler]] = {
            "/": ("GET", self._start),
            "/report": ("GET", self._report),
            "/api/plan": ("POST", self._plan),
            "/api/frontier": ("POST", self._frontier),
            "/api/jobs": ("GET", self._jobs),
            "/api/catalog": ("GET", self._offers),
            "/openapi.json": ("GET", self._openapi),
            "/healthz": ("GET", self._health),
            "/metrics": ("GET", self._metrics),
        }
        routes = [
            route(path, self._guarded(path, handler), methods=[method])
            for path, (method, handler) in paths.items()
        ]
        return import_module("starlette.applications").Starlette(routes=routes)

    # What is asked of the planner

    async def _plan(self, request: Any) -> Any:
        question = question_of(await _body(request))
        return _reply(await self.planning.answer("plan", question, self._plan_json), JSON)

    async def _frontier(self, request: Any) -> Any:
        question = question_of(await _body(request))
        return _reply(await self.planning.answer("frontier", question, self._frontier_json), JSON)

    async def _report(self, request: Any) -> Any:
        question = question_of_form(dict(request.query_params))
        return _reply(await self.planning.answer("report", question, self._page), HTML)

    def _request(self, question: Question) -> PlanRequest:
        job = find_job(question.job)
        return PlanRequest(job, question.limits, question.choice, catalog=self.catalog.version)

    def _plan_json(self, question: Question) -> bytes:
        asked = self._request(question)
        answer = recommend(asked.job, asked.limits, asked.choice, catalog=self.catalog, worth=True)
        return _encoded(json_output.document(answer, asked))

    def _frontier_json(self, question: Question) -> bytes:
        request = self._request(question)
        answer = recommend(
            request.job, request.limits, request.choice, catalog=self.catalog, followed=True
        )
        followed = () if answer.report is None else answer.report.followed
        found = frontier_of(followed, request.limits)
        return _encoded(frontier_view.document(found, answer, request))

    def _page(self, question: Question) -> bytes:
        request = self._request(question)
        answer = recommend(
            request.job, request.limits, request.choice, catalog=self.catalog, report=True
        )
        return render(answer, request, ask="report").encode("utf-8")

    # What is known already

    async def _start(self, _: Any) -> Any:
        return _reply(start_page.start_page(presets()).encode("utf-8"), HTML)

    async def _jobs(self, _: Any) -> Any:
        jobs = [{"name": name, "title": find_job(name).title} for name in presets()]
        return _reply(_encoded({"jobs": jobs}), JSON)

    async def _offers(self, request: Any) -> Any:
        asked = filter_of(request.query_params.multi_items())
        found = catalog_view.matching(
            self.catalog, asked.name, asked.provider, asked.region, asked.market
        )
        page = catalog_view.offers(self.catalog, found, asked.top)
        return _reply(_encoded({"offers": page.facts}), JSON)

    async def _openapi(self, _: Any) -> Any:
        return _reply(_encoded(openapi.document()), JSON)

    async def _health(self, _: Any) -> Any:
        return _reply(_encoded({"status": "ok", "catalog": self.catalog.version}), JSON)

    async def _metrics(self, _: Any) -> Any:
        kept = sum(map(len, self.planning.kept.values()))
        text = self.counts.text(len(self.planning.running), kept)
        return _reply(text.encode("utf-8"), metrics.TYPE)

    # Around every request

    def _guarded(self, path: str, handler: Handler) -> Handler:
        """A handler whose refusals are JSON, and whose requests are counted."""

        async def guarded(request: Any) -> Any:
            begun = monotonic()
            try:
                self._check_host(request)
                reply = await handler(request)
            except Refused as error:
                reply = _refusal(error.status, error.code, error.problems)
            except UsageError as error:
                reply = _refusal(400, "USAGE", error.problems)
            except Busy:
                reply = _refusal(503, "BUSY", ("too many questions are planned; ask again later",))
            except TimeoutError:
                reply = _refusal(504, "TIMEOUT", ("planning takes long; ask again later",))
            except RecommendError as error:
                reply = _refusal(500, "INTERNAL", (str(error),))
            self.counts.count(path, reply.status_code, monotonic() - begun)
            return reply

        return guarded

    def _check_host(self, request: Any) -> None:
        """Refuse names that are not ours: a page elsewhere may have its name point here."""
        host = request.headers.get("host", "")
        name = host[: host.index("]") + 1] if host.startswith("[") else host.partition(":")[0]
        if "*" not in self.hosts and name not in self.hosts:
            raise Refused(
                421, "USAGE", "this server does not answer under that name (--allow-host)"
            )


async def _body(request: Any) -> Any:
    """The decoded body, of bounded size."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON:
        raise Refused(415, "USAGE", f"send {JSON}")
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > MOST_BODY_BYTES:
            raise Refused(413, "USAGE", f"the body is larger than {MOST_BODY_BYTES} bytes")
    try:
        return json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError):
        raise UsageError("the body is no JSON") from None


def _encoded(facts: Any) -> bytes:
    return json_output.dumps(facts).encode("utf-8")


def _reply(content: bytes, kind: str, status: int = 200, **more: str) -> Any:
    made = import_module("starlette.responses").Response
    return made(content, status, {**HEADERS, **_headers(more)}, media_type=kind)


def _headers(more: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in more.items()}


def _refusal(status: int, code: str, problems: tuple[str, ...]) -> Any:
    told = json_output.error_document(code, 2, problems)
    later = {"Retry_After": "5"} if status in (503, 504) else {}
    return _reply(_encoded(told), JSON, status, **later)
