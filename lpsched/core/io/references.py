"""What a graph document's parts say of each other: ids, references, device rules.

Runs on the plain document and passes over what is malformed, so that faults of both
kinds are reported at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lpsched.core.io.fields import MAX_INTEGER
from lpsched.errors import Fault

__all__ = ["reference_faults"]

Plain = Mapping[str, Any]
#: Names that may be referred to; None where they cannot all be read, so that a
#: reference cannot be judged.
Names = set[str] | None


def reference_faults(raw: Plain) -> list[Fault]:
    """Every fault between the parts of a graph document."""
    devices = _ids(raw, "devices")
    ops = _ids(raw, "ops")
    delays = _delay_names(raw)
    return [
        *_duplicates(raw, "devices"),
        *_duplicates(raw, "ops"),
        *_duplicates(raw, "tensors"),
        *_device_faults(raw, devices),
        *_link_faults(raw, devices),
        *_delay_faults(raw),
        *_use_faults(raw, ops, delays),
        *_group_faults(raw, ops),
        *_total_fault(raw),
    ]


def _items(raw: Plain, key: str) -> Iterator[tuple[str, Plain]]:
    value = raw.get(key)
    if isinstance(value, list | tuple):
        for i, item in enumerate(value):
            if isinstance(item, Mapping):
                yield f"{key}[{i}]", item


def _ids(raw: Plain, key: str) -> Names:
    value = raw.get(key)
    if not isinstance(value, list | tuple):
        return None
    known: set[str] = set()
    for item in value:
        name = item.get("id") if isinstance(item, Mapping) else None
        if not isinstance(name, str) or not name:
            return None
        known.add(name)
    return known


def _delay_names(raw: Plain) -> Names:
    delays = raw.get("delays", {})
    return set(delays) if isinstance(delays, Mapping) else None


def _mapping(raw: Plain, key: str) -> Plain:
    value = raw.get(key)
    return value if isinstance(value, Mapping) else {}


def _strings(item: Plain, key: str) -> Iterator[tuple[int, str]]:
    value = item.get(key)
    if isinstance(value, list | tuple):
        for i, text in enumerate(value):
            if isinstance(text, str):
                yield i, text


def _unknown(what: str, name: str, known: set[str]) -> str:
    if not known:
        return f"unknown {what} {name!r}; there are none"
    listed = ", ".join(sorted(known)[:8]) + (", ..." if len(known) > 8 else "")
    return f"unknown {what} {name!r}; known: {listed}"


def _duplicates(raw: Plain, key: str) -> Iterator[Fault]:
    seen: set[str] = set()
    for path, item in _items(raw, key):
        name = item.get("id")
        if isinstance(name, str):
            if name in seen:
                yield Fault(f"{path}.id", f"{name!r} is taken by an earlier entry")
            seen.add(name)


def _occupies(op: Plain) -> bool:
    return op.get("devices") != () and op.get("devices") != []


def _device_faults(raw: Plain, devices: Names) -> Iterator[Fault]:
    for path, op in _items(raw, "ops"):
        listed = list(_strings(op, "devices"))
        for i, name in listed:
            yield from _reference(f"{path}.devices[{i}]", name, "device", devices)
        if len({name for _, name in listed}) < len(listed):
            yield Fault(f"{path}.devices", "a device is listed twice")
        if _occupies(op) and devices == set():
            text = "the graph has no device; give it one or say `devices: []` here"
            yield Fault(path, text)
        yield from _duration_faults(path, op, devices)


def _duration_faults(path: str, op: Plain, devices: Names) -> Iterator[Fault]:
    duration = op.get("duration")
    if not isinstance(duration, Mapping):
        return
    if not _occupies(op):
        yield Fault(f"{path}.duration", "an op without a device needs one integer")
        return
    for name in duration:
        yield from _reference(f"{path}.duration.{name}", name, "device", devices)
    known = devices or set()
    listed = {name for _, name in _strings(op, "devices")}
    for name in sorted((listed or known) & known):
        if name not in duration:
            yield Fault(f"{path}.duration", f"no entry for the device {name!r}")


def _link_faults(raw: Plain, devices: Names) -> Iterator[Fault]:
    seen: set[tuple[str, str]] = set()
    for path, link in _items(raw, "links"):
        src, dst = link.get("src"), link.get("dst")
        for key, name in (("src", src), ("dst", dst)):
            yield from _reference(f"{path}.{key}", name, "device", devices)
        if isinstance(src, str) and isinstance(dst, str):
            if src == dst:
                yield Fault(path, f"a link from {src!r} to itself")
            if (src, dst) in seen:
                yield Fault(path, f"the link from {src!r} to {dst!r} stands twice")
            seen.add((src, dst))


def _delay_faults(raw: Plain) -> Iterator[Fault]:
    for name, delay in _mapping(raw, "delays").items():
        if isinstance(delay, Mapping):
            low, high = delay.get("min", 1), delay.get("max")
            if isinstance(low, int) and isinstance(high, int) and low > high:
                text = f"expected an integer >= min = {low}, got {high}"
                yield Fault(f"delays.{name}.max", text)


def _use_faults(raw: Plain, ops: Names, delays: Names) -> Iterator[Fault]:
    for path, tensor in _items(raw, "tensors"):
        yield from _reference(f"{path}.producer", tensor.get("producer"), "op", ops)
        for inner, use in _items(tensor, "consumers"):
            where = f"{path}.{inner}"
            yield from _reference(f"{where}.op", use.get("op"), "op", ops)
            yield from _reference(f"{where}.delay", use.get("delay"), "delay", delays)
    for path, order in _items(raw, "dependences"):
        for key in ("src", "dst"):
            yield from _reference(f"{path}.{key}", order.get(key), "op", ops)
        yield from _reference(f"{path}.delay", order.get("delay"), "delay", delays)


def _reference(path: str, name: object, what: str, known: Names) -> Iterator[Fault]:
    if isinstance(name, str) and known is not None and name not in known:
        yield Fault(path, _unknown(what, name, known))


def _group_faults(raw: Plain, ops: Names) -> Iterator[Fault]:
    free = {
        op["id"]
        for _, op in _items(raw, "ops")
        if isinstance(op.get("id"), str) and not _occupies(op)
    }
    groups = raw.get("colocate")
    if isinstance(groups, list | tuple):
        for i, group in enumerate(groups):
            for j, name in _strings({"group": group}, "group"):
                path = f"colocate[{i}][{j}]"
                yield from _reference(path, name, "op", ops)
                if name in free:
                    yield Fault(path, f"the op {name!r} occupies no device")
    for path, resident in _items(raw, "residents"):
        for j, name in _strings(resident, "ops"):
            yield from _reference(f"{path}.ops[{j}]", name, "op", ops)


def _total_fault(raw: Plain) -> Iterator[Fault]:
    """Sums must stay exact in 64 bits with room to multiply by small counts."""
    total = 0
    for _, op in _items(raw, "ops"):
        duration = op.get("duration")
        values = duration.values() if isinstance(duration, Mapping) else [duration]
        total += max((v for v in values if isinstance(v, int)), default=0)
    if total > MAX_INTEGER:
        text = (
            f"the durations sum to {total}, more than {MAX_INTEGER}; use a longer tick"
        )
        yield Fault("ops", text)
