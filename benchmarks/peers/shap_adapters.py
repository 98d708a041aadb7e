"""shap on texts: words are left out."""

import numpy as np
import shap

from benchmarks.peers.versions_of_text import TextVersions

SAMPLES = 1000  # of KernelExplainer, as heedful's own
GONE = "..."  # what PartitionExplainer writes for words left out


def kernel(subject, example):
    """`KernelExplainer`; words are features that are there or not."""
    text = TextVersions(subject, example)
    words = len(text.words)
    np.random.seed(example.index)  # the library draws from the global stream
    explainer = shap.KernelExplainer(text.of_kept, np.zeros((1, words)))
    found = explainer.shap_values(np.ones((1, words)), nsamples=SAMPLES, silent=True)
    return np.asarray(found, dtype=float).reshape(-1).tolist()


def partition(subject, example):
    """`PartitionExplainer` with its masker of texts, 500 evaluations by default."""
    text = TextVersions(subject, example)

    def probability(versions):
        kept = [str(one).replace(GONE, " ").split() for one in versions]
        return text.probabilities(kept)[:, text.target]

    explainer = shap.PartitionExplainer(probability, shap.maskers.Text(r"\s+", mask_token=GONE))
    found = explainer([example.text], silent=True)
    return np.asarray(found.values[0], dtype=float).reshape(-1).tolist()


ADAPTERS = {"shap kernel": kernel, "shap partition": partition}
