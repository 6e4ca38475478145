"""Reads feeds (RSS, RDF, Atom and JSON Feed) in a limited child process of its own, without Django.

The child reads the bytes of a feed from `feed` and their origin from `source.json`, both in its working directory, and
writes one line of JSON per item to `items.jsonl`. It reports the metadata of the feed, or why it cannot be read, as an
event. With `serve DESCRIPTOR`, it imports everything first and then forks a process for each feed. Only this child
imports the other modules of this package.
"""

FEED = "feed"
# A JSON object with `content_type` and `url`, the address that answered.
SOURCE = "source.json"
# One object per item: `url`, `title`, `summary` and `author` ("" if missing), and `published` in seconds or null.
ITEMS = "items.jsonl"
# Started like the extractor's PROGRAM: the argument after the code is appended to sys.path.
PROGRAM = "import sys; sys.path.append(sys.argv.pop(1)); from ade_feedreader.main import main; main()"

# Items per feed. Feeds list their latest items first, as far as we know.
MOST_ITEMS = 5000
# The process that stores the items reads all of them into memory.
MOST_BYTES = 8 << 20
LONGEST_TITLE = 500
LONGEST_SUMMARY = 2000
LONGEST_AUTHOR = 200
# Longer than a stored link, because normalising may shorten it.
LONGEST_LINK = 8000
