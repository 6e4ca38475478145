"""Invariants of feeds, clusters and briefs: see `work/invariants.py`."""

from work.invariants import DEFECT, Invariant

INVARIANTS = (
    Invariant(
        "a_brief_is_there_as_a_whole",
        "A brief of events has items, and each item has at least one article and at most as many as it counts.",
        lambda dialect: (
            """
        SELECT 'brief', b.id FROM briefs b
        WHERE b.clusters_seen > 0 AND NOT EXISTS (SELECT 1 FROM brief_items i WHERE i.brief_id = b.id)
        UNION ALL SELECT 'brief', i.brief_id FROM brief_items i
        WHERE NOT EXISTS (SELECT 1 FROM brief_articles a WHERE a.item_id = i.id)
            OR (SELECT COUNT(*) FROM brief_articles a WHERE a.item_id = i.id) > i.article_count"""
        ),
        f"{DEFECT} A brief is inserted in one transaction, so some of its rows were deleted later, outside ADE.",
    ),
    Invariant(
        "a_cluster_counts_its_articles",
        "The article count of a cluster equals the number of its links.",
        lambda dialect: (
            """
        SELECT 'cluster', c.id FROM event_clusters c
        WHERE c.article_count <> (SELECT COUNT(*) FROM cluster_articles l WHERE l.cluster_id = c.id)"""
        ),
        f"{DEFECT} `manage.py cluster check` shows the differences.",
    ),
    Invariant(
        "an_article_is_in_one_cluster",
        "An article is linked to at most one cluster, and once.",
        lambda dialect: (
            "SELECT 'article', raw_article_id FROM cluster_articles GROUP BY raw_article_id HAVING COUNT(*) > 1"
        ),
        "The constraints of cluster_articles are missing: compare the schema with the migrations.",
    ),
    Invariant(
        "an_article_is_stored_once",
        "A URL is stored as one article, even if several feeds list it.",
        lambda dialect: "SELECT 'article', MAX(id) FROM raw_articles GROUP BY url HAVING COUNT(*) > 1",
        "The constraint of raw_articles.url is missing: compare the schema with the migrations.",
    ),
)
