"""Creates rows for the fuzzer: work that looks as if a worker had done it, and users with tokens."""

import hashlib
import json
import sys
from datetime import timedelta

from django.contrib.auth.models import Permission, User
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from api import tokens
from builds import lifecycle as builds
from builds.models import Configuration
from config import demo
from documents.models import Document
from feeds.models import Brief
from runs import lifecycle as runs
from webhooks import hooks
from webhooks import lifecycle as deliveries
from webhooks.models import Topic
from work import clock
from workspaces.models import Membership, Workspace

ACTOR = "fuzz"
# Scopes of tokens. Each key is both the name of a user and the user's role. Users with the scope "installation" also
# get the Django permissions that jobs and feeds require.
SCOPES = {
    "admin": ["read", "operate", "admin", "installation"],
    "operator": ["read", "operate", "installation"],
    "viewer": ["read"],
}


def make() -> None:
    """Create all rows. Print the token of each role and the IDs of these tokens as JSON."""
    demo.demo_workspace(demo.demo_user())
    workspace = Workspace.objects.get()
    finish_run()
    # Create one delivered and one waiting delivery, without sending anything.
    webhook, _ = hooks.add(workspace, "fuzz", "https://hooks.example.com/ade", Topic.values, actor=ACTOR)
    hooks.ping(webhook, actor=ACTOR)
    claim = deliveries.claim_next_delivery(ACTOR)
    assert claim
    assert deliveries.succeed(claim, 204, {"status": 204, "seconds": 0.1})
    hooks.ping(webhook, actor=ACTOR)
    until = clock.now().replace(microsecond=0)
    window = {"window_from": until - timedelta(days=1), "window_until": until}
    counts = {"articles_seen": 0, "feeds_seen": 0, "clusters_seen": 0}
    Brief.objects.create(scheduled_for=until, name=f"{until:%Y-%m-%d}", **window, **counts)
    secrets, ids = {}, []
    for role, scopes in SCOPES.items():
        person = User.objects.create(username=role)
        Membership.objects.create(workspace=workspace, user=person, role=role)
        person.user_permissions.set(Permission.objects.all() if "installation" in scopes else [])
        token, secrets[role] = tokens.issue(workspace, person, ACTOR, scopes, actor=ACTOR)
        ids.append(token.pk)
    sys.stdout.write(json.dumps({"tokens": secrets, "ids": ids}))


def finish_run() -> None:
    build = builds.claim_next_build(ACTOR)
    assert build
    assert builds.succeed(build)
    runs.apply_build_results(ACTOR)
    # The demo's documents are not processed here, so only a run that does not wait for that can start.
    configuration, document = Configuration.objects.get(pk=build.values["configuration_id"]), Document.objects.all()[0]
    runs.submit(configuration, document, actor=ACTOR, wait_for_processing=False)
    run = runs.claim_next_run(ACTOR)
    assert run
    body = b'{"total": 42}'
    artifact = {
        "name": "result.json",
        "file": default_storage.save("artifacts/fuzz/result.json", ContentFile(body)),
        "size_bytes": len(body),
        "sha256": hashlib.sha256(body).hexdigest(),
        "content_type": "application/json",
    }
    assert runs.succeed(run, artifacts=[artifact])
