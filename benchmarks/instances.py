"""Write the instances that follow a rule: ``python -m benchmarks.instances``.

A file that poses the same problem as before keeps what is known of it; what is known is
found by ``lpsched bench FOLDER --update``.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lpsched.bench import find_cases, store_known

INSTANCES = Path(__file__).resolve().parents[1] / "instances"

Family = Iterator[tuple[str, dict[str, Any]]]


def layerpipe() -> Family:
    """LayerPipe's comparison: the classics on 2 to 16 devices, in MACs."""
    for network in ("vgg16", "alexnet"):
        for devices in range(2, 17):
            yield (
                f"{network}-{devices}",
                {
                    "origin": "The comparison of LayerPipe with PipeDream (Unnikrishnan"
                    " and Parhi, ICCAD 2021), by multiply-accumulates: I in two parts,"
                    " delays without limit, free transfers.",
                    "network": network,
                    "devices": devices,
                    "objective": ["period"],
                },
            )


def measured() -> Family:
    """Profiles of GPUs: transfers at 10 GB/s, staleness as it comes, or bounded."""
    for network, counts in {"alexnet": (2, 4), "vgg16": (4, 8), "gnmt": (4, 8)}.items():
        for devices in counts:
            common = {
                "network": f"{network}-network.yaml",
                "devices": devices,
                "link": {"latency": 10, "units_per_tick": 10_000},
            }
            yield (
                f"{network}-gpu-{devices}",
                {
                    "origin": "How many GPUs are worth having, and what do they send?"
                    " Links of 10 GB/s and 10 us.",
                    **common,
                    "objective": ["period", "communication"],
                },
            )
            if devices == 4:
                yield (
                    f"{network}-gpu-{devices}-fresh",
                    {
                        "origin": "The same with weights at most one update old.",
                        **common,
                        "training": {"staleness": {"max": 1}},
                        "objective": ["period"],
                    },
                )


def uneven() -> Family:
    """Transformers with an embedding at one end and a head at the other."""
    for network in ("bert-base", "gpt2-small", "gpt2-medium", "llama-7b"):
        for devices in (4, 8, 16):
            yield (
                f"{network}-{devices}",
                {
                    "origin": "Equal blocks between unequal ends: how far from equal"
                    " shares is the best split?",
                    "network": network,
                    "devices": devices,
                    "objective": ["period"],
                },
            )


def heterogeneous() -> Family:
    """Devices of unequal speed."""
    platforms: Mapping[str, list[int | str]] = {
        "two-fast-two-slow": [2, 2, 1, 1],
        "one-fast": [4, 1, 1, 1],
        "ladder": [2, "3/2", 1, "1/2"],
    }
    for network in ("alexnet", "vgg16", "bert-base"):
        for platform, speeds in platforms.items():
            yield (
                f"{network}-{platform}",
                {
                    "origin": "An old machine beside a new one: devices of unequal"
                    " speed.",
                    "network": network,
                    "devices": [
                        {"id": f"d{i}", "speed": speed}
                        for i, speed in enumerate(speeds)
                    ],
                    "objective": ["period"],
                },
            )


def slow_links() -> Family:
    """Transfers as long as the work, and delays too small to hide them."""
    for network, devices in (
        ("tiny-mlp", 2),
        ("tiny-mlp", 3),
        ("lenet5", 2),
        ("lenet5", 3),
        ("alexnet", 4),
    ):
        for staleness in (1, 3):
            yield (
                f"{network}-{devices}-stale{staleness}",
                {
                    "origin": "Is a device worth having that is hard to reach? One"
                    " element is sent in the time of 100 MACs; weights at most"
                    f" {staleness} updates old.",
                    "network": network,
                    "costs": {"model": "macs", "tick": 100},
                    "devices": devices,
                    "link": {"latency": 10, "units_per_tick": 1},
                    "training": {"split": {"I": 1}, "staleness": {"max": staleness}},
                    "objective": ["period", "communication"],
                },
            )


def tight_memory() -> Family:
    """Devices that hold less than the fastest schedule wants."""
    for network, devices, unit, limits in (
        ("lenet5", 2, 1_000, (100, 102, 105)),
        ("lenet5", 3, 1_000, (100,)),
        ("alexnet", 4, 1_000_000, (1_000, 1_500)),
    ):
        measured_ones = network == "alexnet"
        for limit in limits:
            yield (
                f"{network}-{devices}-{limit}{'M' if measured_ones else 'k'}",
                {
                    "origin": "What does a small memory cost? Weights, gradients and"
                    " activations count; weights at most 3 updates old.",
                    "network": "../measured/alexnet-network.yaml"
                    if measured_ones
                    else network,
                    "devices": {"count": devices, "memory": limit * unit},
                    "training": {"split": {"I": 1}, "staleness": {"max": 3}},
                    "objective": ["period"],
                },
            )


FAMILIES = (layerpipe, measured, uneven, heterogeneous, slow_links, tight_memory)


def written(name: str, document: Mapping[str, Any]) -> str:
    """Return an instance as people write it."""
    lines = ["schema: lpsched/instance/1", f"name: {name}"]
    for key, value in document.items():
        if key == "origin":
            lines.append("origin: >-")
            lines += [f"  {line}" for line in textwrap.wrap(value, width=84)]
        elif isinstance(value, list) and isinstance(value[0], dict):
            lines.append(f"{key}:")
            lines += [f"  - {_flow(item)}" for item in value]
        else:
            lines.append(f"{key}: {_flow(value)}")
    return "\n".join(lines) + "\n"


def _flow(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k}: {_flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    text = str(value)
    return f'"{text}"' if "/" in text else text


def write_family(family: str, members: Family, root: Path) -> None:
    """Write the files of a family; keep what is known of problems that stay."""
    folder = root / family
    folder.mkdir(exist_ok=True)
    for name, document in members:
        path = folder / f"{name}.yaml"
        old = find_cases([path]) if path.exists() else ()
        path.write_text(written(name, document), encoding="utf-8")
        (new,) = find_cases([path])
        if old and old[0].digest == new.digest:
            store_known(path, old[0].instance.known)


def main() -> None:
    """Write every family."""
    for family in FAMILIES:
        write_family(family.__name__, family(), INSTANCES)


if __name__ == "__main__":
    main()
