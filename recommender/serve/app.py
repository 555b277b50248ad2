"""The server: a JSON API with the schema of the command line, and the report as its page.

Starlette is loaded where a server is made, so that nothing else needs it.
"""

import json
from asyncio import to_thread
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import field
from importlib import import_module
from time import monotonic
from typing import Any

from recommender.catalogs.frozen import dataclass
from recommender.errors import RecommendError, UsageError
from recommender.job.jobfile import find_job
from recommender.job.preset_files import presets
from recommender.report import catalog as catalog_view
from recommender.report import json_output
from recommender.serve import metrics, openapi, start_page
from recommender.serve.planning import Busy, Planning
from recommender.serve.question import OfferFilter, filter_of, question_of, question_of_form
from recommender.serve.workers import Workers

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

    workers: Workers
    planning: Planning
    counts: metrics.Metrics = field(default_factory=metrics.Metrics)
    hosts: tuple[str, ...] = LOCAL  # names under which it may be asked for; "*": any

    def app(self) -> Any:
        """The ASGI application; its processes live as long as it does."""
        route = import_module("starlette.routing").Route
        paths: dict[str, tuple[str, Handler]] = {
            "/report": ("GET", self._report),
            "/api/plan": ("POST", self._plan),
            "/api/frontier": ("POST", self._frontier),
            "/api/catalog": ("GET", self._offers),
            "/metrics": ("GET", self._metrics),
            **{path: ("GET", _telling(*known)) for path, known in self._known().items()},
        }
        routes = [
            route(path, self._guarded(path, handler), methods=[method])
            for path, (method, handler) in paths.items()
        ]
        made = import_module("starlette.applications").Starlette
        return made(routes=routes, lifespan=self._life)

    @asynccontextmanager
    async def _life(self, _: Any) -> AsyncIterator[None]:
        try:
            await self.workers.start()
            yield
        finally:
            self.workers.end()

    # What is asked of the planner

    async def _plan(self, request: Any) -> Any:
        return _reply(await self.planning.answer("plan", question_of(await _body(request))), JSON)

    async def _frontier(self, request: Any) -> Any:
        question = question_of(await _body(request))
        return _reply(await self.planning.answer("frontier", question), JSON)

    async def _report(self, request: Any) -> Any:
        question = question_of_form(dict(request.query_params))
        return _reply(await self.planning.answer("report", question), HTML)

    # What is known already

    def _known(self) -> dict[str, tuple[bytes, str]]:
        """What is the same for all, by its path: made once, as the server starts."""
        jobs = [{"name": name, "title": find_job(name).title} for name in presets()]
        health = {"status": "ok", "catalog": self.workers.catalog.version}
        return {
            "/": (start_page.start_page(presets()).encode("utf-8"), HTML),
            "/api/jobs": (_encoded({"jobs": jobs}), JSON),
            "/openapi.json": (_encoded(openapi.document()), JSON),
            "/healthz": (_encoded(health), JSON),
        }

    async def _offers(self, request: Any) -> Any:
        asked = filter_of(request.query_params.multi_items())
        return _reply(await to_thread(self._offers_json, asked), JSON)

    def _offers_json(self, asked: OfferFilter) -> bytes:
        catalog = self.workers.catalog
        found = catalog_view.matching(
            catalog, asked.name, asked.provider, asked.region, asked.market
        )
        return _encoded({"offers": catalog_view.offers(catalog, found, asked.top).facts})

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
            except Busy as error:
                said = f"too many questions wait; ask again in {error.retry_s} s"
                reply = _refusal(503, "BUSY", (said,), Retry_After=f"{error.retry_s}")
            except TimeoutError:
                reply = _refusal(504, "TIMEOUT", (self._too_long(),))
            except RecommendError as error:
                reply = _refusal(500, "INTERNAL", (str(error),))
            self.counts.count(path, reply.status_code, monotonic() - begun)
            return reply

        return guarded

    def _too_long(self) -> str:
        return (
            f"planning took more than {self.workers.timeout_s:g} s and was ended; "
            "allow fewer machines, or ask the command line"
        )

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


def _refusal(status: int, code: str, problems: tuple[str, ...], **more: str) -> Any:
    told = json_output.error_document(code, 2, problems)
    return _reply(_encoded(told), JSON, status, **more)


def _telling(content: bytes, kind: str) -> Handler:
    """A handler that tells the same each time."""

    async def told(_: Any) -> Any:
        return _reply(content, kind)

    return told
