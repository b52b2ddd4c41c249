"""Devices that can be swapped, and classes of things that can."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from lpsched.analysis.at_period import AtPeriod

__all__ = ["equal_devices", "swap_classes"]


def equal_devices(at: AtPeriod) -> list[list[int]]:
    """Classes of devices any two of which can be swapped; every device in one.

    They have the same memory, allow the same ops with the same durations, and no
    transfer tells them apart.
    """
    memory = [device.memory for device in at.graph.devices]
    transfers = list({matrix.tobytes(): matrix for matrix in at.transfers}.values())

    def can_swap(p: int, q: int) -> bool:
        order = np.arange(at.num_devices + 1)
        order[[p, q]] = q, p
        return (
            memory[p] == memory[q]
            and bool((at.allowed[:, order] == at.allowed).all())
            and bool((at.durations[:, order] == at.durations)[at.allowed].all())
            and all((m[np.ix_(order, order)] == m).all() for m in transfers)
        )

    return swap_classes(range(at.num_devices), can_swap)


def swap_classes(
    members: Iterable[int], can_swap: Callable[[int, int], bool]
) -> list[list[int]]:
    """Group by swapping, an equivalence: (a c) = (a b)(b c)(a b)."""
    classes: list[list[int]] = []
    for member in members:
        for group in classes:
            if can_swap(group[0], member):
                group.append(member)
                break
        else:
            classes.append([member])
    return classes
