import time
from collections import Counter
from typing import Any

from django.core.management.base import CommandParser

from config.doctor import Check, Finding, Level, all_checks
from config.file_checks import Files
from work.operations.commands import Answer, Exit, Failure, OperatorCommand, clean


class Command(OperatorCommand):
    help = "Check the installation, and say how to fix what is wrong. Changes nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("names", metavar="CHECK", nargs="*", help="run only checks with this prefix (default: all)")
        help = (
            "read every file of the environments and compare its checksum (default: only files with a new size or time)"
        )
        parser.add_argument("--thorough", action="store_true", help=help)
        parser.add_argument(
            "--files",
            choices=[mode.value for mode in Files],
            default=Files.SAMPLE.value,
            help="what documents.files compares with the documents: the size of a sample of the files, the size of all,"
            " or size and checksum of all (default: sample)",
        )

    def answer(self, **options: Any) -> Answer:
        chosen = _chosen(options["names"], thorough=options["thorough"], files=Files(options["files"]))
        width = max(len(check.name) for check in chosen)
        rows: list[dict[str, Any]] = []
        for check in chosen:
            started = time.monotonic()
            finding = check.made()
            rows.append(_row(check, finding) | {"seconds": round(time.monotonic() - started, 3)})
            if not options["json"]:
                # Print each result at once: on a large database some checks take seconds.
                self.stdout.write(_lines(check, finding, width))
                self.stdout.flush()
            if check.is_ground and finding.level == Level.FAIL:
                break
        levels = Counter(row["level"] for row in rows)
        skipped = [check.name for check in chosen[len(rows) :]]
        data = {"ok": not levels[Level.FAIL], "checks": rows, "skipped": skipped}
        return Answer(data, _summary(levels, len(skipped)), Exit.REFUSED if levels[Level.FAIL] else Exit.DONE)


def _chosen(names: list[str], *, thorough: bool, files: Files) -> list[Check]:
    checks = list(all_checks(thorough=thorough, files=files))
    for name in names:
        if not any(check.name.startswith(name) for check in checks):
            known = ", ".join(dict.fromkeys(check.name.partition(".")[0] for check in checks))
            message = f"Unknown check {name!r}. Checks begin with: {known}."
            raise Failure(message, Exit.USAGE, "usage", wanted=name)
    return [check for check in checks if check.is_ground or not names or check.name.startswith(tuple(names))]


def _row(check: Check, finding: Finding) -> dict[str, Any]:
    return {
        "name": check.name,
        "level": finding.level,
        "found": finding.found,
        "advice": finding.advice,
        "offenders": [{"kind": kind, "id": id} for kind, id in finding.offenders],
    }


def _lines(check: Check, finding: Finding, width: int) -> str:
    lines = f"{finding.level:4}  {check.name:{width}}  {clean(finding.found)}"
    return f"{lines}\n{'':{width + 8}}{clean(finding.advice)}" if finding.advice else lines


def _summary(levels: "Counter[Level]", skipped: int) -> str:
    said = [f"{levels[Level.OK]} ok", f"{levels[Level.WARN]} with a warning", f"{levels[Level.FAIL]} failed"]
    return f"\n{', '.join([*said, f'{skipped} not run'] if skipped else said)}."
