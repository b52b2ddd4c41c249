"""The facade: bounds, incumbents, back ends, lexicographic order, proofs."""
