"""Orders worth trying on a chain of stages, the likeliest to meet a bound first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from random import Random

from lpsched.analysis.chain import Chain
from lpsched.analysis.pipeline import Pipeline
from lpsched.analysis.synchronous import rooms_of
from lpsched.errors import NoScheduleError
from lpsched.heuristics.synchronous.automatic import SETTINGS, automatic_order
from lpsched.heuristics.synchronous.deadlines import deadlines_for
from lpsched.heuristics.synchronous.dispatch import deadline_orders, due_dates
from lpsched.heuristics.synchronous.kernel import LAPS, kernel_of, unrolled
from lpsched.heuristics.synchronous.orders import (
    Orders,
    gpipe_order,
    one_f_one_b_order,
    zero_bubble_order,
)

__all__ = ["Construction", "constructions", "dispatched"]

#: Targets above the bound: the first by this share of it, each next one so much more.
_FIRST_SHARE, _GROWTH, _TARGETS = 0.0003, 1.5, 18

#: How much earlier I's are due in further runs, in eighths of a microbatch's work.
_HASTE = (1, 2, 4, 8, 16, 64)

#: Restarts with deadlines moved at random.
_RESTARTS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Construction:
    """A way to order the ops of any chain of stages.

    Attributes
    ----------
    function : callable
        From a pipeline, its chain and a bound of its period to orders, or None if it
        finds none. Orders may exceed the memory: to be timed and verified.
    """

    name: str
    function: Callable[[Pipeline, Chain, int], Orders | None]


def constructions(seed: int = 0) -> Iterator[Construction]:
    """All constructions: those that meet a bound most often first.

    ZB-H1's order, which takes no time; deadline list scheduling at the bound; the
    greedy scheduler under each setting; unrolled kernels; deadlines that hasten I's;
    other published orders; then deadlines for targets above the bound, and with I's
    and W's moved at random.
    """
    yield _published("zb-h1", partial(zero_bubble_order, depth=1))
    yield _deadlines()
    for setting in SETTINGS:
        yield _published("zb-auto", partial(automatic_order, setting=setting))
    for laps in LAPS:
        for late in (False, True):
            function = partial(_unrolled, laps=laps, late=late)
            yield Construction(name="kernel", function=function)
    for eighths in _HASTE:
        yield _deadlines(haste=Fraction(eighths, 8))
    yield _published("zb-h2", partial(zero_bubble_order, depth=2))
    yield _published("1f1b", one_f_one_b_order)
    yield _published("gpipe", gpipe_order)
    for n in range(_TARGETS):
        yield _deadlines(above=_share(n))
    rng = Random(seed)
    for n in range(_RESTARTS):
        yield _deadlines(
            above=_share(rng.randrange(8)) * (n % 2),
            haste=Fraction(rng.choice(_HASTE) * rng.randrange(100), 800),
            delay=Fraction(rng.randrange(-100, 100), 100),
        )


def dispatched(pipeline: Pipeline) -> Iterator[Orders]:
    """Orders for any placement by `due_dates`, with I's due earlier and W's later."""
    dates = due_dates(pipeline)
    work = dates.latest["F"][0][-1] - dates.latest["F"][0][0]
    work //= max(1, pipeline.microbatches - 1)
    for halves in (8, 2, 0, 1, 4, 200):
        for haste in (0, 1, 2, 4):
            shift = {"I": haste * work // 2, "W": -halves * work // 2}
            found = deadline_orders(pipeline, dates.shifted(shift))
            if found is not None:
                yield found


def _share(n: int) -> float:
    return _FIRST_SHARE * float(_GROWTH**n)


def _published(name: str, order: Callable[[Pipeline], Orders]) -> Construction:
    def function(pipeline: Pipeline, _chain: Chain, _bound: int) -> Orders | None:
        try:
            return order(pipeline)
        except NoScheduleError:
            return None  # its memory does not suffice

    return Construction(name=name, function=function)


def _unrolled(
    pipeline: Pipeline,
    chain: Chain,
    _bound: int,
    *,
    laps: tuple[int, int],
    late: bool,
) -> Orders | None:
    kernel = kernel_of(chain, laps=laps, late=late)
    return None if kernel is None else unrolled(pipeline, kernel)


def _deadlines(
    *,
    above: float = 0.0,
    haste: Fraction = Fraction(0),
    delay: Fraction = Fraction(0),
) -> Construction:
    """Deadlines for a target above the bound, with I's due earlier and W's later.

    `haste` and `delay` in units of the most work of a microbatch on any stage.
    """

    def function(pipeline: Pipeline, chain: Chain, bound: int) -> Orders | None:
        work = max(chain.work(s) for s in range(chain.num_stages))
        shift = {"I": int(haste * work), "W": -int(delay * work)}
        target = bound + int(bound * above)
        deadlines = deadlines_for(chain, rooms_of(chain), target)
        return deadline_orders(pipeline, deadlines.shifted(shift))

    return Construction(name="deadlines", function=function)
