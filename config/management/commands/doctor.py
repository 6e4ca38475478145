import time
from collections import Counter
from typing import Any

from django.core.management.base import CommandParser
from django.db import connection

from config.doctor import Level, all_checks
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
        checks = list(all_checks(thorough=options["thorough"], files=Files(options["files"])))
        checks = [check for check in checks if check.vendor in ("", connection.vendor)]
        prefixes = options["names"]
        for prefix in prefixes:
            if not any(check.name.startswith(prefix) for check in checks):
                known = ", ".join(dict.fromkeys(check.name.partition(".")[0] for check in checks))
                message = f"Unknown check {prefix!r}. Checks begin with: {known}."
                raise Failure(message, Exit.USAGE, "usage", wanted=prefix)
        if prefixes:
            checks = [check for check in checks if check.is_ground or check.name.startswith(tuple(prefixes))]
        width = max(len(check.name) for check in checks)
        rows: list[dict[str, Any]] = []
        for check in checks:
            started = time.monotonic()
            finding = check.run()
            row = {
                "name": check.name,
                "level": finding.level,
                "found": finding.message,
                "advice": finding.advice,
                "offenders": [{"kind": kind, "id": id} for kind, id in finding.offenders],
                "seconds": round(time.monotonic() - started, 3),
            }
            rows.append(row)
            if not options["json"]:
                # Print each result at once, because some checks take seconds on a large database.
                self.stdout.write(f"{finding.level:4}  {check.name:{width}}  {clean(finding.message)}")
                if finding.advice:
                    self.stdout.write(f"{'':{width + 8}}{clean(finding.advice)}")
                self.stdout.flush()
            if check.is_ground and finding.level == Level.FAIL:
                break
        levels = Counter(row["level"] for row in rows)
        skipped = [check.name for check in checks[len(rows) :]]
        data = {"ok": not levels[Level.FAIL], "checks": rows, "skipped": skipped}
        counts = [f"{levels[Level.OK]} ok", f"{levels[Level.WARN]} with a warning", f"{levels[Level.FAIL]} failed"]
        counts += [f"{len(skipped)} not run"] if skipped else []
        return Answer(data, f"\n{', '.join(counts)}.", Exit.REFUSED if levels[Level.FAIL] else Exit.DONE)
