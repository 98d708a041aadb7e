"""The two networks of the 2019 papers, by their shape."""

from heedful.models.network import AttentionClassifier, Shape
from heedful.models.query import QueryClassifier

Network = AttentionClassifier | QueryClassifier


def new_network(shape: Shape) -> Network:
    """A network of this shape with weights from torch's own stream."""
    return QueryClassifier(shape) if shape.query else AttentionClassifier(shape)
