"""The server: a JSON API with the schema of the command line, and the report as its page.

Starlette is loaded where a server is made, so that nothing else needs it.
"""

import json
import logging
from asyncio import FIRST_COMPLETED, create_task, sleep, timeout, to_thread, wait
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import field
from functools import cache, lru_cache
from importlib import import_module
from time import monotonic
from typing import Any

from recommender.catalogs.catalog import Catalog
from recommender.catalogs.frozen import dataclass
from recommender.errors import RecommendError, UsageError
from recommender.job.jobfile import find_job
from recommender.job.preset_files import presets
from recommender.report import catalog as catalog_view
from recommender.report import json_output
from recommender.serve import metrics, openapi, pages
from recommender.serve.catalog_source import CHECK_S, CatalogSource
from recommender.serve.planning import Busy, Planning
from recommender.serve.question import (
    Kind,
    OfferFilter,
    Question,
    filter_of,
    question_of,
    question_of_form,
)
from recommender.serve.workers import Workers
from recommender.text import shown

MAX_BODY_BYTES = 65_536
BODY_S = 10.0  # for a body to arrive
LOCAL = ("127.0.0.1", "localhost", "[::1]")  # names that a browser on this machine may use
JSON, HTML = "application/json", "text/html; charset=utf-8"
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}

MAX_LISTINGS = 32  # answers about offers that are kept, of 1.4 MB at most
GONE = 499  # nginx's code for a caller who left; nobody hears it
PAGES = ("/", "/report", "/catalog")  # for people: errors are shown as a page

log = logging.getLogger(__name__)

Handler = Callable[[Any], Awaitable[Any]]
Listing = Callable[[Catalog, OfferFilter], bytes]


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, code: str, *problems: str, retry_s: int | None = None) -> None:
        self.status, self.code, self.problems, self.retry_s = status, code, problems, retry_s
        super().__init__(*problems)

    def reply(self, path: str, given: Mapping[str, str]) -> Any:
        """The answer: a page where people ask, with what they had `given`, else the document."""
        later = {} if self.retry_s is None else {"Retry_After": f"{self.retry_s}"}
        if path in PAGES:
            catalog = path == "/catalog"
            form = pages.offer_form(given) if catalog else pages.plan_form(_jobs(), given)
            return _reply(pages.refusal_page(self.problems, form), HTML, self.status, **later)
        document = json_output.error_document(self.code, 2, self.problems)
        return _reply(_encoded(document), JSON, self.status, **later)


