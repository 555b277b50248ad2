"""How well founded a plan's figures are: its speed, its prices and its spot law."""

from typing import Literal

from recommender.catalogs.frozen import dataclass

SpeedGrade = Literal["measured", "scaled", "guessed"]
# Asked: the median of what hosts of a marketplace ask, of whom one is rented.
PriceGrade = Literal["fresh", "old", "floor", "derived", "asked"]
# When booked machines begin was never published: assumed. Elsewhere it is as on demand.
BeginGrade = Literal["usual", "assumed"]
SpotGrade = Literal["measured", "carried over", "untraced", "stated"]
# Of vCPUs and memory; unpublished: the smallest that other clouds have with these GPUs.
SizeGrade = Literal["published", "unpublished"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """The weakest evidence among a plan's machines, and the spread it adds."""

    # Trainings on this GPU; its matrix rate only, trainings on others; its datasheet.
    speed: SpeedGrade
    # Has likely moved by less than a tenth; by more; is the provider's price floor, so it says
    # only that nobody bid; was computed from other prices.
    price: PriceGrade
    # Traces of these machines; of the GPU in machines of another size; of other GPUs, as nobody
    # traced this one; `--mtbf`. None where nothing is rented on spot.
    spot: SpotGrade | None
    price_age_days: float  # of the oldest price
    speed_sd: float  # of ln speed, of this GPU alone: part of `Estimate.speed_sigma`
    price_sd: float  # of ln of the price per hour
    hazard_sd: float  # of the logit of spot availability, besides what zones differ by
    begin: BeginGrade = "usual"
    size: SizeGrade = "published"

    @property
    def guesses(self) -> tuple[str, ...]:
        """What nobody measured, besides the speed, whose spread is known.

        Not sizes that are unpublished: the smallest are assumed, so they err against a plan.
        """
        price = self.price if self.price in ("derived", "floor") else ""
        spot = self.spot if self.spot == "untraced" else ""
        begin = self.begin if self.begin == "assumed" else ""
        # What that host asks, and whether it stays.
        host = ("asked", "host") if self.price == "asked" else ()
        return (*filter(None, (price, spot, begin)), *host)

    @property
    def weakest(self) -> str:
        """The weakest kind of evidence; "" if everything is measured and fresh."""
        found: tuple[str | None, ...] = (self.speed, self.price, self.spot, self.begin, self.size)
        order = (
            *("asked", "guessed", "untraced", "derived", "floor", "assumed", "unpublished"),
            *("old", "scaled", "carried over"),
        )
        return next((word for word in order if word in found), "")


SPEED_GRADES: tuple[SpeedGrade, ...] = ("measured", "scaled", "guessed")  # strongest first
PRICE_GRADES: tuple[PriceGrade, ...] = ("fresh", "old", "floor", "derived", "asked")
SPOT_GRADES: tuple[SpotGrade, ...] = ("measured", "stated", "carried over", "untraced")
