"""Ring collectives among processes of one machine over plain sockets: no torch, no MPI.

Each of n processes sends to the next and receives from the one before, n-1 times a chunk of
1/n of the message for reduce-scatter, as often again for all-gather; both make an all-reduce
(Patarasu and Yuan 2009). This is what Gloo does on processors.
"""

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from select import select
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import BenchError, WrongResult

TIMEOUT_S = 60.0
_LOCAL = "127.0.0.1"
_BLOCK = 2**18  # bytes handed to the kernel at once
_SCRIPT = "import sys; sys.path[:] = {path!r}; from {package}.ring import worker; worker()"


@dataclass(frozen=True, slots=True)
class Peer:
    """A process's place in the ring and its two connections."""

    rank: int
    size: int
    after: socket.socket
    before: socket.socket

    def exchange(self, out: memoryview, into: memoryview) -> None:
        """Send and receive at once; one after the other would block when buffers are full."""
        sent = got = 0
        while sent < len(out) or got < len(into):
            reads = [self.before] if got < len(into) else []
            writes = [self.after] if sent < len(out) else []
            ready, free, _ = select(reads, writes, [], TIMEOUT_S)
            if not ready and not free:
                raise TimeoutError("a neighbour in the ring does not answer")
            if free:
                sent += self.after.send(out[sent : sent + _BLOCK])
            if ready:
                n = self.before.recv_into(into[got : got + _BLOCK])
                if n == 0:
                    raise ConnectionError("a neighbour in the ring has ended")
                got += n


def reduce_scatter(peer: Peer, data: NDArray[np.float32]) -> NDArray[np.float32]:
    """Leave the sum over all processes of chunk rank+1 in place; other chunks hold part sums."""
    chunks = data.reshape(peer.size, -1)
    inbox = np.empty_like(chunks[0])
    for step in range(peer.size - 1):
        out, into = (peer.rank - step) % peer.size, (peer.rank - step - 1) % peer.size
        peer.exchange(_bytes(chunks[out]), _bytes(inbox))
        chunks[into] += inbox
    return data


def all_gather(peer: Peer, data: NDArray[np.float32]) -> NDArray[np.float32]:
    """Pass chunk rank+1 of every process on until all have all."""
    chunks = data.reshape(peer.size, -1)
    for step in range(peer.size - 1):
        out, into = (peer.rank + 1 - step) % peer.size, (peer.rank - step) % peer.size
        peer.exchange(_bytes(chunks[out]), _bytes(chunks[into]))
    return data


def all_reduce(peer: Peer, data: NDArray[np.float32]) -> NDArray[np.float32]:
    """Leave the sum over all processes everywhere."""
    return all_gather(peer, reduce_scatter(peer, data))


COLLECTIVES: dict[str, Callable[[Peer, NDArray[np.float32]], NDArray[np.float32]]] = {
    "all_reduce": all_reduce,
    "all_gather": all_gather,
    "reduce_scatter": reduce_scatter,
}


def measure_ring(
    processes: int, name: str, sizes: Sequence[int], repeats: int
) -> dict[int, tuple[float, ...]]:
    """Seconds of every repetition by message size in bytes; a repetition ends with the slowest.

    Raises WrongResult where a sum is wrong and BenchError where a process fails.
    """
    script = _SCRIPT.format(path=sys.path, package=__package__)
    call = [sys.executable, "-c", script]
    workers = [
        subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(processes)
    ]
    try:
        return _conduct(workers, name, tuple(sizes), repeats)
    finally:
        for each in workers:
            each.kill()
            each.communicate()


def _conduct(
    workers: "Sequence[subprocess.Popen[str]]", name: str, sizes: tuple[int, ...], repeats: int
) -> dict[int, tuple[float, ...]]:
    ports = [_answer(each)["port"] for each in workers]
    for rank, each in enumerate(workers):
        plan = {"rank": rank, "size": len(workers), "port": ports[(rank + 1) % len(workers)],
                "name": name, "sizes": sizes, "repeats": repeats}  # fmt: skip
        assert each.stdin is not None
        each.stdin.write(json.dumps(plan) + "\n")
        each.stdin.flush()
    found = [_answer(each) for each in workers]
    if not all(each["right"] for each in found):
        raise WrongResult(f"{name} among {len(workers)} processes gives a wrong sum")
    # Clocks of one machine agree, but each process starts when the one before lets it.
    return {
        size: tuple(
            max(times) for times in zip(*(each["seconds"][i] for each in found), strict=True)
        )
        for i, size in enumerate(sizes)
    }


def _answer(worker: "subprocess.Popen[str]") -> dict[str, Any]:
    assert worker.stdout is not None
    line = worker.stdout.readline()
    if not line:
        raise BenchError("a process of the ring failed; see its message above")
    answer: dict[str, Any] = json.loads(line)
    return answer


def worker() -> None:
    """Be one process of the ring: tell a port, get the plan, measure, tell the seconds."""
    with socket.create_server((_LOCAL, 0)) as server:
        server.settimeout(TIMEOUT_S)
        print(json.dumps({"port": server.getsockname()[1]}), flush=True)
        plan = json.loads(sys.stdin.readline())
        with socket.create_connection((_LOCAL, plan["port"]), TIMEOUT_S) as after:
            before, _ = server.accept()
            with before:
                for each in (after, before):
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                peer = Peer(plan["rank"], plan["size"], after, before)
                print(json.dumps(_measured(peer, plan)), flush=True)


def _measured(peer: Peer, plan: dict[str, Any]) -> dict[str, Any]:
    run = COLLECTIVES[plan["name"]]
    right = _right(peer, plan["name"])
    counts = [max(size // 4 // peer.size, 1) * peer.size for size in plan["sizes"]]
    messages = [np.ones(count, np.float32) for count in counts]
    for data in messages:
        run(peer, data)
    # In turns: what disturbs the machine for a while disturbs all sizes alike.
    rounds = [[_once(run, peer, data) for data in messages] for _ in range(plan["repeats"])]
    return {"seconds": list(zip(*rounds, strict=True)), "right": right}


def _once(
    run: Callable[[Peer, NDArray[np.float32]], object], peer: Peer, data: NDArray[np.float32]
) -> float:
    data[:] = 1  # sums of sums would overflow; not timed
    all_reduce(peer, np.zeros(peer.size, np.float32))  # a barrier: all start together
    start = perf_counter()
    run(peer, data)
    return perf_counter() - start


def _right(peer: Peer, name: str) -> bool:
    """Check random whole numbers, whose sums are exact, against a sum in float64."""
    shape = (peer.size, 3 * peer.size)
    inputs = np.random.default_rng(1).integers(-99, 100, shape).astype(np.float32)
    total = inputs.astype(np.float64).sum(0).reshape(peer.size, -1)
    own = (peer.rank + 1) % peer.size
    if name == "all_gather":
        data = np.zeros(shape[1], np.float32)
        data.reshape(peer.size, -1)[own] = total[own]
        return bool(np.array_equal(all_gather(peer, data).reshape(total.shape), total))
    data = COLLECTIVES[name](peer, inputs[peer.rank].copy()).reshape(total.shape)
    return bool(np.array_equal(data[own], total[own])) and (
        name == "reduce_scatter" or bool(np.array_equal(data, total))
    )


def _bytes(values: NDArray[np.float32]) -> memoryview:
    return values.data.cast("B")
