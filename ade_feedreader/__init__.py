"""Reads feeds: RSS, RDF, Atom and JSON Feed. In a limited child process of its own, without Django.

In its working directory it finds the bytes of one as `feed` and where they come from as `source.json`, and leaves a
line of JSON for each item in `items.jsonl`. What the feed says of itself, or why it cannot be read, it tells as an
event. `serve DESCRIPTOR` waits with everything imported, and forks a process for each feed. Nobody but that child
imports the modules of this package.
"""

FEED = "feed"
# An object with `url`, the one that answered, and `content_type`.
SOURCE = "source.json"
# Each with `url`, `title`, `summary` and `author`, "" for what is not there, and `published`: seconds, or null.
ITEMS = "items.jsonl"
# As that of the extractor.
PROGRAM = "import sys; sys.path.append(sys.argv.pop(1)); from ade_feedreader.main import main; main()"

# Of one feed. The first ones are the latest, in every feed that we know.
MOST_ITEMS = 5000
# Whoever takes the items in does so in memory.
MOST_BYTES = 8 << 20
LONGEST_TITLE = 500
LONGEST_SUMMARY = 2000
LONGEST_AUTHOR = 200
# In one spelling it may be shorter.
LONGEST_LINK = 8000
