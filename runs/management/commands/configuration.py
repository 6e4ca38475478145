import io
from dataclasses import asdict
from pathlib import Path
from typing import Any

from builds import configurations, packages
from builds.commands import find_configuration
from builds.models import Configuration
from builds.packages import BadPackage, Package
from runs import checking
from runs.checking import Problem
from work.operations.commands import (
    AddVerb,
    Answer,
    Exit,
    Failure,
    NounCommand,
    add_limit,
    clean,
    fields,
    not_found,
    table,
)
from work.processes.supervise import Line
from workspaces.commands import find_workspace


class Command(NounCommand):
    help = "Configurations: rules and code for processing documents."

    def add_verbs(self, add: AddVerb) -> None:
        listing = add("list", self.list_configurations, "List configurations, newest first.")
        listing.add_argument("--workspace", metavar="WORKSPACE", help="name or id")
        add_limit(listing)
        show = add("show", self.show, "Show a configuration with its files.")
        show.add_argument("configuration", metavar="CONFIGURATION", help="id, WORKSPACE/NAME or name")
        taking = add(
            "import",
            self.import_package,
            "Store a package as a new configuration, or as the new contents of an existing one.",
        )
        taking.add_argument("path", metavar="PATH", type=Path, help="folder or zip file")
        taking.add_argument("--workspace", metavar="WORKSPACE", required=True, help="name or id")
        taking.add_argument("--name", help="name of the configuration (default: the name in the package)")
        giving = add("export", self.export, "Write a configuration as a package.")
        giving.add_argument("configuration", metavar="CONFIGURATION", help="id, WORKSPACE/NAME or name")
        giving.add_argument("path", metavar="PATH", type=Path, help="folder, or zip file if it ends in .zip")
        giving.add_argument("--force", action="store_true", help="overwrite existing files; others in the folder stay")
        trying = add(
            "check",
            self.check_package,
            "Check a package or a configuration without storing anything. Exit code 1: it has problems.",
        )
        trying.add_argument(
            "wanted",
            metavar="PATH|CONFIGURATION",
            help="folder or zip file; or the id, WORKSPACE/NAME or name of a configuration",
        )
        trying.add_argument("--document", metavar="FILE", type=Path, help="run the steps on this file")
        trying.add_argument("--output", metavar="DIR", type=Path, help="keep the artifacts in this new folder")

    def list_configurations(self, *, workspace: str | None, limit: int, before: int | None, **_: Any) -> Answer:
        configurations = Configuration.objects.select_related("workspace").defer("files").order_by("-id")
        if workspace:
            configurations = configurations.filter(workspace=find_workspace(workspace))
        if before:
            configurations = configurations.filter(pk__lt=before)
        rows = [_row(configuration) for configuration in configurations[:limit]]
        return Answer({"configurations": rows}, table(rows, "id", "workspace", "name", "entry_point", "updated_at"))

    def show(self, *, configuration: str, **_: Any) -> Answer:
        match = find_configuration(configuration)
        row = _row(match) | {"requirements": match.requirements}
        parts = [fields(row)]
        for path, text in sorted(match.files.items()):
            lines = "\n".join(clean(line) for line in str(text).splitlines())
            parts.append(f"--- {clean(path)}\n{lines}")
        return Answer(row | {"files": match.files}, "\n\n".join(parts).rstrip())

    def import_package(self, *, path: Path, workspace: str, name: str | None, **_: Any) -> Answer:
        into = find_workspace(workspace)
        try:
            configuration, result = configurations.store(into, _read(path), name=name)
        except BadPackage as bad:
            raise _refusal(str(path), bad) from bad
        text = f"{result.capitalize()}: configuration {configuration.pk} {into.name}/{configuration.name}."
        return Answer(_row(configuration) | {"result": result}, clean(text))

    def export(self, *, configuration: str, path: Path, force: bool, **_: Any) -> Answer:
        match = find_configuration(configuration)
        others: list[str] = []
        try:
            package = configurations.package_of(match)
            if path.suffix.lower() != ".zip":
                others = packages.write_directory(package, path, force=force)
            else:
                content = io.BytesIO()
                packages.write_zip(package, content)
                if force:
                    path.unlink(missing_ok=True)
                with path.open("xb") as file:
                    file.write(content.getbuffer())
        except BadPackage as bad:
            raise _refusal(str(match), bad) from bad
        except OSError as error:
            message = f"Could not write {str(path)!r}: {error}; choose another path, or use --force."
            raise Failure(message, Exit.REFUSED, "not_written", path=str(path)) from error
        text = f"Wrote {match.workspace.name}/{match.name} to {path}."
        if others:
            text += f" Other files in the folder were kept, and an import would read them: {', '.join(others)}."
        return Answer(
            {"path": str(path), "contents_sha256": match.contents_sha256, "others": others},
            clean(text),
        )

    def check_package(self, *, wanted: str, document: Path | None, output: Path | None, json: bool, **_: Any) -> Answer:
        if document is not None and not document.is_file():
            raise not_found("file", str(document), "give the path of a document")
        if output is not None and document is None:
            message = "--output needs --document: without a document there are no artifacts."
            raise Failure(message, Exit.USAGE, "usage")
        if output is not None and output.exists() and (not output.is_dir() or any(output.iterdir())):
            message = f"--output must be a new or empty folder, but {str(output)!r} is not. Choose another one."
            raise Failure(message, Exit.USAGE, "usage")
        try:
            if Path(wanted).exists():
                package = _read(Path(wanted))
            else:
                package = configurations.package_of(find_configuration(wanted))
                if problems := list(packages.problems_of(package)):
                    raise BadPackage(problems)
        except BadPackage as bad:
            rows = [asdict(Problem("package", problem)) for problem in bad.problems]
            return _answer_of_check({"ok": False, "name": None, "problems": rows})
        try:
            # Show progress line by line: downloading packages may take long.
            report = checking.check(package.snapshot(), document, output, None if json else self._print_lines)
        except OSError as error:
            message = f"Could not read the file or write the output: {error}."
            raise Failure(message, Exit.REFUSED, "not_written") from error
        return _answer_of_check({"name": package.name, **report.as_data()})

    def _print_lines(self, lines: list[Line]) -> None:
        for line in lines:
            self.stdout.write(clean(line.text))
        self.stdout.flush()


