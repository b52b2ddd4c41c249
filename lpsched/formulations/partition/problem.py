"""Placement as set partitioning: items, groups of like devices, messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd

__all__ = [
    "DeviceGroup",
    "ItemSet",
    "Message",
    "Placed",
    "Problem",
    "Share",
    "merged_messages",
]

#: The items of one device.
ItemSet = frozenset[int]
#: A set of items per device, devices sorted by group.
Placed = tuple[ItemSet, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A tensor as placement sees it: it goes once to each device that lacks it.

    Attributes
    ----------
    source : int or None
        The item that makes it; None if it is made outside the problem, so that
        every device with a target pays.
    targets : frozenset of int
        The items that use it, the source not among them.
    """

    size: int
    source: int | None
    targets: ItemSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Memory that a device needs once if it has any of some items."""

    size: int
    items: ItemSet


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceGroup:
    """Devices that are alike.

    Attributes
    ----------
    count : int
        How many.
    loads : tuple of int or None
        Ticks of each item on such a device; None where it may not run.
    memory : int or None
        What such a device can hold; None for no limit.
    """

    count: int
    loads: tuple[int | None, ...]
    memory: int | None = None


@dataclass(frozen=True, kw_only=True)
class Problem:
    r"""Partition the items into one set per device at the least cost.

    .. math:: \min \sum_d c(S_d), \qquad
       c(S) = \sum_{m:\; source \notin S,\; targets \cap S \ne \emptyset} size_m

    with the sets of each group's devices of load :math:`\le T`, empty sets allowed,
    and, where memory is limited, of

    .. math:: m(S) = \max_j \sum_{s \in stocks_j:\; items_s \cap S \ne \emptyset} size_s

    no more than that.

    Attributes
    ----------
    period : int
        T, in ticks: the greatest load of a device.
    num_items : int
        n; items are numbered from 0.
    stocks : tuple of tuple of Share
        Sums of shares none of which what a device holds is below.
    most_received : int or None
        The greatest cost of a set.
    forbidden : tuple of Placed
        Partitions that do not count, however their devices are named in each group.
    """

    period: int
    num_items: int
    groups: tuple[DeviceGroup, ...]
    messages: tuple[Message, ...]
    stocks: tuple[tuple[Share, ...], ...] = ()
    most_received: int | None = None
    forbidden: tuple[Placed, ...] = ()

    @property
    def num_devices(self) -> int:
        """Return P."""
        return sum(group.count for group in self.groups)

    @cached_property
    def shortest(self) -> tuple[int | None, ...]:
        """Ticks of each item on the group where it takes least; None if nowhere."""
        columns = zip(*(group.loads for group in self.groups), strict=True)
        return tuple(
            min((t for t in ticks if t is not None and t <= self.period), default=None)
            for ticks in columns
        )

    @cached_property
    def least_load(self) -> int:
        r"""Load that every device carries: :math:`\sum t - (P - 1) T`, or 0.

        The other devices cannot take more than T each. Where durations differ among
        the groups the least of each item counts, which is valid for every group.
        """
        total = sum(t for t in self.shortest if t is not None)
        return max(0, total - (self.num_devices - 1) * self.period)

    @cached_property
    def unit(self) -> int:
        """Greatest common divisor of all sizes: every cost is a multiple."""
        return gcd(*(message.size for message in self.messages)) or 1

    @cached_property
    def most_cost(self) -> int:
        """More than this no placement can cost."""
        most = sum(
            m.size * min(self.num_devices - (m.source is not None), len(m.targets))
            for m in self.messages
        )
        if self.most_received is not None:
            most = min(most, self.num_devices * self.most_received)
        return most

    @cached_property
    def is_limited(self) -> bool:
        """Whether some device's memory is limited, and something takes memory."""
        limited = any(group.memory is not None for group in self.groups)
        return limited and bool(self.stocks)

    @property
    def most_memory(self) -> int:
        """The largest memory of a device whose memory is limited; 0 without one."""
        limits = [group.memory for group in self.groups if group.memory is not None]
        return max(limits, default=0)

    @property
    def is_capped(self) -> bool:
        """Whether more than its load decides what a device can hold."""
        return self.is_limited or self.most_received is not None

    @property
    def is_rigid(self) -> bool:
        """Whether partitions of equal loads and messages may differ in what counts.

        Memory depends on more, and so do the times that keep its limits.
        """
        return self.is_limited or bool(self.forbidden)

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """Memory per item, so that no set holds less than its items together.

        Of each stock every share is given to one of its items, that which needs most
        alone: for it nothing is lost. The stock that comes to most counts.
        """
        alone = [self.held(frozenset({item})) for item in range(self.num_items)]
        best = (0,) * self.num_items
        for stock in self.stocks:
            given = [0] * self.num_items
            for share in stock:
                given[max(share.items, key=lambda item: (alone[item], -item))] += (
                    share.size
                )
            best = max(best, tuple(given), key=sum)
        return best

    @cached_property
    def classes(self) -> tuple[tuple[int, ...], ...]:
        """Items that are interchangeable, in ascending order; each item in one class.

        Exchanging two of a class changes neither loads nor messages. So a set may be
        assumed to hold the first few of each class. Where every partition matters
        (`is_rigid`) each item is a class of its own.
        """
        if self.is_rigid:
            return tuple((item,) for item in range(self.num_items))
        sizes = {(m.source, m.targets): m.size for m in self.messages}
        touching: list[list[Message]] = [[] for _ in range(self.num_items)]
        for m in self.messages:
            for item in m.targets if m.source is None else m.targets | {m.source}:
                touching[item].append(m)
        found: dict[object, list[list[int]]] = {}
        for item in range(self.num_items):
            loads = tuple(group.loads[item] for group in self.groups)
            traffic = sorted((m.size, m.source == item) for m in touching[item])
            classes = found.setdefault((loads, tuple(traffic)), [])
            for members in classes:
                pair = members[0], item
                near = [m for v in pair for m in touching[v]]
                if all(sizes.get(_exchanged(m, *pair)) == m.size for m in near):
                    members.append(item)
                    break
            else:
                classes.append([item])
        return tuple(sorted(tuple(c) for group in found.values() for c in group))

    @cached_property
    def class_of(self) -> tuple[int, ...]:
        """Number of each item's class."""
        numbers = {v: c for c, members in enumerate(self.classes) for v in members}
        return tuple(numbers[item] for item in range(self.num_items))

    def canonical(self, items: ItemSet) -> ItemSet:
        """Return the set with the first of each class in place of others."""
        counts = Counter(self.class_of[item] for item in items)
        return frozenset(
            item for c, count in counts.items() for item in self.classes[c][:count]
        )

    def cost(self, items: ItemSet) -> int:
        """Cost c(S) of one set."""
        return sum(
            m.size
            for m in self.messages
            if m.source not in items and not m.targets.isdisjoint(items)
        )

    def load(self, items: Iterable[int], group: int) -> int | None:
        """Ticks of some items on a device of a group; None if one may not run there."""
        total = 0
        for item in items:
            ticks = self.groups[group].loads[item]
            if ticks is None:
                return None
            total += ticks
        return total

    def held(self, items: ItemSet) -> int:
        """Memory m(S) that a device with these items needs at the least."""
        return max(
            (
                sum(s.size for s in stock if not s.items.isdisjoint(items))
                for stock in self.stocks
            ),
            default=0,
        )

    def fits(self, items: ItemSet, group: int) -> bool:
        """Whether a device of the group can hold the items."""
        load, memory = self.load(items, group), self.groups[group].memory
        if load is None or load > self.period:
            return False
        if self.most_received is not None and self.cost(items) > self.most_received:
            return False
        return memory is None or self.held(items) <= memory

    def holds(self, placed: Placed) -> bool:
        """Whether a set per device is a partition that every device can hold."""
        items = sorted(item for items in placed for item in items)
        return (
            len(placed) == self.num_devices
            and items == list(range(self.num_items))
            and all(map(self.fits, placed, self.group_of))
        )

    @cached_property
    def group_of(self) -> tuple[int, ...]:
        """Number of each device's group, devices sorted by group."""
        return tuple(
            g for g, group in enumerate(self.groups) for _ in range(group.count)
        )

    def in_use(self, placed: Placed) -> frozenset[tuple[int, ItemSet]]:
        """Group and set of each device that has items: what identifies a partition."""
        return frozenset(
            pair for pair in zip(self.group_of, placed, strict=True) if pair[1]
        )

    @cached_property
    def no_goods(self) -> frozenset[frozenset[tuple[int, ItemSet]]]:
        """What identifies each forbidden partition."""
        return frozenset(map(self.in_use, self.forbidden))

    def without_misfits(self) -> Problem:
        """Return the problem with items banned from devices that cannot hold them."""
        if not self.is_limited:
            return self
        alone = [self.held(frozenset({item})) for item in range(self.num_items)]
        groups = tuple(
            replace(
                group,
                loads=tuple(
                    None if group.memory is not None and m > group.memory else t
                    for m, t in zip(alone, group.loads, strict=True)
                ),
            )
            for group in self.groups
        )
        return replace(self, groups=groups)

    def in_units(self) -> Problem:
        """Return the problem with all sizes divided by their `unit`."""
        unit, most = self.unit, self.most_received
        messages = (replace(m, size=m.size // unit) for m in self.messages)
        return replace(
            self,
            messages=tuple(messages),
            most_received=None if most is None else most // unit,
        )

    def part(self, items: Sequence[int], counts: Sequence[int]) -> Problem:
        """Return the problem of some items on some devices, the rest staying put.

        Items are renumbered in the order given; messages from outside stay, with
        their targets inside. Those to the outside are paid for in any case.

        Parameters
        ----------
        counts : sequence of int
            Devices of each group.
        """
        number = {item: i for i, item in enumerate(items)}
        messages = [
            Message(
                size=m.size,
                source=None if m.source is None else number.get(m.source),
                targets=frozenset(number[v] for v in m.targets if v in number),
            )
            for m in self.messages
        ]
        groups = [
            replace(group, count=count, loads=tuple(group.loads[i] for i in items))
            for group, count in zip(self.groups, counts, strict=True)
            if count
        ]
        stocks = [
            tuple(
                Share(size=s.size, items=frozenset(number[v] for v in own))
                for s in stock
                if (own := s.items & number.keys())
            )
            for stock in self.stocks
        ]
        return Problem(
            period=self.period,
            num_items=len(number),
            groups=tuple(groups),
            messages=merged_messages(messages),
            stocks=tuple(stocks),
            most_received=self.most_received,
        )


def _exchanged(message: Message, a: int, b: int) -> tuple[int | None, ItemSet]:
    """Return the ends of a message with two items exchanged."""
    turn = {a: b, b: a}
    source = message.source
    targets = frozenset(turn.get(item, item) for item in message.targets)
    return None if source is None else turn.get(source, source), targets


def merged_messages(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Add up messages of the same ends; leave out those that never cost anything."""
    sizes: dict[tuple[int | None, ItemSet], int] = {}
    for m in messages:
        ends = m.source, m.targets
        if m.size and m.targets:
            sizes[ends] = sizes.get(ends, 0) + m.size
    return tuple(
        Message(size=size, source=source, targets=targets)
        for (source, targets), size in sizes.items()
    )
