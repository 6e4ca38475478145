"""A process that purges articles and clusters, and prints the duration and the deleted rows of each transaction."""

import json
import sys

from feeds.retention.articles import ARTICLES
from feeds.retention.leftovers import CLUSTERS


def main():
    for policy in (ARTICLES, CLUSTERS):
        for batch in policy.purge("olga"):
            # Print at once: the process may be killed in the next transaction.
            sys.stdout.write(json.dumps({"seconds": batch.seconds, **batch.gone}) + "\n")
            sys.stdout.flush()
