"""Whatever a file holds, it is built or refused with faults; nothing else happens."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from small_networks import network_document, timed

from lpsched.core.io import checked, instance_from_document
from lpsched.errors import FormatError, InstanceError, UnsupportedError
from lpsched.network import compile_instance

DOCUMENT: dict[str, Any] = {
    "schema": "lpsched/instance/1",
    "name": "whole",
    "network": network_document(
        {"name": "conv", "type": "conv2d", "out": 4, "kernel": [3, 3], "padding": 1},
        {"name": "bn", "type": "batchnorm", "activation": "relu", "saves": "both"},
        {"name": "pool", "type": "max_pool", "kernel": 2},
        {"name": "side", "type": "conv2d", "out": 4, "kernel": 1, "inputs": ["pool"]},
        {"name": "add", "type": "add", "inputs": ["pool", "side"]},
        {"name": "flat", "type": "flatten"},
        {"name": "fc", "type": "linear", "out": 64},
        timed("own", 3, 4, 5, output=64, parameters=4160, update=1),
        {"name": "tied", "type": "linear", "out": 64, "shares": "fc", "inputs": ["fc"]},
        input=[3, 8, 8],
        batch=2,
        time_unit="MAC",
    ),
    "devices": [{"id": "d0", "speed": "3/2", "memory": 10**6}, {"id": "d1"}],
    "link": {"latency": 1, "units_per_tick": 4},
    "links": [{"src": "d0", "dst": "d1", "latency": 2}],
    "costs": {"model": "macs", "tick": 10, "rounding": "up", "saves": "none"},
    "training": {"split": {"F": 2, "I": 2, "W": 1}, "staleness": {"max": 3}},
    "placement": {"pins": {"conv": "d0"}, "colocate": [["fc", "tied"]]},
    "objective": ["period"],
    "known": {"period": {"value": 8, "bound": 8}},
}
STRANGE: tuple[Any, ...] = (
    None, True, 0, -1, 1, 2**60, 0.5, -0.5, 1e300, "", "conv", "d9", "é", "a.b",
    [], [1], ["conv"], [["conv"]], {}, {"d0": 1}, {"d0": 1, "d1": 2}, {"x": None},
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:  # noqa: ANN401
    """Every place inside plain data, deepest last."""
    found = [path] if path else []
    if isinstance(value, dict | list):
        keys = value if isinstance(value, dict) else range(len(value))
        for key in keys:
            found += places(value[key], (*path, key))
    return found


def damaged(seed: int) -> dict[str, Any]:
    """Return the document with one to three entries dropped, changed or repeated."""
    rng = Random(seed)
    document = copy.deepcopy(DOCUMENT)
    for _ in range(rng.randint(1, 3)):
        *path, key = rng.choice(places(document))
        holder: Any = document
        for step in path:
            holder = holder[step]
        deed = rng.random()
        if deed < 0.25:
            del holder[key]
        elif deed < 0.35 and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[key]))
        else:
            holder[key] = copy.deepcopy(rng.choice(STRANGE))
    return document


def outcome(document: dict[str, Any]) -> str:
    """Build the document, or say what was wrong with it."""
    try:
        graph = compile_instance(instance_from_document(document)).graph
    except (FormatError, InstanceError) as error:
        return "; ".join(fault.message for fault in error.faults)
    except UnsupportedError as error:
        return str(error)
    return checked(graph).name


@settings(deadline=None, max_examples=500)
@given(seed=st.integers(0, 10**9))
def test_a_damaged_document_is_built_or_refused_with_faults(seed: int) -> None:
    assert outcome(damaged(seed))


def test_the_whole_document_is_built() -> None:
    assert outcome(DOCUMENT) == "whole"
