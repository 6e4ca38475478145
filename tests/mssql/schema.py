"""Print, as JSON, the SQL with which `migrate` makes all tables on SQL Server, those of other packages too: ADE's own
migrations only create tables, but theirs also alter columns. The key "asked" has the statements with which Django
looks at the schema.
"""

import json
import sys

import django


def main():
    django.setup()
    from django.db.migrations.loader import MigrationLoader  # noqa: PLC0415  # after setup

    from tests.mssql import server  # noqa: PLC0415

    loader = MigrationLoader(None, replace_migrations=False)
    found, connection = {}, server.connection()
    for label, name in [key for leaf in loader.graph.leaf_nodes() for key in loader.graph.forwards_plan(leaf)]:
        if f"{label}.{name}" in found:
            continue
        state = loader.project_state((label, name), at_end=False)
        with connection.schema_editor(collect_sql=True, atomic=False) as editor:
            loader.get_migration(label, name).apply(state, editor, collect_sql=True)
        found[f"{label}.{name}"] = [str(line) for line in editor.collected_sql if not line.startswith("--")]
    found["asked"] = connection.connection.statements
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
