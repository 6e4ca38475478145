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

    def import_package(self, *, path: Path, workspace: str, name: str | None, **_: Any) -> Answer:
        into = find_workspace(workspace)
        try:
            stored, result = configurations.store(into, _read(path), name=name)
        except BadPackage as bad:
            raise _refusal(str(path), bad) from bad
        text = f"{result.capitalize()}: configuration {stored.pk} {into.name}/{stored.name}."
        return Answer(_row(stored) | {"result": result}, clean(text))

    def export(self, *, configuration: str, path: Path, force: bool, **_: Any) -> Answer:
        found = find_configuration(configuration)
        try:
            others = _write(configurations.packed(found), path, force=force)
        except BadPackage as bad:
            raise _refusal(str(found), bad) from bad
        except OSError as error:
            message = f"Could not write {str(path)!r}: {error}; choose another path, or use --force."
            raise Failure(message, Exit.REFUSED, "not_written", path=str(path)) from error
        told = {"path": str(path), "contents_sha256": found.contents_sha256, "others": others}
        left = (
            f" Other files in the folder were kept, and an import would read them: {', '.join(others)}."
            if others
            else ""
        )
        return Answer(told, clean(f"Wrote {found.workspace.name}/{found.name} to {path}.{left}"))

    def check_package(self, *, wanted: str, document: Path | None, output: Path | None, json: bool, **_: Any) -> Answer:
        _expect_files(document, output)
        try:
            package = _package(wanted)
        except BadPackage as bad:
            told = {"name": None, "problems": [asdict(Problem("package", problem)) for problem in bad.problems]}
            return _checked({"ok": False, **told})
        try:
            # Show progress line by line: downloading packages may take long.
            report = checking.check(package.snapshot(), document, output, None if json else self._say)
        except OSError as error:
            message = f"Could not read the file or write the output: {error}."
            raise Failure(message, Exit.REFUSED, "not_written") from error
        return _checked({"name": package.name, **report.as_data()})

    def _say(self, lines: list[Line]) -> None:
        for line in lines:
            self.stdout.write(clean(line.text))
        self.stdout.flush()


def _expect_files(document: Path | None, output: Path | None) -> None:
    if document is not None and not document.is_file():
        raise not_found("file", str(document), "give the path of a document")
    if output is not None and document is None:
        message = "--output needs --document: without a document there are no artifacts."
        raise Failure(message, Exit.USAGE, "usage")
    if output is not None and output.exists() and (not output.is_dir() or any(output.iterdir())):
        message = f"--output must be a new or empty folder, but {str(output)!r} is not. Choose another one."
        raise Failure(message, Exit.USAGE, "usage")


def _package(wanted: str) -> Package:
    if Path(wanted).exists():
        return _read(Path(wanted))
    package = configurations.packed(find_configuration(wanted))
    if problems := list(packages.problems_of(package)):
        raise BadPackage(problems)
    return package


def _checked(told: dict[str, Any]) -> Answer:
    parts = [_of_environment(told), *_of_run(told.get("run")), _of_problems(told["problems"])]
    return Answer(told, "\n\n".join(part for part in parts if part), Exit.DONE if told["ok"] else Exit.REFUSED)


def _of_environment(told: dict[str, Any]) -> str:
    if told["name"] is None:
        return ""
    environments = {"ready": "from a build", "made": "made for this check", None: "not made"}
    locked = [line.removesuffix(" \\") for line in (told["lock"] or "").splitlines() if line[:1].strip(" #")]
    row = {"name": told["name"], "fingerprint": told["fingerprint"], "packages": ", ".join(locked)}
    return f"\n{fields(row | {'environment': environments[told['environment']]})}"


def _of_run(run: dict[str, Any] | None) -> list[str]:
    if run is None:
        return []
    kept = ["path"] if any(row["path"] for row in run["artifacts"]) else []
    log = "\n".join(clean(f"[{line['step'] or line['stream']}] {line['message']}") for line in run["log"])
    return [
        f"Ran for {run['seconds']} s.",
        table(run["steps"], "step", "attempt", "seconds", "result") if run["steps"] else "",
        log,
        table(run["fields"], "name", "value", "confidence", "page", "step") if run["fields"] else "No fields.",
        table(run["artifacts"], "name", "size_bytes", *kept) if run["artifacts"] else "No artifacts.",
    ]


def _of_problems(problems: list[dict[str, Any]]) -> str:
    if not problems:
        return "No problems found."
    lines = [clean(f"{problem['stage']}: {_place(problem)}{problem['message']}") for problem in problems]
    return "\n".join([f"{len(lines)} problem{'s' if len(lines) > 1 else ''} found:", *lines])


def _place(problem: dict[str, Any]) -> str:
    if problem["path"] is None:
        return ""
    return f"{problem['path']}, line {problem['line']}: " if problem["line"] else f"{problem['path']}: "


def _read(path: Path) -> Package:
    try:
        if not path.exists():
            raise not_found("package", str(path), "give the path of a folder or of a zip file")
        return packages.read(path)
    except OSError as error:
        message = f"Could not read the package {str(path)!r}: {error}."
        raise Failure(message, Exit.REFUSED, "not_readable", path=str(path)) from error


def _write(package: Package, path: Path, *, force: bool) -> list[str]:
    if path.suffix.lower() != ".zip":
        return packages.write_directory(package, path, force=force)
    whole = io.BytesIO()
    packages.write_zip(package, whole)
    if force:
        path.unlink(missing_ok=True)
    with path.open("xb") as file:
        file.write(whole.getbuffer())
    return []


def _refusal(named: str, bad: BadPackage) -> Failure:
    message = f"{named!r} is not a valid package. {bad}"
    return Failure(message, Exit.REFUSED, "bad_package", problems=bad.problems)


def _row(configuration: Configuration) -> dict[str, Any]:
    return {
        "id": configuration.pk,
        "workspace": configuration.workspace.name,
        "name": configuration.name,
        "entry_point": configuration.entry_point,
        "python_version": configuration.python_version,
        "contents_sha256": configuration.contents_sha256,
        "created_at": configuration.created_at,
        "updated_at": configuration.updated_at,
    }


def _printable(text: object) -> str:
    return "\n".join(clean(line) for line in str(text).splitlines())
