"""Whole attention maps of a few texts, packed small enough to travel in a page."""

import zlib
from base64 import b64encode
from dataclasses import asdict, dataclass
from itertools import groupby
from math import isnan
from typing import Any

import numpy as np
from jaxtyping import UInt8

from heedful.report.escaping import shorten_word
from heedful.results.audited_attention import read_audited_attention
from heedful.results.document import Section, Widget
from heedful.results.run_records import RunRecords, sanitise_text

# signs of all packed maps together. A weight is a byte and rows sum to 1, so that 64 tokens hold
# at most about six bits per byte: three such texts of 12 layers of 12 heads always fit
BUDGET = 1_900_000
LONGEST_TOKEN = 24
MapRow = dict[str, Any]


@dataclass(frozen=True, slots=True)
class MapLayer:
    """The heads of one layer that have a map; `queries` are None where they are the keys."""

    layer: int
    heads: tuple[int, ...]
    queries: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class MapText:
    """All maps of one text.

    `packed` is base64 of deflated bytes: layer by layer, head by head, row by row, the square root
    of each weight as a share of 255, which tells small weights apart.
    """

    instance: int
    keys: tuple[str, ...]
    layers: tuple[MapLayer, ...]
    packed: str


@dataclass(frozen=True, slots=True)
class Maps:
    """The texts whose maps are shown, and which they are."""

    texts: tuple[MapText, ...]
    note: str


def build_attention_maps(records: RunRecords) -> Section | None:
    """The maps of a few texts; None where the run kept none."""
    maps, audited = build_maps(records), read_audited_attention(records.manifest)
    if maps is None:
        return None
    agreement = records.verdict.checks.get("agreement")
    taus = agreement.by_layer("tau_leave_one_out") if agreement else {}
    data = {
        "layer": audited.layer if audited else None,
        "position": audited.position if audited else None,
        "tau": {
            f"{layer} {head}": round(tau.value, 4)
            for (layer, head), tau in taus.items()
            if head is not None and not isnan(tau.value)
        },
        "texts": [asdict(one) for one in maps.texts],
    }
    widget = Widget("maps", data) if maps.texts else None
    return Section("attention-maps", "Attention maps", (maps.note,), widget=widget, short="Maps")


def build_maps(records: RunRecords) -> Maps | None:
    """As many of the kept maps as a page can carry; None where the run kept none."""
    rows = records.maps.whole().to_pylist() if records.maps else []
    rows.sort(key=lambda row: (row["instance"], row["layer"], row["head"]))
    texts, kept, room = [], 0, BUDGET
    for _, whose in groupby((row for row in rows if _whole(row)), key=lambda row: row["instance"]):
        text = _text(list(whose))
        kept += 1
        if len(text.packed) <= room:
            room -= len(text.packed)
            texts.append(text)
    return Maps(tuple(texts), _describe_sample(texts, kept)) if kept else None


def _whole(row: MapRow) -> bool:
    return len(row["weights"]) == len(row["queries"]) * len(row["keys"]) > 0


def _text(rows: list[MapRow]) -> MapText:
    layers = []
    for layer, inside in groupby(rows, key=lambda row: row["layer"]):
        heads = list(inside)
        queries = None if heads[0]["queries"] == heads[0]["keys"] else _tokens(heads[0]["queries"])
        layers.append(MapLayer(layer, tuple(row["head"] for row in heads), queries))
    levels = np.concatenate([_levels(row["weights"]) for row in rows])
    packed = b64encode(zlib.compress(levels.tobytes(), 9)).decode()
    return MapText(rows[0]["instance"], _tokens(rows[0]["keys"]), tuple(layers), packed)


def _levels(weights: list[float | None]) -> UInt8[np.ndarray, "n"]:
    values = np.nan_to_num(np.array(weights, dtype=np.float64)).clip(0, 1)
    return np.asarray(np.rint(255 * np.sqrt(values)), dtype=np.uint8)


def _tokens(tokens: list[str]) -> tuple[str, ...]:
    return tuple(shorten_word(sanitise_text(token), LONGEST_TOKEN) for token in tokens)


def _describe_sample(texts: list[MapText], kept: int) -> str:
    if not texts:
        return "The maps that the run kept are too large for a page; they are in its folder, maps/."
    numbers = [str(text.instance) for text in texts]
    *most, last = numbers
    which = f"texts {', '.join(most)} and {last}" if most else f"text {last}"
    note = f"Of {which}, the first of the data that were short enough to keep whole maps."
    if len(texts) < kept:
        note += f" The run kept {kept}: more would make this page too large to travel."
    return note
