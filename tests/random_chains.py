"""Random chains of stages, small enough to try every order."""

from __future__ import annotations

from random import Random

from lpsched.analysis.chain import Chain, StageMemory

__all__ = ["random_chain"]


def random_chain(rng: Random) -> Chain:
    """Draw a chain of up to three stages, alike or not, with memory of every form."""
    p = rng.randint(1, 3)
    m = rng.randint(1, (5, 3, 2)[p - 1])
    alike = rng.random() < 0.3

    def row(most: int) -> tuple[int, ...]:
        drawn = [rng.randint(0, most) for _ in range(p)]
        return (drawn[0],) * p if alike else tuple(drawn)

    memory = []
    for _ in range(p):
        freed, grown = rng.choice([0, 1, 1, 2, 3]), rng.choice([0, 0, 0, 1, 2])
        memory.append(
            StageMemory(
                forward=freed + rng.choice([0, 1, 1, 2]),
                input_grad=grown - freed,
                during_forward=rng.choice([0, 0, 0, 1]),
                during_input_grad=grown + rng.choice([0, 0, 0, 1]),
            )
        )
    forward, input_grad, weight_grad, update = row(9), row(9), row(9), row(2)
    work = [sum(x) for x in zip(forward, input_grad, weight_grad, strict=True)]
    return Chain(
        microbatches=m,
        forward=forward,
        input_grad=input_grad,
        weight_grad=weight_grad,
        update=update,
        load=tuple(m * w + u for w, u in zip(work, update, strict=True)),
        down=row(4)[1:],
        up=row(4)[1:],
        memory=tuple(memory),
        room=tuple(
            None
            if rng.random() < 0.15
            else rng.randint(held.forward, max(1, held.forward) * (m + 1))
            for held in memory
        ),
        flush=rng.random() < 0.4,
    )
