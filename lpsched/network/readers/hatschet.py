"""HatScheT's modulo scheduling problems: its GraphML and its resource model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lpsched.core.limits import MAX_DEVICES, MAX_INTEGER
from lpsched.network.readers.marked import Item, Marked
from lpsched.network.readers.source import FaultLog, network_name, seen
from lpsched.network.readers.xml import Element, elements

__all__ = ["hatschet_document"]

#: A node of these files that stands for nothing.
_NOTE = "modsched_info"
_UNLIMITED = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Resource:
    """A kind of functional unit; `limit` None for as many as are wanted."""

    name: str
    limit: int | None
    latency: int
    blocking: int

    @property
    def duration(self) -> int:
        """Ticks for which an op occupies a unit; all it takes, if units abound."""
        return self.latency if self.limit is None else self.blocking

    @property
    def devices(self) -> list[str]:
        """One device a unit."""
        if self.limit is None:
            return []
        if self.limit == 1:
            return [self.name]
        return [f"{self.name}.{i}" for i in range(self.limit)]


def hatschet_document(marked: Marked, resources: str, *, source: str) -> dict[str, Any]:
    r"""Build a graph document from HatScheT's graph and its resource model.

    HatScheT asks for starts and the least initiation interval II with

    .. math:: s_u + latency_u + delay_{uv} \le s_v + distance_{uv} \cdot II

    and at most `limit` ops of a resource in the same slot modulo II. Here a resource
    of limit L is L devices, on which an op runs for its blocking time; what its result
    takes longer is a lag of its edges, together with their ``delay`` (alias
    ``latency``); ``distance`` is the delay in iterations. An op of an unlimited
    resource occupies no device. Edges of type Data carry one tensor a producer, of size
    1, others are dependences. With blocking times up to 1 the least period is the least
    II; longer ones occupy their device for as long, which HatScheT counts in the slot
    of the start only.

    Parameters
    ----------
    marked : Marked
        The graph; nodes have ``uses_resource`` and, if wanted, ``name``.
    resources : str
        The resource model, XML: ``<resource name limit latency blockingTime/>``,
        limit -1 or ``inf`` for no limit.

    Raises
    ------
    FormatError
        With every fault of either file: among them reservation tables, and results
        that are there before their unit is free, which a lag >= 0 cannot say.
    """
    log = FaultLog(source)
    known = {r.name: r for r in _resources(resources)}
    nodes = [node for node in marked.nodes if node.name != _NOTE]
    used = _used(nodes, known, log)
    devices = [{"id": d} for r in known.values() for d in r.devices]
    if len(devices) > MAX_DEVICES:
        raise log.fail("", f"{len(devices)} units are more than {MAX_DEVICES}")
    edges = [_edge(edge, used, log) for edge in marked.edges]
    log.check()
    names = _names(nodes)
    return {
        "schema": "lpsched/graph/1",
        "name": network_name(source),
        "time_unit": "cycle",
        "size_unit": "value",
        "devices": devices,
        "ops": [_op(names[node.name], used[node.name]) for node in nodes],
        "tensors": list(_tensors(marked, names, edges)),
        "dependences": [
            {"src": names[edge.src], "dst": names[edge.dst]} | entry
            for edge, entry in zip(marked.edges, edges, strict=True)
            if not _is_data(edge)
        ],
    }


def _used(
    nodes: list[Item], known: Mapping[str, _Resource], log: FaultLog
) -> dict[str, _Resource]:
    """Return the resource of each node.

    Raises
    ------
    FormatError
        Naming each node whose resource the model has not.
    """
    used: dict[str, _Resource] = {}
    for node in nodes:
        name = str(node.data.get("uses_resource", "")).replace(" ", "")
        if name in known:
            used[node.name] = known[name]
        else:
            log.add(node.line, f"node {node.name!r} uses the unknown {seen(name)}")
    log.check()
    return used


def _op(name: str, resource: _Resource) -> dict[str, Any]:
    return {
        "id": name,
        "kind": resource.name,
        "duration": resource.duration,
        "devices": resource.devices,
    }


def _names(nodes: list[Item]) -> Mapping[str, str]:
    """Call a node by its name, or by its number where that is no name of its own."""
    count = Counter(str(node.data.get("name") or node.name) for node in nodes)
    ids = {node.name for node in nodes}
    found = {}
    for node in nodes:
        name = str(node.data.get("name") or node.name)
        is_own = count[name] == 1 and (name == node.name or name not in ids)
        found[node.name] = name if is_own else node.name
    return found


def _is_data(edge: Item) -> bool:
    return str(edge.data.get("deptype", "Data")) == "Data"


def _edge(edge: Item, used: Mapping[str, _Resource], log: FaultLog) -> dict[str, int]:
    """Lag and delay of an edge."""
    extra = edge.data.get("delay", edge.data.get("latency", 0))
    numbers = [_number(value) for value in (extra, edge.data.get("distance", 0))]
    resource = used.get(edge.src)
    if numbers[0] is None or numbers[1] is None or numbers[1] < 0:
        log.add(edge.line, "expected integers as delay and distance, distance >= 0")
    if None in numbers or resource is None:
        return {}
    lag = resource.latency + (numbers[0] or 0) - resource.duration
    if lag < 0:
        text = f"its unit is busy {-lag} longer than its result takes"
        log.add(edge.line, f"{edge.src} -> {edge.dst}: {text}; not supported")
    return {"delay": numbers[1] or 0, "lag": lag}


def _tensors(
    marked: Marked, names: Mapping[str, str], edges: list[dict[str, int]]
) -> Iterator[dict[str, Any]]:
    uses: dict[str, list[dict[str, Any]]] = {}
    for edge, entry in zip(marked.edges, edges, strict=True):
        if _is_data(edge):
            consumer = {"op": names[edge.dst]} | entry
            uses.setdefault(names[edge.src], []).append(consumer)
    for producer, consumers in uses.items():
        yield {
            "id": f"{producer}.out",
            "size": 1,
            "producer": producer,
            "consumers": consumers,
        }


# -- the resource model ------------------------------------------------------------


def _resources(text: str) -> list[_Resource]:
    log = FaultLog("resource model")
    found: dict[str, _Resource] = {}
    for element in _everything(elements(text, source=log.source)):
        if element.name == "rt":
            log.add(element.line, "reservation tables are not supported")
        if element.name.lower() != "resource":
            continue
        resource = _resource(element, log)
        if resource is None:
            continue
        if resource.name in found:
            log.add(element.line, f"a second resource {resource.name!r}")
        found[resource.name] = resource
    if not found:
        log.add("", "no resource")
    log.check()
    return list(found.values())


def _everything(root: Element) -> Iterator[Element]:
    """Yield an element and all that stands in it, in the order of the file."""
    stack = [root]
    while stack:
        element = stack.pop()
        yield element
        stack += reversed(element.children)


def _resource(element: Element, log: FaultLog) -> _Resource | None:
    name = element.attributes.get("name", "").replace(" ", "")
    limit_text = element.attributes.get("limit", "")
    limit = _UNLIMITED if limit_text == "inf" else _number(limit_text)
    latency = _number(element.attributes.get("latency", ""))
    blocking = _number(element.attributes.get("blockingTime", "1"))
    if not name or limit is None or latency is None or blocking is None:
        text = "expected a resource with name, limit, latency and blockingTime"
        log.add(element.line, text)
        return None
    if min(latency, blocking) < 0 or limit < _UNLIMITED or limit == 0:
        log.add(element.line, f"resource {name!r}: a number out of range")
        return None
    return _Resource(
        name=name,
        limit=None if limit == _UNLIMITED else limit,
        latency=latency,
        blocking=blocking,
    )


def _number(value: object) -> int | None:
    """Read an integer."""
    try:
        number = int(str(value).strip())
    except ValueError:
        return None
    return number if abs(number) <= MAX_INTEGER else None
