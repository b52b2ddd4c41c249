"""Times by the roofline: arithmetic or traffic, whichever takes longer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lpsched.core.network import Custom, Flatten, Select
from lpsched.network.products import ShapedLayer, Time, products_of_time

__all__ = ["Roofline", "elements_moved"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """A device: MACs and bytes per time unit, and bytes of a number."""

    peak: Fraction
    bandwidth: Fraction
    bytes_per_element: int = 4

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Roofline:
        """Read the parameters of a cost model."""
        return cls(
            peak=Fraction(parameters["peak"]),
            bandwidth=Fraction(parameters["bandwidth"]),
            bytes_per_element=parameters.get("bytes_per_element", 4),
        )

    def time(self, shaped: ShapedLayer, time: Time) -> Fraction:
        r"""Time of one op, exactly.

        .. math:: \max(\mathrm{MACs} / \mathrm{peak},
                  \mathrm{bytes} / \mathrm{bandwidth})

        A MAC is two floating-point operations. Bytes: `elements_moved`.

        Source: Williams, Waterman, Patterson, *Roofline* (CACM 52, 2009).
        """
        macs = sum(p.macs for p in products_of_time(shaped, time))
        moved = elements_moved(shaped, time) * self.bytes_per_element
        return max(macs / self.peak, moved / self.bandwidth)


def elements_moved(shaped: ShapedLayer, time: Time) -> int:
    """Numbers that one op reads and writes, each operand once.

    - F reads inputs and parameters and writes the output.
    - I reads the output's gradient, the parameters and what the layer saves, and writes
      the inputs' gradients.
    - W reads inputs and the output's gradient (and the output where it is saved) and
      writes the parameters' gradient.

    Of parameters outside matrix products (biases, scales, tables of an embedding) no
    more are touched than the output has elements. Layers that only rename elements move
    nothing. What stays inside a layer (attention's scores, a fused activation) is not
    moved.
    """
    kind, work = shaped.type, shaped.work
    if isinstance(kind, Flatten | Select) or (isinstance(kind, Custom) and kind.view):
        return 0
    inputs = shaped.batch * sum(math.prod(shape) for shape in shaped.operands)
    output = shaped.batch * math.prod(work.output)
    learned = work.parameters
    if not work.weight_macs:
        learned = min(learned, output)
    if time == "forward":
        return inputs + learned + output
    saved = output if shaped.saves in ("output", "both") else 0
    if time == "weight_grad":
        return inputs + output + saved + learned
    if shaped.saves in ("input", "both"):
        saved += inputs
    return output + learned + saved + inputs
