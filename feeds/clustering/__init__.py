"""Which articles tell of one event: see docs/clustering.md."""
