"""The files that a run keeps, known by the digests of their content."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from heedful.core.atomic_files import write_atomic
from heedful.core.errors import RunError

FILES = "files.json"
DIGESTS_SCHEMA = 1
KEPT_PATTERNS = ("plan.toml", "manifest.json", "verdict.json", "*/[!.]*.parquet")
"""Of the run folder; what else is there (the page, figures) is made again from these."""


def file_digest(path: Path) -> str | None:
    """The SHA-256 of a file, in hex; None where there is no such file."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror or error}.") from error


@dataclass
class KeptFiles:
    """The digests of the files in a run folder, by name relative to it."""

    folder: Path
    digests: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> "KeptFiles":
        """The digests that a run has recorded; none where it has not begun."""
        path = folder / FILES
        try:
            found = json.loads(path.read_text("utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            return cls(folder)
        except (OSError, ValueError, RecursionError) as error:
            raise _damaged(path, error) from error
        digests = found.get("sha256") if isinstance(found, dict) else None
        if not isinstance(digests, dict) or not all(
            isinstance(one, str) for one in digests.values()
        ):
            raise _damaged(path, "it must hold the SHA-256 of each file")
        if found.get("schema") != DIGESTS_SCHEMA:
            raise RunError(f"{path} has schema {found.get('schema')!r}; this reads 1.")
        return cls(folder, dict(digests))

    def record(self, *names: str) -> None:
        """Record files as they are now, after those that were recorded before."""
        for name in names:
            digest = file_digest(self.folder / name)
            if digest is None:
                raise RunError(f"{self.folder / name} has gone while the run was written.")
            self.digests[name] = digest
        content = {"schema": DIGESTS_SCHEMA, "sha256": dict(sorted(self.digests.items()))}
        write_atomic(self.folder / FILES, json.dumps(content, indent=0))

    def is_whole(self, name: str) -> bool:
        """Whether a file is recorded, there, and unchanged."""
        digest = self.digests.get(name)
        return digest is not None and file_digest(self.folder / name) == digest

    def damaged(self) -> Iterator[str]:
        """What is wrong with the kept files, one line each: missing, changed, not recorded."""
        for name, digest in self.digests.items():
            found = file_digest(self.folder / name)
            if found is None:
                yield f"{name}: missing"
            elif found != digest:
                yield f"{name}: changed"
        there = {
            str(path.relative_to(self.folder))
            for pattern in KEPT_PATTERNS
            for path in self.folder.glob(pattern)
        }
        yield from (f"{name}: not recorded" for name in sorted(there - self.digests.keys()))


def verify_run(folder: Path) -> list[str]:
    """What is missing, changed or unknown among the files of a run; empty where all is well.

    `files.json` has the digest of every file; `manifest.json`, once there, has them all again.
    """
    if not folder.is_dir():
        raise RunError(f"There is no run folder at {folder}.")
    kept = KeptFiles.read(folder)
    if not kept.digests:
        raise RunError(
            f"{folder} records no digests of its files: it is no run folder, or one of an earlier "
            "version."
        )
    found = [*kept.damaged()]
    for name, digest in _digests_in_manifest(folder).items():
        if kept.digests.get(name) != digest:
            found.append(f"{name}: {FILES} and manifest.json disagree")
    return found


def _digests_in_manifest(folder: Path) -> Mapping[str, str]:
    try:
        found = json.loads((folder / "manifest.json").read_text("utf-8"))["files"]
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        return {}  # a manifest that is damaged is among the changed files
    return found if isinstance(found, dict) else {}


def _damaged(path: Path, reason: object) -> RunError:
    return RunError(
        f"{path} is damaged: {reason}. Without it nothing in the folder can be trusted; choose "
        "another --out, or remove the folder."
    )
