"""The catalog that a server plans with, read again when the version changes."""

from collections.abc import Callable

from recommender.catalogs.catalog import Catalog

CHECK_S = 30.0  # between looks at what holds


class CatalogSource:
    """A catalog and where it comes from.

    `mark` costs next to nothing and says something else when `load` would give another catalog.
    """

    def __init__(self, mark: Callable[[], str], load: Callable[[], Catalog]) -> None:
        self.mark, self.load = mark, load
        self.seen = mark()  # before it is read: what is published meanwhile is seen next time
        self.catalog = load()

    def renewed(self) -> bool:
        """Read the catalog again if its version has changed, and say whether it has.

        Raises:
            CatalogError: what holds now cannot be read; the catalog stays as it was.
        """
        mark = self.mark()
        if mark == self.seen:
            return False
        self.seen = mark
        self.catalog = self.load()
        return True
