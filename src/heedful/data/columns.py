"""Which column of a file holds what: the names a row may use, and the mapping of `--fields`."""

from collections.abc import Collection, Mapping
from difflib import get_close_matches

from heedful.core.errors import ConfigError, DataError
from heedful.data.labels import shorten_name

REQUIRED_FIELDS = ("text", "label")
PAIR_FIELDS = ("premise", "hypothesis")
QUERY_FIELDS = ("paragraph", "question")
OPTIONAL_FIELDS = (
    "tokens",
    "rationale",
    "word_scores",
    "candidates",
    "messages",
    *PAIR_FIELDS,
    *QUERY_FIELDS,
)
TEXT_ALTERNATIVES = (
    PAIR_FIELDS,
    QUERY_FIELDS,
    ("messages",),
)  # what may stand in the place of a text
KNOWN_FIELDS = (*REQUIRED_FIELDS, *OPTIONAL_FIELDS)

# What people call these columns; only used to write a helpful example into an error.
COMMON_COLUMN_NAMES = {
    "text": ("review", "sentence", "content", "comment", "body", "document", "tweet", "headline"),
    "label": ("labels", "stars", "rating", "class", "target", "sentiment", "category", "topic"),
}


def parse_fields(text: str) -> dict[str, str]:
    """Read `text=review,label=stars` as {"text": "review", "label": "stars"}.

    >>> parse_fields("text=review, label=stars")
    {'text': 'review', 'label': 'stars'}
    """
    fields: dict[str, str] = {}
    for pair in text.split(","):
        field, equals, column = (part.strip() for part in pair.partition("="))
        if not (field and equals and column):
            raise ConfigError(
                f"--fields got {pair.strip()!r}; each part must be FIELD=COLUMN. "
                "Write for example --fields text=review,label=stars."
            )
        if field in fields:
            raise ConfigError(f"--fields names {field!r} twice; give each field one column.")
        fields[field] = column
    check_fields(fields)
    return fields


def check_fields(fields: Mapping[str, str]) -> None:
    """Refuse a mapping of fields that do not exist, or of one column to two fields."""
    for field in fields:
        if field not in KNOWN_FIELDS:
            near = get_close_matches(field, KNOWN_FIELDS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ConfigError(
                f"No field is named {field!r}.{hint} Known: {', '.join(KNOWN_FIELDS)}."
            )
    columns = list(fields.values())
    for column in columns:
        if columns.count(column) > 1:
            raise ConfigError(f"Column {column!r} is mapped to two fields; map it to one.")


def map_columns(fields: Mapping[str, str] | None) -> dict[str, str]:
    """The column of every field a text may have, by its own name where none is mapped."""
    given = dict(fields or {})
    check_fields(given)
    # A column that was mapped to one field is not also read as another by its own name.
    taken = set(given.values())
    own = {field: field for field in (*REQUIRED_FIELDS, *OPTIONAL_FIELDS) if field not in taken}
    return {**own, **given}


def require_columns(
    name: str, present: Collection[str], columns: Mapping[str, str], *, labelled: bool = True
) -> None:
    """Refuse rows in which the column of the text or of the label does not exist at all."""
    needed = REQUIRED_FIELDS if labelled else REQUIRED_FIELDS[:1]
    missing = [field for field in needed if columns.get(field) not in present]
    if any(all(columns.get(one) in present for one in fields) for fields in TEXT_ALTERNATIVES):
        missing = [field for field in missing if field != "text"]
    if not missing:
        return
    wanted = " and ".join(
        repr(columns[field]) if field in columns else f"for {field!r}" for field in missing
    )
    there = shorten_name(", ".join(map(shorten_name, present)), most=500) or "none"
    raise DataError(
        f"{name} has no column {wanted}. Its columns: {there}. "
        f"Say which hold them, for example --fields {_suggest_mapping(present, columns)}."
    )


def _suggest_mapping(present: Collection[str], columns: Mapping[str, str]) -> str:
    """A mapping that could be meant: usual names first, then any column, then a made-up one."""
    found = {field: columns[field] for field in REQUIRED_FIELDS if columns.get(field) in present}
    for field in REQUIRED_FIELDS:
        if field not in found:
            free = [column for column in present if column not in found.values()]
            usual = [column for column in free if column.casefold() in COMMON_COLUMN_NAMES[field]]
            found[field] = next(iter([*usual, *free, COMMON_COLUMN_NAMES[field][0]]))
    return ",".join(f"{field}={shorten_name(found[field])}" for field in REQUIRED_FIELDS)
