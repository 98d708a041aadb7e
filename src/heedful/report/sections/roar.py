"""What the accuracy of models retrained without the top-ranked words does not show."""

PATTERN = (
    "Models are trained on such texts, so the remaining words are not off their distribution. But "
    "a retrained model may find other cues, and a gap may itself reveal what was removed."
)
