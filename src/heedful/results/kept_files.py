"""The files that a run keeps, known by the digests of their content.

`files.jsonl` has a line for each file, appended once the file is on the disk, so that a job costs
one line however many came before. Of two lines on one file the later one counts; a last line
without its end was cut by a kill or a full disk, and is as if never written.
"""

import hashlib
import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, NamedTuple

from heedful.core.atomic_files import write_atomic
from heedful.core.errors import RunError, file_errors
from heedful.core.files.regular_files import open_regular, read_document, require_regular
from heedful.results.run_folder import FILES, KINDS, MANIFEST, PLAN, VERDICT, RunFolder

DIGESTS_SCHEMA = 1
HEADER = {"schema": DIGESTS_SCHEMA, "digest": "sha256"}
KEPT_PATTERNS = (PLAN, MANIFEST, VERDICT, *(f"{kind}/[!.]*.parquet" for kind in KINDS))
"""Of the run folder; what else is there (the page, figures) is made again from these."""


class FileDigest(NamedTuple):
    """What is known of the content of a file."""

    size: int
    sha256: str


def digest_file(path: Path) -> FileDigest:
    """Size and SHA-256 of a regular file; OSError where it is none."""
    with open_regular(path) as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]
        return FileDigest(stream.tell(), sha256)


def digest_text(text: str) -> FileDigest:
    """What will be known of a file with this content."""
    data = text.encode()
    return FileDigest(len(data), hashlib.sha256(data).hexdigest())


@dataclass
class KeptFiles:
    """The digests of the files in a run folder, by name relative to it."""

    folder: Path
    digests: dict[str, FileDigest] = field(default_factory=dict)
    tidy: bool = False  # whether files.jsonl is there, whole, and names no file twice

    @classmethod
    def read(cls, folder: Path) -> "KeptFiles":
        """The digests that a run has recorded; none where it has not begun."""
        path = folder / FILES
        try:
            text = read_document(path)
        except (FileNotFoundError, NotADirectoryError):
            return cls(folder)
        except (OSError, UnicodeDecodeError) as error:
            raise _damaged(path, getattr(error, "strerror", None) or error) from error
        *lines, cut = text.split("\n")
        kept = cls(folder, tidy=not cut)
        for number, line in enumerate(lines, 1):
            try:
                kept._read_line(json.loads(line), first=number == 1)
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                raise _damaged(path, f"line {number}: {error}") from error
        return kept

    def _read_line(self, found: Any, *, first: bool) -> None:
        if first:
            if found != HEADER:
                raise ValueError(f"it must be {json.dumps(HEADER)}")
            return
        name, size, sha256 = found["file"], found["bytes"], found["sha256"]
        if not (isinstance(name, str) and type(size) is int and isinstance(sha256, str)):
            raise ValueError("it must name a file, its bytes and its sha256")
        if not any(PurePosixPath(name).match(one) for one in KEPT_PATTERNS) or name.count("/") > 1:
            raise ValueError(f"{name[:100]!r} is no file that a run keeps")
        self.tidy &= name not in self.digests
        self.digests[name] = FileDigest(size, sha256)

    def keep_only(self, names: Collection[str]) -> None:
        """Forget every other file, and write what remains anew where it is not tidy."""
        there = len(self.digests)
        self.digests = {name: one for name, one in self.digests.items() if name in names}
        if not self.tidy or len(self.digests) < there:
            lines = [json.dumps(HEADER), *map(_line, self.digests.items())]
            write_atomic(self.folder / FILES, "".join(f"{one}\n" for one in lines))
            self.tidy = True

    def record(self, *names: str) -> None:
        """Record files as they are now, after those that were recorded before."""
        with file_errors(f"Cannot write {self.folder / FILES}"):
            new = {name: digest_file(self.folder / name) for name in names}
            known = {name: one for name, one in new.items() if self.digests.get(name) != one}
            if not self.tidy:
                self.keep_only(self.digests.keys())
            with (self.folder / FILES).open("ab") as stream:
                stream.write("".join(f"{_line(one)}\n" for one in known.items()).encode())
                stream.flush()
                os.fsync(stream.fileno())
        self.digests |= new

    def state(self, name: str) -> str:
        """What is wrong with a recorded file, such as "missing"; "" where it is whole."""
        digest, path = self.digests[name], self.folder / name
        try:
            if require_regular(path) != digest.size:
                return "changed"
            return "" if digest_file(path) == digest else "changed"
        except (FileNotFoundError, NotADirectoryError):
            return "missing"
        except OSError as error:
            return error.strerror or str(error)

    def damaged(self) -> dict[str, str]:
        """The recorded files that are not whole, and what is wrong with each."""
        return {name: why for name in self.digests if (why := self.state(name))}

    def unrecorded(self) -> list[str]:
        """The files of a kind that a run keeps which it did not record."""
        found = (path for pattern in KEPT_PATTERNS for path in self.folder.glob(pattern))
        there = {path.relative_to(self.folder).as_posix() for path in found}
        return sorted(there - self.digests.keys())

    def seal(self, coming: Mapping[str, FileDigest] = MappingProxyType({})) -> dict[str, Any]:
        """What the manifest says of all other files: their number, and one digest of them all."""
        known = {**self.digests, **coming}
        files = sorted(one for one in known.items() if one[0] != MANIFEST)
        lines = "".join(f"{_line(one)}\n" for one in files)
        sha256 = hashlib.sha256(lines.encode()).hexdigest()
        return {"recorded in": FILES, "number": len(files), "sha256": sha256}


def verify_run(folder: Path) -> list[str]:
    """What is missing, changed or unknown among the files of a run; empty where all is well.

    `files.jsonl` has the digest of every file, and the manifest a digest of all of them.
    """
    kept = read_kept_files(folder)
    found = [f"{name}: {why}" for name, why in kept.damaged().items()]
    found += [f"{name}: not recorded" for name in kept.unrecorded()]
    done = {MANIFEST, VERDICT} <= kept.digests.keys()
    sealed = RunFolder(folder).manifest() if done and not found else None
    if sealed is not None and sealed.get("files") != kept.seal():
        found.append(f"{FILES}: not the digests that {MANIFEST} was written with")
    for name in (MANIFEST, VERDICT):
        if name not in kept.digests:
            found.append(
                f"{name}: not written yet; the same `heedful audit` command finishes the run"
            )
    return found


def read_kept_files(folder: Path) -> KeptFiles:
    """The digests of a run, which must have some."""
    with file_errors(f"Cannot read {folder}"):
        if not folder.is_dir():
            raise RunError(f"There is no run folder at {folder}.")
    if (kept := KeptFiles.read(folder)).digests:
        return kept
    if not any((folder / name).exists() for name in (PLAN, MANIFEST, VERDICT)):
        raise RunError(f"{folder} is no run folder: it has no {FILES} and no {PLAN}.")
    raise RunError(
        f"{folder} has no digests of its files: {FILES} is missing or empty, or the run was made "
        "by a version that kept none. What it holds can be read, but not verified."
    )


def _line(one: tuple[str, FileDigest]) -> str:
    name, digest = one
    return json.dumps({"file": name, "bytes": digest.size, "sha256": digest.sha256})


def _damaged(path: Path, reason: object) -> RunError:
    return RunError(
        f"{path} is damaged: {reason}. Without it the folder cannot be trusted; choose another "
        "--out, or remove the folder."
    )
