"""How quickly one machine reads and writes the object store of its region."""

import numpy as np
from numpy.typing import NDArray

# Parallel transfers reached 6.3 GB/s on p3dn (100 Gbit/s) and 8.0 on c5n.18xlarge: the public
# table of dvassallo/s3-benchmark (2019). The rest is assumed (2026-11).
STORE_SHARE = 0.6  # of a sustained NIC that object-store transfers reach
STORE_PART_BYTES_PER_S = 80e6  # one connection to S3 or GCS
STORE_PARTS = 64  # parallel connections of one machine
UNKNOWN_NIC_BYTES_PER_S = 1.25e9  # assumed where the catalog does not know: 10 Gbit/s


def object_store_rate(network_bytes_per_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bytes/s between one machine and its region's object store.

    min(0.6 × sustained NIC, 80 MB/s × 64 parallel parts); 10 Gbit/s where the NIC is unknown.
    """
    nic = np.where(network_bytes_per_s > 0, network_bytes_per_s, UNKNOWN_NIC_BYTES_PER_S)
    return np.minimum(STORE_SHARE * nic, STORE_PART_BYTES_PER_S * STORE_PARTS)
