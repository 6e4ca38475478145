from typing import Any

from builds.commands import find_configuration
from builds.models import Configuration
from documents.commands import find_workspace
from work.commands import AddVerb, Answer, NounCommand, add_limit, clean, fields, table


class Command(NounCommand):
    help = "Configurations: rules and code for processing documents."

    def add_verbs(self, add: AddVerb) -> None:
        listing = add("list", self.list_configurations, "List configurations, the newest first.")
        listing.add_argument("--workspace", metavar="WORKSPACE", help="name or id")
        add_limit(listing)
        show = add("show", self.show, "Show a configuration with its files.")
        show.add_argument("configuration", metavar="CONFIGURATION", help="id, WORKSPACE/NAME or name")

    def list_configurations(self, *, workspace: str | None, limit: int, before: int | None, **_: Any) -> Answer:
        found = Configuration.objects.select_related("workspace").defer("files").order_by("-id")
        found = found.filter(workspace=find_workspace(workspace)) if workspace else found
        found = found.filter(pk__lt=before) if before else found
        rows = [_row(configuration) for configuration in found[:limit]]
        return Answer({"configurations": rows}, table(rows, "id", "workspace", "name", "entry_point", "updated_at"))

    def show(self, *, configuration: str, **_: Any) -> Answer:
        found = find_configuration(configuration)
        row = _row(found) | {"requirements": found.requirements}
        files = "\n\n".join(f"--- {clean(path)}\n{_printable(text)}" for path, text in sorted(found.files.items()))
        return Answer(row | {"files": found.files}, f"{fields(row)}\n\n{files}".rstrip())


def _row(configuration: Configuration) -> dict[str, Any]:
    return {
        "id": configuration.pk,
        "workspace": configuration.workspace.name,
        "name": configuration.name,
        "entry_point": configuration.entry_point,
        "contents_sha256": configuration.contents_sha256,
        "created_at": configuration.created_at,
        "updated_at": configuration.updated_at,
    }


def _printable(text: object) -> str:
    return "\n".join(clean(line) for line in str(text).splitlines())
