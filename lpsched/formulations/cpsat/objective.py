"""The figures that are minimised or capped, one function each."""

from __future__ import annotations

from ortools.sat.python.cp_model import IntVar

from lpsched.formulations.cpsat.variables import Expression, Variables

__all__ = [
    "add_cap",
    "add_communication",
    "add_objective",
    "add_receives",
    "add_staleness",
]


def _receivers(x: Variables, tensor: int) -> list[int]:
    """Consumers of a tensor that may sit on another device than its producer."""
    at, windows = x.scope.at, x.scope.windows
    producer = at.op_numbers[at.graph.tensors[tensor].producer]
    if not x.scope.occupies(producer):
        return []
    uses = (at.op_numbers[use.op] for use in at.graph.tensors[tensor].consumers)
    heads = dict.fromkeys(x.scope.twin[v] for v in uses if x.scope.occupies(v))
    return [v for v in heads if windows.may_part[producer, v]]


def add_receives(x: Variables, tensor: int) -> dict[int, IntVar]:
    r"""A device that consumes a tensor made elsewhere receives it, once.

    .. math:: y_{ip} \ge on_{vp} - on_{up}, \qquad
        z_{uv} + \sum_p y_{ip} \ge 1 \qquad \forall v \text{ consuming } i

    u is the producer. The second rows follow for integers; they help the search.
    """
    if tensor in x.receives:
        return x.receives[tensor]
    sent = x.receives.setdefault(tensor, {})
    consumers = _receivers(x, tensor)
    producer = x.scope.at.op_numbers[x.scope.at.graph.tensors[tensor].producer]
    for p in range(x.scope.at.num_devices):
        users = [x.on[v, p] for v in consumers if (v, p) in x.on]
        if users:
            sent[p] = x.cp.new_bool_var(f"receives[{tensor},{p}]")
            home = [x.on[producer, p]] if (producer, p) in x.on else []
            for user in users:
                x.cp.add_bool_or(sent[p], ~user, *home)
    for v in consumers:
        x.cp.add_bool_or(x.together(producer, v), *sent.values())
    return sent


def add_communication(x: Variables) -> Expression:
    r"""Size of what is sent in a period: a tensor once to each device that needs it.

    .. math:: \sum_i size_i \sum_p y_{ip}

    In units of the sizes' gcd. A tensor with one consumer is sent if that is not with
    its producer.
    """
    total: list[Expression] = []
    unit = x.scope.unit_of("communication")
    for i, tensor in enumerate(x.scope.at.graph.tensors):
        consumers = _receivers(x, i)
        if tensor.size > 0 and len(consumers) == 1:
            producer = x.scope.at.op_numbers[tensor.producer]
            total.append(tensor.size // unit * ~x.together(producer, consumers[0]))
        elif tensor.size > 0:
            total += [tensor.size // unit * y for y in add_receives(x, i).values()]
    return sum(total)


def add_staleness(x: Variables) -> Expression:
    r"""Weight updates between read and use, summed over the named delays.

    .. math:: \sum_d (k_d - 1)
    """
    return sum(x.delay.values()) - len(x.delay)


def add_cap(x: Variables, figure: Expression, cap: int) -> None:
    """A figure stays at or below a cap."""
    x.cp.add(figure <= cap)


def add_objective(x: Variables, figure: Expression, lower: int) -> None:
    """Minimise a figure that is known not to fall below a bound."""
    x.cp.add(figure >= lower)
    x.cp.minimize(figure)
