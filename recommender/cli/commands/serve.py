"""`recommend serve`: answers and reports over HTTP."""

import sys
from functools import partial
from importlib import import_module
from importlib.util import find_spec

from recommender.cli.error_collector import ErrorCollector
from recommender.cli.flags import Word, Words, flag
from recommender.cli.groups import command_app
from recommender.cli.open_catalog import catalog_mark, load_catalog
from recommender.cli.options import CATALOG
from recommender.cli.screen import write_text
from recommender.errors import UsageError
from recommender.inputs import units
from recommender.serve.catalog_source import CatalogSource
from recommender.serve.connections import server_config
from recommender.serve.planning import Planning
from recommender.serve.workers import Workers

HOST, PORT = "127.0.0.1", "8000"
MAX_PORT, MAX_WORKERS = 65_535, 64
EVERYWHERE = ("0.0.0.0", "::")  # every address of this machine, and no name of it
LOCAL_ONLY = "It answers under the names of this machine only; --allow-host NAME adds one, * all.\n"
_port = partial(units.parse_whole, most=MAX_PORT, instead="write a port such as 8000")
_workers = partial(units.parse_whole, most=MAX_WORKERS, instead="write a number such as 2")
MISSING = "recommend serve needs Starlette and uvicorn: pip install starlette uvicorn"


def serve(
    host: str = flag("HOST", "Address to listen on (127.0.0.1).", default=HOST),
    port: str = flag("N", "Port to listen on (8000).", default=PORT),
    allow_host: Words = flag("NAME", "Host name that requests may use; * for any; repeatable."),
    workers: Word = flag("N", "Questions planned in parallel (2)."),
    catalog: Word = CATALOG,
) -> None:  # fmt: skip
    """Serve answers and reports over HTTP: a web page, a JSON API, OpenAPI, metrics.

    Only this machine can reach it, unless --host names another address. It stores nothing, has no
    accounts, and plans only the jobs that come with the tool.

    \b
    recommend serve
    recommend serve --host 0.0.0.0 --allow-host plans.example.org
    """
    errors = ErrorCollector()
    number = errors.parse(port, "--port", _port, int(PORT))
    count = errors.parse(workers, "--workers", _workers, 2)
    errors.raise_all()
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise UsageError(MISSING)
    from recommender.serve.app import LOCAL, Server

    names = (*LOCAL, *(allow_host or ()), *(() if host in EVERYWHERE else (host,)))
    source = CatalogSource(partial(catalog_mark, catalog), partial(load_catalog, catalog))
    pool = Workers(source.catalog, count)
    server = Server(pool, Planning(pool), hosts=names, source=source)
    named = f"[{host}]" if ":" in host else host
    write_text(f"http://{named}:{number}/ (Ctrl-C ends it)\n", sys.stderr)
    if host in EVERYWHERE and not allow_host:
        write_text(LOCAL_ONLY, sys.stderr)
    import_module("uvicorn").Server(server_config(server.app(), host, number)).run()


command = command_app("serve", serve)