@dataclass(frozen=True)
class Server:
    """What requests are answered from."""

    workers: Workers
    planning: Planning
    counts: metrics.Metrics = field(default_factory=metrics.Metrics)
    hosts: tuple[str, ...] = LOCAL  # names under which it may be requested; "*": any
    source: CatalogSource | None = None  # looked at now and then; None: the catalog stays

    def app(self) -> Any:
        """The ASGI application; its processes live as long as it does."""
        route = import_module("starlette.routing").Route
        paths: dict[str, tuple[str, Handler]] = {
            "/report": ("GET", self._report),
            "/api/plan": ("POST", self._plan),
            "/api/frontier": ("POST", self._frontier),
            "/catalog": ("GET", self._listing(pages.catalog_page, HTML, top=50)),
            "/api/catalog": ("GET", self._listing(_offers_json, JSON, top=20)),
            "/metrics": ("GET", self._metrics),
            "/healthz": ("GET", self._health),
            **{path: ("GET", _constant(*known)) for path, known in self._known().items()},
        }
        routes = [
            route(path, self._guarded(path, handler), methods=[method])
            for path, (method, handler) in paths.items()
        ]
        made = import_module("starlette.applications").Starlette
        unknown = {404: _unknown, 405: _unknown}
        app = made(routes=routes, lifespan=self._life, exception_handlers=unknown)
        app.router.redirect_slashes = False  # to whatever host the request names
        return app

    @asynccontextmanager
    async def _life(self, _: Any) -> AsyncIterator[None]:
        renewals = create_task(self._renew_now_and_then())
        try:
            await self.workers.start()
            yield
        finally:
            renewals.cancel()
            self.workers.end()

    async def _renew_now_and_then(self) -> None:
        while self.source is not None:
            await sleep(CHECK_S)
            await self.renew(self.source)

    async def renew(self, source: CatalogSource) -> None:
        """Plan with the catalog that holds now; one that cannot be read leaves that before."""
        try:
            if await to_thread(source.renewed):
                self.workers.catalog = source.catalog
        except RecommendError as error:
            log.warning("%s; catalog %s stays", error, self.workers.catalog.version)

    # Requests for the planner

    async def _plan(self, request: Any) -> Any:
        question = question_of(await _body(request))
        return _reply(await self._planned(request, "plan", question), JSON)

    async def _frontier(self, request: Any) -> Any:
        question = question_of(await _body(request))
        return _reply(await self._planned(request, "frontier", question), JSON)

    async def _report(self, request: Any) -> Any:
        question = question_of_form(dict(request.query_params))
        return _reply(await self._planned(request, "report", question), HTML)

    async def _planned(self, request: Any, kind: Kind, question: Question) -> bytes:
        """The answer of a question, for as long as its caller stays.

        Pages and programs of one address stand in different lines: whoever looks at a page does not
        wait behind all that a program asks.
        """
        address = request.client.host if request.client else ""
        line = f"{address} {request.url.path in PAGES}"
        asked = create_task(self.planning.answer(kind, question, line))
        gone = create_task(_gone(request))
        try:
            await wait((asked, gone), return_when=FIRST_COMPLETED)
            if not asked.done():
                raise Refused(GONE, "USAGE", "the caller left")
            return asked.result()
        finally:
            gone.cancel()
            asked.cancel()

    # What is known already

    def _known(self) -> dict[str, tuple[bytes, str]]:
        """What is the same for all, by its path: made once, as the server starts."""
        listed = [{"name": name, "title": title} for name, title in _jobs()]
        return {
            "/": (pages.start_page(_jobs()), HTML),
            "/api/jobs": (_encoded({"jobs": listed}), JSON),
            "/openapi.json": (_encoded(openapi.document()), JSON),
        }

    def _listing(self, make: Listing, kind: str, top: int) -> Handler:
        """A handler that lists offers, off the event loop, and caches recent ones."""

        @lru_cache(MAX_LISTINGS)
        def kept(_: str, offer_filter: OfferFilter) -> bytes:
            return make(self.workers.catalog, offer_filter)

        async def listed(request: Any) -> Any:
            given = [(name, value) for name, value in request.query_params.multi_items()
                     if value or kind == JSON]  # fmt: skip
            offer_filter = filter_of(given, top)
            return _reply(await to_thread(kept, self.workers.edition, offer_filter), kind)

        return listed

    async def _health(self, _: Any) -> Any:
        health = {"status": "ok", "catalog": self.workers.catalog.version}
        return _reply(_encoded(health), JSON)

    async def _metrics(self, _: Any) -> Any:
        kept = sum(map(len, self.planning.kept.values()))
        text = self.counts.text(len(self.planning.asked), kept)
        return _reply(text.encode("utf-8"), metrics.TYPE)

    # Around every request

    def _guarded(self, path: str, handler: Handler) -> Handler:
        """A handler that reports refusals in words and counts requests."""

        async def guarded(request: Any) -> Any:
            begun = monotonic()
            try:
                self._check_host(request)
                _check_site(request)
                reply = await handler(request)
            except Refused as error:
                reply = error.reply(path, request.query_params)
            except Exception as error:
                reply = self._refused(error).reply(path, request.query_params)
            self.counts.count(path, reply.status_code, monotonic() - begun)
            return reply

        return guarded

    def _refused(self, error: Exception) -> "Refused":
        """The error document for a caller."""
        if isinstance(error, UsageError):
            return Refused(400, "USAGE", *error.problems)
        if isinstance(error, Busy):
            message = f"too many questions wait; ask again in {error.retry_s} s"
            return Refused(503, "BUSY", message, retry_s=error.retry_s)
        if isinstance(error, TimeoutError):
            return Refused(504, "TIMEOUT", self._too_long())
        if isinstance(error, RecommendError):
            return Refused(500, "INTERNAL", f"{error}")
        log.error("a request failed", exc_info=error)
        return Refused(500, "INTERNAL", f"internal error ({type(error).__name__}); see the log")

    def _too_long(self) -> str:
        return (
            f"planning took more than {self.workers.timeout_s:g} s and was ended; "
            "allow fewer machines, or ask the command line"
        )

    def _check_host(self, request: Any) -> None:
        """Refuse names that are not ours: a page elsewhere may have its name point here."""
        host = request.headers.get("host", "")
        name = host[: host.find("]") + 1] if host.startswith("[") else host.partition(":")[0]
        if "*" not in self.hosts and name not in self.hosts:
            raise Refused(
                421, "USAGE", "this server does not answer under that name (--allow-host)"
            )


