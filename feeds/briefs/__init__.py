"""What has happened, each morning, on a page that never changes: see docs/briefs.md."""
