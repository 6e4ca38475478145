"""The check of `manage.py doctor` on the environments of this machine."""

from builds import environments, integrity
from config.findings import Finding, fail, ok, warn


def environments_are_sealed(*, thorough: bool) -> Finding:
    """Compare environments with their seals. Read only files whose size or time has changed, or all with `thorough`."""
    changed: list[str] = []
    unsealed: list[str] = []
    stored = environments.all_environments()
    for each in stored:
        seal = environments.read_seal(each.name)
        if seal is None:
            unsealed.append(each.name[:12])
            continue
        try:
            changes = integrity.compare(each.path, seal, thorough=thorough)
        except FileNotFoundError:
            # The environment was removed meanwhile.
            continue
        if changes and each.path.exists():
            changed.append(f"{each.name[:12]}: {changes}")
    how = "all checksums" if thorough else "sizes and times"
    if changed:
        return fail(
            f"{len(changed)} of {len(stored)} environments were changed after they were built: {'; '.join(changed)}",
            f"Find out who can write to {environments.root()}. Runs never use a changed environment; the next one "
            "builds it again. `manage.py build prune --unused-days 0` removes all that are not in use.",
        )
    if unsealed:
        return warn(
            f"{len(unsealed)} of {len(stored)} environments have no seal: {', '.join(unsealed)}",
            "An older version built them, or the seals were removed. The next run of each builds it again.",
        )
    return ok(f"{len(stored)} environments match their seals, by {how}")
