"""One module a verb; `register` puts them all on the app."""

from __future__ import annotations

import typer

from lpsched.cli.options import with_manner
from lpsched.cli.verbs import (
    analyze,
    bench,
    bound,
    build,
    compare,
    explain,
    export,
    import_,
    plot,
    profile,
    report,
    run,
    schema,
    solve,
    verify,
)

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add every verb to the app, in the order in which help lists them."""
    for verb in (
        compare,
        solve,
        build,
        verify,
        bound,
        analyze,
        explain,
        plot,
        report,
        export,
        import_,
        profile,
        run,
        bench,
        schema,
    ):
        app.command(
            name=verb.__name__.rsplit(".", 1)[-1].rstrip("_"),
            epilog=f"Example: {verb.EXAMPLE}",
        )(with_manner(verb.command))
