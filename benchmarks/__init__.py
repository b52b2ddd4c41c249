"""Benchmarks: ``make bench``. Ratios within one run, never absolute promises."""
