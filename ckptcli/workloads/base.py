"""What a workload is: a differentiable program that can be run again and again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ckptcli.autodiff.device import Device
from ckptcli.autodiff.tensor import Tensor

if TYPE_CHECKING:
    from ckptcli.workloads.graph_case import GraphCase


@dataclass(frozen=True, slots=True)
class ForwardResult:
    """What a forward pass leaves in the user's hands.

    Attributes:
        root: the tensor to call `backward()` on; the loss is the sum of its elements.
        parameters: name -> leaf that requires a gradient, in order of creation.
    """

    root: Tensor
    parameters: dict[str, Tensor]

    @property
    def loss(self) -> float:
        """The sum of the root's elements."""
        return float(self.root.numpy().sum())


@dataclass(frozen=True, slots=True)
class Exact:
    """What theory says of a program with one parameter: the loss, and its derivative."""

    loss: float
    gradient: float


@dataclass(frozen=True, slots=True)
class ByHand:
    """What a reverse sweep written by hand keeps between its two directions.

    Attributes:
        parts: name -> bytes that a sweep keeps which has all residuals, and one that replays.
        part_of: the name of a value in the program -> its part.
        others: the part of what has no name.
    """

    parts: Mapping[str, tuple[int, int]]
    part_of: Mapping[str, str]
    others: str


class Network(Protocol):
    """A workload whose parameters and input live on a device."""

    def forward(self) -> ForwardResult:
        """Run the forward pass; every call builds a new graph."""


class Workload(Protocol):
    """A program to profile. Workloads derive from it and take what stands here.

    Attributes:
        consumes: whether its passes let go of each parameter's gradient once it is complete.
        replays: whether its passes are measured as flat programs too.
    """

    consumes: bool = False
    replays: bool = False

    @property
    def title(self) -> str:
        """How the seed's device line describes it, `n = 1024, layers = 8`."""

    @property
    def settings(self) -> dict[str, object]:
        """What makes the workload reproducible: its `name`, and its options by their names."""

    @property
    def layer_count(self) -> int:
        """How many layers strategies can group; 0 for a program without layers."""

    def layer_name(self, layer: int) -> str:
        """How messages call a layer, counted from 0: `layer 3`."""
        return f"layer {layer}"

    @property
    def exact(self) -> Exact | None:
        """What the loss and its derivative have to be, where that is known from elsewhere."""
        return None

    @property
    def shown_parameter(self) -> str | None:
        """The parameter whose gradient's sum stands beside each pass; None for none."""
        return None

    @property
    def shrink_hint(self) -> str:
        """What to do where it needs too much memory, `use a smaller --n`."""

    @property
    def by_hand(self) -> ByHand | None:
        """What a reverse sweep written by hand keeps, for a program to be compared with one."""
        return None

    def passing(self, consumes: bool, replays: bool) -> Workload:
        """The same program, whose passes consume their gradients, or are replayed."""
        twin = copy(self)
        object.__setattr__(twin, "consumes", consumes)  # of a frozen one too
        object.__setattr__(twin, "replays", replays)
        return twin

    def load(self, device: Device) -> Network:
        """Place parameters and input on `device`."""

    def parameters(self) -> dict[str, Any]:
        """The parameters on the host, by the names that a forward pass gives them."""

    def with_parameters(self, arrays: Mapping[str, Any]) -> Workload:
        """The same program with other values of its parameters."""

    def as_graph(self) -> GraphCase | None:
        """The same program as a graph case: float64, without names and layers; None for a
        program that a graph file cannot hold.
        """
        return None

    def needed_bytes(self, strategies: Sequence[str]) -> int:
        """A lower bound of the memory that one pass needs, whichever of `strategies` needs most."""

    @property
    def loaded_bytes(self) -> int:
        """Parameters and input, which each strategy has of its own on a device that is not the
        host; 0 where that is not known before they are made.
        """
        return 0