async def _unknown(request: Any, error: Any) -> Any:
    """The error document for a path or a method that is none."""
    said = f"{request.scope['method']} {shown(request.scope['path'])}: {error.detail}"
    return Refused(error.status_code, "USAGE", said).reply("", {})


def _check_site(request: Any) -> None:
    """Refuse what a page of another site asks for; its links lead to the start page."""
    site = request.headers.get("sec-fetch-site", "none")
    if site not in ("same-origin", "none") and request.url.path != "/":
        raise Refused(403, "USAGE", "another site's page asks this; ask here")


async def _gone(request: Any) -> None:
    """Wait until the caller leaves."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


@cache
def _jobs() -> tuple[tuple[str, str], ...]:
    """Names and titles of the jobs that come with the tool."""
    return tuple((name, find_job(name).title) for name in presets())


async def _body(request: Any) -> Any:
    """The decoded body, of bounded size."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON:
        raise Refused(415, "USAGE", f"send {JSON}")
    content = bytearray()
    try:
        async with timeout(BODY_S):
            async for part in request.stream():
                content += part
                if len(content) > MAX_BODY_BYTES:
                    raise Refused(413, "USAGE", f"the body is larger than {MAX_BODY_BYTES} bytes")
    except TimeoutError:
        raise Refused(408, "USAGE", f"the body did not arrive within {BODY_S:g} s") from None
    try:
        return json.loads(content.decode("utf-8"), object_pairs_hook=_object)
    except (ValueError, RecursionError):
        raise UsageError("the body is not JSON") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; a repeated field is refused, since it is unclear which value is meant."""
    found = dict(pairs)
    if len(found) < len(pairs):
        counted = Counter(name for name, _ in pairs)
        twice = next(name for name, number in counted.items() if number > 1)
        raise UsageError(f"the body: field '{shown(twice)}' is given twice")
    return found


def _offers_json(catalog: Catalog, offer_filter: OfferFilter) -> bytes:
    found = catalog_view.matching(
        catalog, offer_filter.name, offer_filter.provider, offer_filter.region, offer_filter.market
    )
    return _encoded({"offers": catalog_view.offers(catalog, found, offer_filter.top).facts})


def _encoded(facts: Any) -> bytes:
    return json_output.dumps(facts).encode("utf-8")


def _reply(content: bytes, kind: str, status: int = 200, **more: str) -> Any:
    made = import_module("starlette.responses").Response
    return made(content, status, {**HEADERS, **_headers(more)}, media_type=kind)


def _headers(more: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in more.items()}


def _constant(content: bytes, kind: str) -> Handler:
    """A handler that always sends this content."""

    async def handler(_: Any) -> Any:
        return _reply(content, kind)

    return handler
