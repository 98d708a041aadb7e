"""lime on texts: words are left out, each occurrence by itself."""

from lime.lime_text import LimeTextExplainer

from benchmarks.peers.versions_of_text import TextVersions

SAMPLES = 1000  # as heedful's own; the default of 5 000 costs five times as much
GONE = "UNKWORDZ"  # what stands for a word left out, before it goes


def lime_text(subject, example):
    """`LimeTextExplainer`, one weight per word."""
    text = TextVersions(subject, example)

    def probabilities(versions):
        kept = [[word for word in one.split() if word != GONE] for one in versions]
        return text.probabilities(kept)

    explainer = LimeTextExplainer(
        bow=False, split_expression=r"\s+", mask_string=GONE, random_state=example.index
    )
    found = explainer.explain_instance(
        example.text,
        probabilities,
        labels=(text.target,),
        num_features=len(text.words),
        num_samples=SAMPLES,
    )
    weights = dict(found.as_map()[text.target])
    return [float(weights.get(place, 0.0)) for place in range(len(text.words))]


ADAPTERS = {"lime text": lime_text}
