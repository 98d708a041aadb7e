"""What a check measured, by the names users write: `flip[lime, masking]`, `score[seed 2]`."""

from heedful.core.records import MeasureKey


def columns(findings):
    """The values of every text by the name of their key."""
    found = {str(one.key("")): one.values for one in findings.measurements}
    assert len(found) == len(findings.measurements)  # no key twice
    return found


def missing(findings):
    """The reasons why measures are missing, by the same names."""
    return {
        str(MeasureKey("", one.measure, method=one.method)): one.reason for one in findings.missing
    }


def measures(spec):
    """The plain names of all measures that a description lists."""
    return {one.name for one in spec.measures}


def plain(name):
    """The measure that a key is of, without the rest."""
    return name.partition("[")[0]