def _answer_of_check(data: dict[str, Any]) -> Answer:
    parts = []
    if data["name"] is not None:
        environments = {"ready": "from a build", "made": "made for this check", None: "not made"}
        lock = [line.removesuffix(" \\") for line in (data["lock"] or "").splitlines() if line[:1].strip(" #")]
        row = {"name": data["name"], "fingerprint": data["fingerprint"], "packages": ", ".join(lock)}
        parts.append(f"\n{fields(row | {'environment': environments[data['environment']]})}")
    if run := data.get("run"):
        path = ["path"] if any(row["path"] for row in run["artifacts"]) else []
        parts += [
            f"Ran for {run['seconds']} s.",
            table(run["steps"], "step", "attempt", "seconds", "result") if run["steps"] else "",
            "\n".join(clean(f"[{line['step'] or line['stream']}] {line['message']}") for line in run["log"]),
            table(run["fields"], "name", "value", "confidence", "page", "step") if run["fields"] else "No fields.",
            table(run["artifacts"], "name", "size_bytes", *path) if run["artifacts"] else "No artifacts.",
        ]
    if data["problems"]:
        number = len(data["problems"])
        lines = [f"{number} problem{'s' if number > 1 else ''} found:"]
        for problem in data["problems"]:
            line = f", line {problem['line']}" if problem["line"] else ""
            place = "" if problem["path"] is None else f"{problem['path']}{line}: "
            lines.append(clean(f"{problem['stage']}: {place}{problem['message']}"))
        parts.append("\n".join(lines))
    else:
        parts.append("No problems found.")
    return Answer(data, "\n\n".join(part for part in parts if part), Exit.DONE if data["ok"] else Exit.REFUSED)


def _read(path: Path) -> Package:
    try:
        if not path.exists():
            raise not_found("package", str(path), "give the path of a folder or of a zip file")
        return packages.read(path)
    except OSError as error:
        message = f"Could not read the package {str(path)!r}: {error}."
        raise Failure(message, Exit.REFUSED, "not_readable", path=str(path)) from error


def _refusal(name: str, bad: BadPackage) -> Failure:
    message = f"{name!r} is not a valid package. {bad}"
    return Failure(message, Exit.REFUSED, "bad_package", problems=bad.problems)


def _row(configuration: Configuration) -> dict[str, Any]:
    return {
        "id": configuration.pk,
        "workspace": configuration.workspace.name,
        "name": configuration.name,
        "entry_point": configuration.entry_point,
        "python_version": configuration.python_version,
        "publish": configuration.publish,
        "contents_sha256": configuration.contents_sha256,
        "created_at": configuration.created_at,
        "updated_at": configuration.updated_at,
    }
