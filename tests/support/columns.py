"""Columns of measurements by hand, without a run folder."""

import numpy as np

from heedful.core.records import MeasureKey
from heedful.results.tables import MeasurementColumns


def columns_of(predicted, values, label=None):
    """Columns of texts in order; `values` are by check, then by measure or (measure, method)."""
    keys = {
        MeasureKey(check, *((name,) if isinstance(name, str) else name)): np.asarray(one)
        for check, columns in values.items()
        for name, one in columns.items()
    }
    predicted = np.array(predicted, dtype=object)
    label = predicted if label is None else np.array(label, dtype=object)
    return MeasurementColumns(np.arange(len(predicted)), predicted, label, keys)
