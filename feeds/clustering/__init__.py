"""Groups articles about the same event: see docs/clustering.md."""
