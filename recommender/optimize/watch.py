"""What a running search shows of itself, and the request that it end."""

from dataclasses import dataclass

INFINITE = float("inf")


@dataclass(slots=True)
class Watch:
    """The running search, for a display of its progress or a request to stop it.

    The search writes what it has done and reads `asked`; the user interface reads and calls `stop`,
    so neither calls the other.
    """

    running: bool = False
    may_stop: bool = False  # whether it can end early, with what is left said
    asked: bool = False  # to end
    simulated: int = 0  # plans
    best_goal: float = INFINITE
    gap: float = 1.0  # by which share a plan not yet simulated may be better; only falls

    def show(self, simulated: int, best_goal: float, bound: float = 0.0) -> None:
        """What was done so far: nothing that is left has a goal below the bound."""
        self.running, self.simulated, self.best_goal = True, simulated, best_goal
        if best_goal < INFINITE:
            self.gap = min(self.gap, max(1.0 - bound / best_goal, 0.0))

    def close(self) -> None:
        """The search is over."""
        self.running = self.may_stop = False

    def stop(self) -> bool:
        """Ask for the best plan so far; return whether a running search can still stop."""
        if not self.may_stop or self.asked:
            return False
        self.asked = True
        return True
