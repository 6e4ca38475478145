"""The daily brief of events, published once and never changed: see docs/briefs.md."""
