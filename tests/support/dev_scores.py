"""The dev score of a subject, as training selects its best epoch by."""

from heedful.training.loop.predictions import predict_all, require_dev, selection_score


def dev_score(subject, encoded):
    require_dev(encoded, len(subject.labels))
    return selection_score(predict_all(subject, encoded).probabilities, encoded)[0]
