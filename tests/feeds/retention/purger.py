"""Purges articles and clusters in a process of its own, and says of each transaction how long it took and what went."""

import json
import sys

from feeds.retention.articles import ARTICLES
from feeds.retention.leftovers import CLUSTERS


def main():
    for policy in (ARTICLES, CLUSTERS):
        for batch in policy.purge("olga"):
            # At once: it may be killed in the next one.
            sys.stdout.write(json.dumps({"seconds": batch.seconds, **batch.gone}) + "\n")
            sys.stdout.flush()
