"""The first pass over a source: counts rows, collects labels, records bad rows."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from sys import intern

from heedful.core.errors import DataError, shorten_name
from heedful.data.cleaning.steps import Cleaning, count_words
from heedful.data.columns import require_columns
from heedful.data.labels import build_label_index
from heedful.data.sources.row_schema import BadLine, LeftOut, read_cluster, read_row

MAX_BAD_PERCENT = 1  # more bad rows are an error
MAX_LISTED_LINES = 20  # line numbers kept for each reason
FEWEST_BAD_ROWS = 200  # bad rows of which all are reported, before too many end the reading
COLUMN_CHECK_ROWS = 100  # first rows, in which the required columns must appear
MOST_COLUMNS_KEPT = 1000  # of those rows, for the error where the required ones are missing


@dataclass(frozen=True)
class BadRows:
    """Counts of bad rows by reason, with the first line numbers of each."""

    counts: Mapping[str, int] = field(default_factory=dict)
    lines: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """The number of bad rows."""
        return sum(self.counts.values())

    def describe(self, *, shown: int = 5) -> str:
        """One line of text, with at most `shown` line numbers for each reason."""
        if not self.total:
            return "no bad rows"
        parts = []
        for reason, count in self.counts.items():
            numbers = ", ".join(map(str, self.lines[reason][:shown]))
            more = ", …" if count > min(shown, len(self.lines[reason])) else ""
            parts.append(f"{count} {reason} (line{'s' * (count > 1)} {numbers}{more})")
        return f"{self.total} bad row{'s' * (self.total > 1)}: {'; '.join(parts)}"

    def __str__(self) -> str:
        return self.describe()


@dataclass(frozen=True)
class LeftOutRows:
    """Counts of valid rows that a reader or a cleaning leaves out, by reason."""

    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """The number of rows left out."""
        return sum(self.counts.values())

    def __str__(self) -> str:
        if not self.total:
            return "no rows left out"
        parts = "; ".join(f"{count} {reason}" for reason, count in self.counts.items())
        return f"{self.total} row{'s' * (self.total > 1)} left out: {parts}"


def require_cluster(name: str, line: int, raw: Mapping[str, object], column: str) -> None:
    """Raise DataError where a good row does not say which cluster it belongs to."""
    if read_cluster(raw, column) is not None:
        return
    if column not in raw:
        there = shorten_name(", ".join(map(shorten_name, raw)), most=500) or "none"
        raise DataError(
            f"{name} has no column {shorten_name(column)!r} in line {line}; every row needs it, "
            f"because --cluster names it. The columns there: {there}."
        )
    raise DataError(
        f"{name}: line {line} has {shorten_name(repr(raw[column]))} in column "
        f"{shorten_name(column)!r}, which --cluster names; every row needs a name or a whole "
        "number there. Fill it in, or leave out --cluster."
    )


@dataclass
class Scan:
    """Statistics of one pass over a source; `cleaned` has length and label of cleaned rows.

    `allowed` are the only class names that labels may have, where they are given. `cluster` is the
    column that says which texts belong together; every good row must have a value there. The source
    has at most `most_good` good rows, where that is known.
    """

    name: str
    columns: Mapping[str, str]
    allowed: tuple[str, ...] | None = None
    labelled: bool = True
    cleaning: Cleaning | None = None
    cluster: str | None = None
    most_good: int | None = None
    left_out: Counter[str] = field(default_factory=Counter)
    cleaned: list[tuple[int, str]] = field(default_factory=list)
    good: int = 0
    labels: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.allowed = self.allowed if self.labelled else None
        self._find = build_label_index(self.allowed) if self.allowed else None
        self._bad, self._first, self._present = (
            0,
            0,
            dict[str, None](),
        )  # a dict, to keep the columns' order
        self._counts, self._lines = Counter[str](), defaultdict[str, list[int]](list)
        self._unknown = dict[str, None]()

    def add(self, line: int, raw: Mapping[str, object] | BadLine | LeftOut) -> None:
        if isinstance(raw, LeftOut):
            self.left_out[raw.reason] += 1
            return
        if isinstance(raw, BadLine):
            self._leave_out(line, raw.reason)
            return
        if self._first < COLUMN_CHECK_ROWS:
            self._first += 1
            self._add_columns(raw)
            if self._first == COLUMN_CHECK_ROWS:
                self._require_columns()
        row = read_row(raw, self.columns, labelled=self.labelled)
        if isinstance(row, BadLine):
            self._leave_out(line, row.reason)
        elif self._find and self._find(row.label) is None:
            self._unknown.update({row.label: None} if len(self._unknown) < 5 else {})
            self._leave_out(line, "unknown label")
        else:
            if self.cluster is not None:
                require_cluster(self.name, line, raw, self.cluster)
            self.good += 1
            self.labels.add(row.label)
            if self.cleaning:
                self.cleaned.append((count_words(self.cleaning.clean_row(row)), intern(row.label)))

    def _add_columns(self, raw: Mapping[str, object]) -> None:
        """Note the columns that are asked for, and some others, with what is shown of their names.

        Every row of JSON may have columns of its own, with names as long as texts.
        """
        wanted = set(self.columns.values())
        for name in raw:
            if name in wanted:
                self._present[name] = None
            elif len(self._present) < MOST_COLUMNS_KEPT:
                self._present[shorten_name(name)] = None

    def _require_columns(self) -> None:
        require_columns(self.name, self._present, self.columns, labelled=self.labelled)

    def _leave_out(self, line: int, reason: str) -> None:
        self._counts[reason] += 1
        if len(self._lines[reason]) < MAX_LISTED_LINES:
            self._lines[reason].append(line)
        self._bad += 1
        if self._bad >= FEWEST_BAD_ROWS and self._is_hopeless():
            raise self._too_many(f"{self._bad} of the first {self._bad + self.good} rows")

    def _is_hopeless(self) -> bool:
        """Whether more than 1 % of the rows are bad even if all rows to come were good.

        A share of the rows read so far would not do: bad rows often stand together, as empty texts
        do where a table is sorted by text, and a file is not refused for its order. But no more
        good rows can come than the size of the file has room for, and against these one can judge
        at any row: what is refused now would be refused at the end.
        """
        if self.most_good is None:
            return False
        return (100 - MAX_BAD_PERCENT) * self._bad > MAX_BAD_PERCENT * self.most_good

    def _too_many(self, rows: str) -> DataError:
        return DataError(
            f"{self.name}: {rows} cannot be used; at most {MAX_BAD_PERCENT} % may be bad. "
            f"{self._bad_rows().describe(shown=MAX_LISTED_LINES)}. {self._advice()}"
        )

    def _bad_rows(self) -> BadRows:
        return BadRows(dict(self._counts), {r: tuple(n) for r, n in self._lines.items()})

    def finish(self) -> BadRows:
        """The bad rows; raises DataError if they are too many, or if there are no rows."""
        if 0 < self._first < COLUMN_CHECK_ROWS:
            self._require_columns()
        bad = self._bad_rows()
        total = self.good + bad.total
        if not total:
            left = f": {LeftOutRows(self.left_out)}" if self.left_out else ""
            raise DataError(f"{self.name} is empty{left}; it must have at least one row.")
        if 100 * bad.total > MAX_BAD_PERCENT * total:
            raise self._too_many(f"{bad.total} of {total} rows")
        return bad

    def _advice(self) -> str:
        if not self._unknown:
            return "Fix or remove these rows."
        came = ", ".join(repr(shorten_name(name)) for name in self._unknown)
        known = shorten_name(", ".join(map(shorten_name, self.allowed or ())), most=500)
        return f"Labels must be among {known}; got {came}."
