"""How connections are kept: one that asks nothing is closed, and takes no place from one that does.

uvicorn has time limits for idle connections between requests and for the end of the server, but
none for the head of a request: whoever opens connections and says nothing holds them all. Works
with each of its protocols, those of `uvicorn[standard]` (uvloop, httptools) included.
"""

from importlib import import_module
from typing import Any

HEAD_S = 10.0  # for the head of a request to arrive
MAX_HEAD_BYTES = 65_536  # of it, as h11 has it; httptools keeps whatever comes
MAX_OPEN = 4096  # connections; half of them may ask nothing: then the oldest that never asked ends
OTHER_FILES = 100  # lines to the planning processes, the catalog's files
END_S = 2  # for answers that are under way when the server is to end


def server_config(app: Any, host: str, port: int, **others: Any) -> Any:
    """The settings of uvicorn."""
    protocol = import_module("uvicorn.protocols.http.auto").AutoHTTPProtocol
    settings, most = {"http": protocol, **others}, _most_open()
    settings["http"] = impatient(settings["http"], most // 2)
    # All that wait are accepted before any is heard: those that ask must not be the oldest by then.
    return import_module("uvicorn").Config(
        app, host=host, port=port, log_level="warning", access_log=False, server_header=False,
        ws="none", limit_concurrency=most, backlog=most // 4, timeout_graceful_shutdown=END_S,
        **settings,
    )  # fmt: skip


def _most_open() -> int:
    """`MAX_OPEN`, or what the system allows a process."""
    try:
        resource: Any = import_module("resource")
    except ImportError:  # Windows has no such limit
        return MAX_OPEN
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_OPEN + OTHER_FILES
    unlimited = most == resource.RLIM_INFINITY
    if now != resource.RLIM_INFINITY and now < wanted:
        now = wanted if unlimited else min(wanted, most)
        resource.setrlimit(resource.RLIMIT_NOFILE, (now, most))
    return MAX_OPEN if now == resource.RLIM_INFINITY else min(MAX_OPEN, now - OTHER_FILES)


def impatient(protocol: Any, most_silent: int) -> Any:
    """A protocol of uvicorn that closes silent connections."""
    silent: dict[Any, Any] = {}  # their time limits, the oldest first

    class Impatient(protocol):  # type: ignore[misc]
        """One connection."""

        answered, head_bytes = False, 0

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._limit()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self.head_bytes += len(data)
            if self._is_asked():
                self._lift()
            elif self.head_bytes > MAX_HEAD_BYTES:
                self.transport.close()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self.answered, self.head_bytes = True, 0
            self._lift()
            self._limit()

        def connection_lost(self, exc: Exception | None) -> None:
            self._lift()
            super().connection_lost(exc)

        def _is_asked(self) -> bool:
            return self.cycle is not None and not self.cycle.response_complete

        def _limit(self) -> None:
            if self._is_asked():
                return
            silent[self] = self.loop.call_later(HEAD_S, self.transport.close)
            if len(silent) > most_silent:
                oldest = next((each for each in silent if not each.answered), next(iter(silent)))
                oldest._lift()
                oldest.transport.close()

        def _lift(self) -> None:
            if self in silent:
                silent.pop(self).cancel()

    return Impatient
