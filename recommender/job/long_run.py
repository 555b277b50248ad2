"""What a long run loses besides its steps: evaluations, stops and repeated work.

One large laboratory had a goodput of 85 % in one run and of 97 % in the next (Gemini, arXiv
2312.11805, 2023), others state "more than 90 %" (Llama 3, arXiv 2407.21783; MegaScale, arXiv
2402.15627, 2024). A run is long by its FLOP, because its hours depend on the cluster: 1e22 FLOP
take seven hours on 1,024 H100 (40 % of their peak) and lose the whole of it.
"""

import math

TRAINED = 0.91  # of the time of a long run: between 85 and 97 %
# FLOP up to which runs lose nothing, and from which on they lose all of it: of the fifteen
# published runs three have 2.03e21 or fewer, the others 4e22 or more.
SHORT_FLOP = 1e21
LONG_FLOP = 1e22


def long_run_share(flop: float) -> float:
    """How long a run of so many FLOP is, from 0 to 1, by their logarithm."""
    share = math.log(max(flop, 1.0) / SHORT_FLOP) / math.log(LONG_FLOP / SHORT_FLOP)
    return min(max(share, 0.0), 1.0)


def trained_share(flop: float) -> float:
    """The share of the time of a run of so many FLOP in which it trains what counts."""
    found: float = TRAINED ** long_run_share(flop)
    return found
