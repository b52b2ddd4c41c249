"""Exact times and sizes of every layer, by a cost model; nothing is rounded here."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from lpsched.core.graph import DeviceId
from lpsched.core.instance import CostModel, CostModelName
from lpsched.core.network import Amount, Cost, Layer, MemoryDeltas, Network
from lpsched.errors import Fault
from lpsched.network.layers import Work
from lpsched.network.products import ShapedLayer, Time, products_of_time
from lpsched.network.roofline import Roofline
from lpsched.network.shapes import layer_paths, operand_shapes, works_of
from lpsched.network.systolic import CYCLE, SystolicArray

__all__ = [
    "MAC",
    "LayerCosts",
    "cost_model_of",
    "layer_costs",
    "size_unit_of",
    "time_unit_of",
]

MAC = "MAC"
ELEMENT = "element"
TICK = "tick"

_Price: TypeAlias = Callable[[ShapedLayer, Time], Fraction]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerCosts:
    """Exact costs of one layer; None for an op that the layer does not have.

    Attributes
    ----------
    forward, input_grad, weight_grad, update : Amount or None
        Times of F, I, W and U, of all parts together, in the model's unit.
    output, parameters : Fraction
        Sizes, in the network's size unit; of a layer that shares weights, theirs.
    memory : MemoryDeltas or None
        Deltas of memory, in the network's size unit, where they are stated.
    """

    forward: Amount
    input_grad: Amount | None
    weight_grad: Amount | None
    update: Amount | None
    output: Fraction
    parameters: Fraction
    memory: MemoryDeltas | None = None


def cost_model_of(network: Network, costs: CostModel) -> CostModelName:
    """Return the cost model asked for, or the one that the network's file implies.

    Without a word, times come from the file if it states their unit (other than MAC)
    or if no layer has a type; else MACs are counted.
    """
    if costs.model is not None:
        return costs.model
    measured = network.time_unit not in (None, MAC)
    typed = any(layer.type is not None for layer in network.layers)
    return "macs" if typed and not measured else "given"


def time_unit_of(network: Network, costs: CostModel) -> str:
    """Return the unit of the times that the cost model gives."""
    model = cost_model_of(network, costs)
    if model == "given":
        return network.time_unit or TICK
    if model == "roofline":
        return str(costs.parameters.get("time_unit", TICK))
    return MAC if model == "macs" else CYCLE


def size_unit_of(network: Network) -> str:
    """Return the unit of the network's sizes."""
    return network.size_unit or ELEMENT


def layer_costs(
    network: Network,
    costs: CostModel,
    devices: Sequence[DeviceId],
    *,
    microbatches: int | None = None,
    microbatch: int = 0,
) -> tuple[dict[str, LayerCosts], list[Fault]]:
    """Exact costs of every layer, in topological order, or the faults.

    With the model ``macs``, F costs the multiply-accumulates of the layer for the
    whole batch, W those with parameters, I those with parameters and twice those of
    two activations (each factor has its own gradient). ``systolic`` and ``roofline``
    price the same products (`lpsched.network.systolic`, `lpsched.network.roofline`).
    Times that the file gives in the model's unit, or in none, stand for what would be
    counted. With ``given``, every time comes from the file. W exists where the layer
    is trainable and has parameters; I where a predecessor or an ancestor of it has a W,
    or where the time of I is given.

    Parameters
    ----------
    microbatches : int or None
        How many times a list per microbatch must hold; None where there may be none.
    microbatch : int
        The entry of such lists that is wanted.
    """
    counter = _Counter(network, costs, devices, microbatches, microbatch)
    found = {layer.name: counter.costs(layer) for layer in network.ordered_layers}
    return found, counter.faults


