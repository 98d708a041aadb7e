"""What a safetensors file says of its weights: names, types and shapes, read without any weight.

A header is believed only where its tensors fill the file exactly, one after the other. What it says
is then backed by bytes, so that sizes in a config can be held against it.
"""

import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, TypeGuard

from heedful.core.errors import ModelError
from heedful.models.loading.errors import shortened, shown
from heedful.models.loading.files import (
    is_plain_name,
    parse_json,
    read_json_object,
    require_inside,
)

WEIGHTS_FILE, INDEX_FILE = "model.safetensors", "model.safetensors.index.json"
MOST_HEADER_BYTES = 2**25  # some 300 000 weights
MOST_FILES = 10_000
BYTES_BY_TYPE = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0"), 1),
    **dict.fromkeys(("I16", "U16", "F16", "BF16"), 2),
    **dict.fromkeys(("I32", "U32", "F32"), 4),
    **dict.fromkeys(("I64", "U64", "F64", "C64"), 8),
}
COMPLEX = "C64"


@dataclass(frozen=True)
class WeightSizes:
    """How many weights there are, how many numbers they hold, and the largest dimension."""

    count: int
    numbers: int
    largest: int


def read_sizes(folder: Path) -> WeightSizes:
    """The sizes of all weights of a folder, by the headers of its files."""
    shapes: list[tuple[int, ...]] = []
    for path in weight_files(folder):
        require_inside(path, folder)
        shapes += read_shapes(path).values()
    largest = max((max(one, default=1) for one in shapes), default=0)
    return WeightSizes(len(shapes), sum(map(prod, shapes)), largest)


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a folder: one, or those that its index names."""
    if (folder / WEIGHTS_FILE).exists() or not (folder / INDEX_FILE).exists():
        if not (folder / WEIGHTS_FILE).exists():
            raise ModelError(
                f"{shown(folder)} has no file named {WEIGHTS_FILE}; weights must be "
                "safetensors, since pickled ones can run code. Save it with save_pretrained."
            )
        return [folder / WEIGHTS_FILE]
    return [folder / name for name in indexed_names(folder / INDEX_FILE)]


def indexed_names(index: Path) -> list[str]:
    """The files that an index names: safetensors beside it, and nothing else."""
    names = read_json_object(index).get("weight_map")
    if not isinstance(names, dict) or not names:
        raise ModelError(f"{shown(index)} must name the file of each weight in its weight_map.")
    for one in names.values():
        if not is_plain_name(one):
            raise ModelError(
                f"{shown(index)} names {shortened(repr(one))}; it may name plain *.safetensors "
                "files of its own folder only."
            )
    files = sorted(set(names.values()))
    if len(files) > MOST_FILES:
        raise ModelError(f"{shown(index)} names {len(files):,} files; it may name {MOST_FILES:,}.")
    return files


def read_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shape of each weight in a file whose header is sound."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        if not 2 <= length <= min(size - 8, MOST_HEADER_BYTES):
            raise _unsound(path, f"a header of {length:,} bytes in a file of {size:,}")
        header = parse_json(file.read(length), f"The header of {shown(path)}")
    if not isinstance(header, dict):
        raise _unsound(path, f"a header that is no JSON object but {type(header).__name__}")
    header.pop("__metadata__", None)
    _check_layout(path, header, size - 8 - length)
    return {name: tuple(one["shape"]) for name, one in header.items()}


def _check_layout(path: Path, header: Mapping[str, Any], size: int) -> None:
    """Require weights of known types that fill the file, one after the other."""
    places = []
    for name, one in header.items():
        if not isinstance(one, dict):
            raise _unsound(path, f"{shortened(name)!r} without type and shape")
        kind, shape, span = one.get("dtype"), one.get("shape"), one.get("data_offsets")
        if kind == COMPLEX:
            raise ModelError(
                f"{shown(path)}: {shortened(name)} holds complex numbers; weights must be real."
            )
        if not isinstance(kind, str) or kind not in BYTES_BY_TYPE:
            raise _unsound(path, f"{shortened(name)} of the type {shortened(repr(kind))}")
        if not _are_sizes(shape) or not _are_sizes(span) or len(span) != 2:
            raise _unsound(path, f"{shortened(name)} of the shape {shortened(repr(shape))}")
        if prod(shape) * BYTES_BY_TYPE[kind] != span[1] - span[0]:
            raise _unsound(path, f"{shortened(name)} with other bytes than its shape needs")
        places.append((span[0], span[1], name))
    end = 0
    for first, last, name in sorted(places):
        if first != end:
            raise _unsound(path, f"{shortened(name)} at another place than behind the one before")
        end = last
    if end != size:
        raise _unsound(path, f"weights of {end:,} bytes where the file has {size:,}")


def _are_sizes(values: object) -> TypeGuard[list[int]]:
    return isinstance(values, list) and all(type(one) is int and one >= 0 for one in values)


def _unsound(path: Path, found: str) -> ModelError:
    return ModelError(
        f"{shown(path)} cannot be read as safetensors: it has {found}. Save or download it again."
    )
