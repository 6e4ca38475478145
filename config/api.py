"""The API with the routes of all its parts. Two parts have routes at the root, because the specification says so."""

from api.frame import Api
from api.routes import (
    artifacts,
    audit,
    briefs,
    builds,
    clusters,
    configurations,
    documents,
    feeds,
    fields,
    health,
    jobs,
    me,
    processing,
    queue,
    run_lives,
    runs,
    search,
    senders,
    slots,
    streams,
    tables,
    tokens,
    types,
    webhooks,
    workers,
    workspaces,
)
from config import VERSION

api = Api(
    title="ADE",
    version=VERSION,
    description="The automated document engine. Programs can do here what operators do on the pages.",
    urls_namespace="api",
    openapi_url="/api/v1/openapi.json",
    # config/api_docs.py has ADE's own page.
    docs_url=None,
)
api.add_router("", runs.at_root)
api.add_router("", documents.at_root)
for part in (
    artifacts,
    audit,
    briefs,
    builds,
    clusters,
    configurations,
    documents,
    feeds,
    fields,
    health,
    jobs,
    me,
    processing,
    queue,
    run_lives,
    runs,
    search,
    senders,
    slots,
    streams,
    tables,
    tokens,
    types,
    webhooks,
    workers,
    workspaces,
):
    api.add_router("/api/v1", part.routes)
