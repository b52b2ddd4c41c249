"""Cycles of a systolic array: SCALE-Sim's analytical model of matrix products."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from lpsched.core.network import Product
from lpsched.network.products import ShapedLayer, Time, products_of_time

__all__ = ["CYCLE", "Dataflow", "SystolicArray", "cycles"]

#: What stays in the array while the rest streams through it.
Dataflow = Literal["output", "weight", "input"]

CYCLE = "cycle"

_OP: Mapping[Time, str] = {"forward": "F", "input_grad": "I", "weight_grad": "W"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SystolicArray:
    """An array of `rows` by `cols` units, with a dataflow for each of F, I and W."""

    rows: int
    cols: int
    dataflow: Mapping[str, Dataflow]

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> SystolicArray:
        """Read the parameters of a cost model; `dataflow` is one for all or a map."""
        given = parameters.get("dataflow", "output")
        flows = given if isinstance(given, Mapping) else dict.fromkeys("FIW", given)
        return cls(rows=parameters["rows"], cols=parameters["cols"], dataflow=flows)

    def time(self, shaped: ShapedLayer, time: Time) -> Fraction:
        """Cycles of one op: its products one after the other.

        Convolutions are products by im2col, one for each group. What is no product
        (pooling, normalisation, activations) runs beside the array and costs nothing,
        as in SCALE-Sim.
        """
        flow = self.dataflow[_OP[time]]
        found = products_of_time(shaped, time)
        return Fraction(sum(cycles(p, self.rows, self.cols, flow) for p in found))


def cycles(product: Product, rows: int, cols: int, dataflow: Dataflow) -> int:
    r"""Cycles of products M x K by K x N on an array of R x C units.

    .. math::
        (2R + C + \tau - 2) \lceil S_R / R \rceil \lceil S_C / C \rceil

    with :math:`S_R, S_C` the extents laid out along rows and columns and :math:`\tau`
    the one that streams:

    ========= =========== =========== ============
    dataflow  :math:`S_R` :math:`S_C` :math:`\tau`
    ========= =========== =========== ============
    output    M           N           K
    weight    K           N           M
    input     K           M           N
    ========= =========== =========== ============

    Each fold of the array is filled and drained by itself; operands are always there
    in time.

    Source: Samajdar et al., *A systematic methodology for characterizing scalability of
    DNN accelerators using SCALE-Sim* (ISPASS 2020), section III: table I, equations 1
    to 4.

    >>> cycles(Product(rows=64, inner=100, columns=64), 32, 32, "output")
    776
    """
    m, k, n = product.rows, product.inner, product.columns
    along_rows, along_columns, streamed = {
        "output": (m, n, k),
        "weight": (k, n, m),
        "input": (k, m, n),
    }[dataflow]
    folds = -(-along_rows // rows) * -(-along_columns // cols)
    return product.count * folds * (2 * rows + cols + streamed - 2)
