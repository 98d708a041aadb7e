"""Fields of a row and the columns that hold them, as mapped by `--fields`."""

from collections.abc import Collection, Mapping

from heedful.core.errors import ConfigError, DataError, UnknownName, shorten_name

REQUIRED_FIELDS = ("text", "label")
PAIR_FIELDS = ("premise", "hypothesis")
QUERY_FIELDS = ("paragraph", "question")
OPTIONAL_FIELDS = ("tokens", "rationale", "word_scores", "candidates", "messages")
TEXT_ALTERNATIVES = (PAIR_FIELDS, QUERY_FIELDS, ("messages",))  # fields that may replace a text
KNOWN_FIELDS = (*REQUIRED_FIELDS, *OPTIONAL_FIELDS, *PAIR_FIELDS, *QUERY_FIELDS)

# Common names of these columns, used for the example in an error message.
COMMON_COLUMN_NAMES = {
    "text": ("review", "sentence", "content", "comment", "body", "document", "tweet", "headline"),
    "label": ("labels", "stars", "rating", "class", "target", "sentiment", "category", "topic"),
}


def parse_fields(text: str) -> dict[str, str]:
    """Parse `text=review,label=stars` to {"text": "review", "label": "stars"}.

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
    """Raise ConfigError for unknown fields, or for one column mapped to two fields."""
    for field in fields:
        if field not in KNOWN_FIELDS:
            raise UnknownName.among("field", field, KNOWN_FIELDS)
    columns = list(fields.values())
    for column in columns:
        if columns.count(column) > 1:
            raise ConfigError(f"Column {column!r} is mapped to two fields; map it to one.")


def map_columns(fields: Mapping[str, str] | None) -> dict[str, str]:
    """The column of every field: the mapped one, or the one of the same name."""
    given = dict(fields or {})
    check_fields(given)
    # A column that is mapped to one field is not also read as the field of its own name.
    mapped = set(given.values())
    return {field: field for field in KNOWN_FIELDS if field not in mapped} | given


def require_columns(
    name: str, present: Collection[str], columns: Mapping[str, str], *, labelled: bool = True
) -> None:
    """Raise DataError where no row has the column of the text or of the label."""
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
        f"Name the columns, for example --fields {_suggest_mapping(present, columns)}."
    )


def _suggest_mapping(present: Collection[str], columns: Mapping[str, str]) -> str:
    """A plausible mapping: common names first, then any column, then an invented one."""
    found = {field: columns[field] for field in REQUIRED_FIELDS if columns.get(field) in present}
    for field in REQUIRED_FIELDS:
        if field not in found:
            free = [column for column in present if column not in found.values()]
            usual = [column for column in free if column.casefold() in COMMON_COLUMN_NAMES[field]]
            found[field] = next(iter([*usual, *free, COMMON_COLUMN_NAMES[field][0]]))
    return ",".join(f"{field}={shorten_name(found[field])}" for field in REQUIRED_FIELDS)
