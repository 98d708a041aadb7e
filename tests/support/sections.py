"""The sections of a run's page by name."""

from heedful.report.sections.page import build_sections


def sections_of(records):
    """Every section and every part of one, by its name; names are unique in a page."""
    found = {}

    def walk(sections):
        for one in sections:
            assert one.name not in found
            found[one.name] = one
            walk((*one.parts, *one.folded))

    walk(build_sections(records))
    return found


def names_of(table):
    """The names of the rows."""
    return [one if isinstance(one, str) else one.text for one, *_ in table.rows]


def values_of(table, place):
    """The values of the estimates in a column; None for cells that are blank."""
    cells = [row[place] for row in table.rows]
    return [None if isinstance(one, str) else one.estimate.value for one in cells]


def figures_of(records):
    """Every figure of the page."""
    return [figure for one in sections_of(records).values() for figure in one.figures]
