"""Print, as JSON, the SQL with which our migrations create their tables on SQL Server."""

import json
import sys
from pathlib import Path

import django


def main():
    django.setup()
    from django.apps import apps  # noqa: PLC0415  # after setup
    from django.conf import settings  # noqa: PLC0415
    from django.db.migrations.loader import MigrationLoader  # noqa: PLC0415

    from tests.mssql import server  # noqa: PLC0415

    ours = {app.label for app in apps.get_app_configs() if Path(app.path).parent == settings.BASE_DIR}
    loader = MigrationLoader(None, replace_migrations=False)
    found = {}
    for label, name in [key for leaf in loader.graph.leaf_nodes() for key in loader.graph.forwards_plan(leaf)]:
        if label not in ours or f"{label}.{name}" in found:
            continue
        state = loader.project_state((label, name), at_end=False)
        with server.connection().schema_editor(collect_sql=True, atomic=False) as editor:
            loader.get_migration(label, name).apply(state, editor, collect_sql=True)
        found[f"{label}.{name}"] = [str(line) for line in editor.collected_sql if not line.startswith("--")]
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
