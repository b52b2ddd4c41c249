"""Exact models, side by side: each turns a `Request` into an `Outcome`."""