class _Counter:
    """Counts layer by layer, in topological order, and gathers faults."""

    def __init__(
        self,
        network: Network,
        costs: CostModel,
        devices: Sequence[DeviceId],
        microbatches: int | None,
        microbatch: int,
    ) -> None:
        self.network = network
        self.works, self.unknown, self.faults = works_of(network)
        self._paths = layer_paths(network)
        self._price = _PRICES[cost_model_of(network, costs)](costs.parameters)
        self._unit = time_unit_of(network, costs)
        self._saves = costs.saves
        self._devices = devices
        self._microbatches = microbatches
        self._microbatch = microbatch
        # A layer whose shape was complained of, itself or through an input.
        known = self.works.keys() | self.unknown.keys()
        self._reported = {x.name for x in network.layers if x.name not in known}
        # Layers whose output's gradient is needed: they or an ancestor learn.
        self._needed: set[str] = set()
        counts = self._price is None or network.time_unit in (None, self._unit)
        self._times_count = counts

    def costs(self, layer: Layer) -> LayerCosts:
        """Costs of one layer; a fault is noted and counts as 0."""
        owner = self.network.layer_by_name[layer.shares or layer.name]
        parameters = self._parameters(owner)
        self._check_parameters(layer, owner, parameters)
        input_grad = weight_grad = update = None
        if self._has_input_grad(layer):
            input_grad = self._time(layer, "input_grad")
        if layer.trainable and self._has_parameters(owner, parameters):
            weight_grad = self._time(layer, "weight_grad")
            update = self._update(layer)
        if weight_grad is not None or self._needed.intersection(layer.inputs):
            self._needed.add(layer.name)
        return LayerCosts(
            forward=self._time(layer, "forward"),
            input_grad=input_grad,
            weight_grad=weight_grad,
            update=update,
            output=self._output(layer),
            parameters=parameters,
            memory=layer.memory,
        )

    def _fault(self, layer: Layer, key: str, text: str) -> None:
        path = f"{self._paths[layer.name]}.{key}".rstrip(".")
        self.faults.append(Fault(path, text))

    def _has_input_grad(self, layer: Layer) -> bool:
        given = self._times_count and layer.input_grad is not None
        return given or not self._needed.isdisjoint(layer.inputs)

    def _has_parameters(self, owner: Layer, parameters: Fraction) -> bool:
        """Tell whether weights exist; a time of W given without a size implies so.

        With deltas of memory a W of no time does, too: it gives memory back.
        """
        if owner.type is not None or owner.parameters is not None:
            return parameters > 0
        stated = owner.memory is not None and owner.weight_grad is not None
        return stated or _is_positive(owner.weight_grad)

    def _check_parameters(
        self, layer: Layer, owner: Layer, parameters: Fraction
    ) -> None:
        if layer.parameters not in (None, parameters):
            text = f"{owner.name!r} owns the weights and has {parameters}"
            self._fault(layer, "parameters", text)
        lost = self._times_count and _is_positive(layer.weight_grad)
        if lost and not self._has_parameters(owner, parameters):
            text = "a layer without parameters has no weight gradient"
            self._fault(layer, "weight_grad", text)

    def _time(self, layer: Layer, key: Time) -> Amount:
        given = self._of_microbatch(layer, key)
        if self._times_count and given is not None:
            return self._checked(layer, key, given)
        if self._price is None:
            text = "required, but missing (0 if it takes no time)"
            self._fault(layer, key, text)
            return Fraction(0)
        work = self._work(layer, key)
        if layer.type is None or layer.name not in self.works:
            return Fraction(0)
        shaped = ShapedLayer(
            layer=layer,
            type=layer.type,
            operands=operand_shapes(self.network, layer, self.works),
            work=work,
            batch=self.network.batch,
            saves=layer.saves or self._saves,
        )
        return self._price(shaped, key)

    def _of_microbatch(self, layer: Layer, key: Time) -> Amount | None:
        """Return the given time; of a list, the entry of the microbatch counted."""
        given: Cost | None = getattr(layer, key)
        if not isinstance(given, tuple):
            return given
        if self._microbatches is None:
            text = "a list per microbatch goes with `training.mode: synchronous`"
        elif len(given) != self._microbatches:
            text = f"expected a time for each of {self._microbatches} microbatches"
            text = f"{text}, got {len(given)}"
        else:
            return given[self._microbatch]
        self._fault(layer, key, text)
        return Fraction(0)

    def _checked(self, layer: Layer, key: str, given: Amount) -> Amount:
        """Return the given time; a map needs an entry for each device, no other."""
        if not isinstance(given, Mapping):
            return given
        wrong = [(n, "unknown device") for n in given if n not in self._devices]
        wrong += [
            (n, "no entry for the device") for n in self._devices if n not in given
        ]
        for name, text in wrong:
            self._fault(layer, key, f"{text} {name!r}")
        return Fraction(0) if wrong else given

    def _update(self, layer: Layer) -> Amount | None:
        """Time of U; no MACs where the file gives it in another unit."""
        if layer.update is None or layer.shares is not None:
            return None
        if isinstance(layer.update, tuple):
            text = "expected one time; there is one update an iteration"
            self._fault(layer, "update", text)
            return Fraction(0)
        if not self._times_count:
            return Fraction(0)
        return self._checked(layer, "update", layer.update)

    def _output(self, layer: Layer) -> Fraction:
        if layer.output is not None:
            return layer.output
        if layer.type is None:
            return Fraction(0)
        work = self._sized(layer, "output")
        return Fraction(self.network.batch * math.prod(work.output))

    def _parameters(self, owner: Layer) -> Fraction:
        if owner.parameters is not None:
            return owner.parameters
        if owner.type is None:
            return Fraction(0)
        return Fraction(self._sized(owner, "parameters").parameters)

    def _sized(self, layer: Layer, key: str) -> Work:
        if size_unit_of(self.network) == ELEMENT:
            return self._work(layer, key)
        if layer.name not in self._reported:
            self._reported.add(layer.name)
            unit = self.network.size_unit
            text = (
                f"required: shapes count elements, and the file's sizes are in {unit}"
            )
            self._fault(layer, key, text)
        return Work(output=())

    def _work(self, layer: Layer, key: str) -> Work:
        """Work of a layer; complain once where its shape is unknown, not after it."""
        if layer.name in self.works:
            return self.works[layer.name]
        if not self._reported & {layer.name, *layer.inputs}:
            if layer.type is not None:
                text = f"needs the shape of its input, but {self.unknown[layer.name]}"
                self._fault(layer, "", text)
            elif self._times_count:
                text = "required: the layer has no `type` to count it from"
                self._fault(layer, key, text)
            else:
                unit = self.network.time_unit
                text = f"times in {unit} are no {self._unit}s"
                text = f"the layer has no `type`, and {text}"
                self._fault(layer, "", text)
        self._reported.add(layer.name)
        return Work(output=())


def _is_positive(cost: Cost | None) -> bool:
    if isinstance(cost, Mapping):
        return any(value > 0 for value in cost.values())
    values = cost if isinstance(cost, tuple) else [cost or Fraction(0)]
    return any(value > 0 for value in values)


def _macs(shaped: ShapedLayer, time: Time) -> Fraction:
    return Fraction(sum(product.macs for product in products_of_time(shaped, time)))


#: From a model's own parameters to the price of an op; None where the file has it.
_PRICES: Mapping[CostModelName, Callable[[Mapping[str, Any]], _Price | None]] = {
    "given": lambda _parameters: None,
    "macs": lambda _parameters: _macs,
    "systolic": lambda parameters: SystolicArray.of(parameters).time,
    "roofline": lambda parameters: Roofline.of(parameters).time,
}
