"""What stories share: every input is an order."""

from abc import abstractmethod
from dataclasses import dataclass

from statetrack.tasks.finite import FiniteTask, WeightedTask

Order = tuple[str, int, int]  # a verb, and the numbers of the two things it is about


@dataclass(frozen=True, kw_only=True)
class OrdersTask(FiniteTask, WeightedTask):
    """A task whose inputs are orders such as ('swap', 0, 2)."""

    @property
    @abstractmethod
    def orders(self) -> tuple[Order, ...]:
        """What every input orders."""

    @property
    def inputs(self) -> int:
        return len(self.orders)
