"""How `recommend serve` bears 50 clients that ask without a pause for a minute. By hand:

    python -P tests/speed/serve.py [--seconds N] [--workers N] [--silent N] [--cross-site N]

uvicorn uses uvloop and httptools where they are installed. Beside the clients so many connections
are open that send nothing, and so many reports are requested as pages of other sites do.
Kept: everybody asks what was asked before (plan, frontier, report, offers, first page). Cold: each
question is new, and the measurement lasts until all that had asked are answered; a client that is
told when to ask again does so then, and its time counts from when it asked first. A person at the
same address looks at one new report after another. Printed: requests by status, median, 95 % and
longest time, the same of the person, memory (PSS) of the server and its processes; JSON last.

Where others compute on the same machine, Linux shares its cores between sessions whatever their
`nice` (sched_autogroup); `echo -15 > /proc/self/autogroup` in a session of its own (setsid), as
root, puts it first.
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any

import httpx

CLIENTS, PORT = 50, 8719
JOB, DAY_S = "resnet50-imagenet", 86_400
QUESTION: dict[str, Any] = {"job": JOB, "limits": {"deadline_s": DAY_S}}
REPORT = {"job": JOB, "deadline": "24h"}

Ask = Callable[[httpx.AsyncClient, random.Random], Awaitable[httpx.Response]]


async def kept(http: httpx.AsyncClient, draw: random.Random) -> httpx.Response:
    """One of five requests that were answered before."""
    asked: tuple[Callable[[], Awaitable[httpx.Response]], ...] = (
        lambda: http.post("/api/plan", json=QUESTION),
        lambda: http.post("/api/frontier", json=QUESTION),
        lambda: http.get("/report", params=REPORT),
        lambda: http.get("/catalog", params={"name": "H100"}),
        lambda: http.get("/"),
    )
    return await draw.choice(asked)()


async def cold(http: httpx.AsyncClient, draw: random.Random) -> httpx.Response:
    """A deadline that was not requested before."""
    limits = {"deadline_s": 36_000 + draw.randrange(400_000)}
    return await patiently(lambda: http.post("/api/plan", json={"job": JOB, "limits": limits}))


async def looked_at(http: httpx.AsyncClient, draw: random.Random) -> httpx.Response:
    """A report that was not requested before."""
    params = {**REPORT, "deadline": f"{600 + draw.randrange(6_000)}m"}
    return await patiently(lambda: http.get("/report", params=params))


async def patiently(ask: Callable[[], Awaitable[httpx.Response]]) -> httpx.Response:
    """What is answered in the end."""
    while (found := await ask()).status_code == 503:
        await asyncio.sleep(int(found.headers["retry-after"]))
    return found


async def silence(number: int) -> None:
    """Connections that send nothing; one that the server closes is opened again a little later."""

    async def one() -> None:
        while True:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
                await reader.read()
                writer.close()
            except OSError:
                pass
            await asyncio.sleep(5)

    await asyncio.gather(*(one() for _ in range(number)))


async def strangers(number: int) -> Counter[str]:
    """What the images of another site's page are answered."""
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{PORT}", timeout=600.0) as http:
        params = [{**REPORT, "deadline": f"{hours}h"} for hours in range(30, 30 + number)]
        asked = (http.get("/report", params=each, headers=headers) for each in params)
        return Counter(str(answer.status_code) for answer in await asyncio.gather(*asked))


async def beside(ask: Ask, given: argparse.Namespace) -> dict[str, Any]:
    """The clients next to silent connections and strangers."""
    silent = asyncio.create_task(silence(given.silent))
    await asyncio.sleep(1)
    odd = asyncio.create_task(strangers(given.cross_site))
    person = asyncio.create_task(measured(looked_at, given.seconds, 1))
    found = await measured(ask, given.seconds, CLIENTS)
    silent.cancel()
    return {**found, "person": await person, "cross_site": dict(await odd)}


async def measured(ask: Ask, seconds: float, clients: int) -> dict[str, Any]:
    """So many clients at once, each its next request when it has the last answer."""
    took: list[float] = []
    statuses: Counter[str] = Counter()
    limits = httpx.Limits(max_connections=clients)
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{PORT}", timeout=600.0, limits=limits
    ) as http:
        if ask is kept:
            for number in range(20):
                await ask(http, random.Random(number))
        begun = monotonic()

        async def client(number: int) -> None:
            draw = random.Random(number)
            while monotonic() - begun < seconds:
                asked = monotonic()
                try:
                    statuses[str((await ask(http, draw)).status_code)] += 1
                except httpx.HTTPError as error:
                    statuses[type(error).__name__] += 1
                took.append(monotonic() - asked)

        await asyncio.gather(*map(client, range(clients)))
    took.sort()
    return {
        "requests": len(took),
        "statuses": dict(statuses),
        "seconds": [round(took[int(share * (len(took) - 1))], 3) for share in (0.5, 0.95, 1.0)],
        "wall_s": round(monotonic() - begun, 1),
    }


def family(process: int) -> Iterator[int]:
    """A process and all that it started."""
    yield process
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        for child in children.read_text().split():
            yield from family(int(child))


def memory_mib(process: int) -> list[int]:
    """Proportional set size of each process, the largest first."""
    found = []
    for each in family(process):
        lines = Path(f"/proc/{each}/smaps_rollup").read_text().splitlines()
        found.append(sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) // 1024)
    return sorted(found, reverse=True)


def served(folder: str, workers: str) -> "subprocess.Popen[bytes]":
    """A server that answers."""
    own = {f"XDG_{name}_HOME": folder for name in ("CONFIG", "DATA", "CACHE")}
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    env = {**kept, "HOME": folder, "RECOMMEND_NOW": "2026-11-21T12:00Z", **own}
    call = [sys.executable, "-P", "-m", "recommender", "serve", "--port", str(PORT)]
    server = subprocess.Popen([*call, "--workers", workers], cwd=folder, env=env)
    while True:
        try:
            httpx.get(f"http://127.0.0.1:{PORT}/healthz").raise_for_status()
            return server
        except httpx.HTTPError:
            sleep(0.2)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--workers", default="2")
    parser.add_argument("--silent", type=int, default=0)
    parser.add_argument("--cross-site", type=int, default=0)
    given = parser.parse_args()
    fast = [name for name in ("uvloop", "httptools") if find_spec(name)]
    found: dict[str, Any] = {"installed": fast}
    with TemporaryDirectory() as folder:
        for name, ask in (("kept", kept), ("cold", cold)):
            server = served(folder, given.workers)
            try:
                before = os.getloadavg()[0]
                found[name] = asyncio.run(beside(ask, given))
                found[name] |= {"mib": memory_mib(server.pid), "load": [before, os.getloadavg()[0]]}
            finally:
                server.terminate()
                server.wait()
            print(name, found[name])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
