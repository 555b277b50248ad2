"""Short names for the arrays that every part passes around, and the quantile of every span."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Z_90 = 1.6449  # standard deviations on either side that hold 90 % of a normal law

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Each value once, ascending; `np.unique` imports `numpy.ma` at its first call, 8 ms."""
    ordered = np.sort(values, axis=None)
    first = np.ones(len(ordered), dtype=bool)
    first[1:] = ordered[1:] != ordered[:-1]
    found: NDArray[Any] = ordered[first]
    return found


class Table:
    """Columns of one length, the fields of a frozen dataclass: arrays, tuples or other tables."""

    __slots__: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(getattr(self, self.__slots__[0]))

    def take(self, rows: Ints | Bools) -> Self:
        """Some of the rows, in their order."""
        return type(self)(*(_taken(getattr(self, name), rows) for name in self.__slots__))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """The rows of several tables of arrays, one after the other."""
        columns = ([getattr(part, name) for part in parts] for name in cls.__slots__)
        return cls(*(np.concatenate(each) for each in columns))


def _taken(column: Any, rows: Ints | Bools) -> Any:
    if isinstance(column, np.ndarray):
        return column[rows]
    if isinstance(column, Table):
        return column.take(rows)
    return tuple(column[row] for row in rows.tolist())
