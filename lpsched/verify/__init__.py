"""The independent verifier: one function per rule, core and standard library only."""
