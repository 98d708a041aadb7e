"""Names of what `influence` measures, and the numbers its rules use; no torch."""

NAME = "influence"
MEAN, CROSS_FITTED = "mean over texts", "cross-fitted"
SHUFFLED, HALF, INFLUENCE = "shuffled", "half of influence", "influence"
DELETION, MASKING, NEAR_FULL = "deletion", "masking", "near-full"
PLACES = ("order", "top_set", "top_word")
BEST_SET, RANDOM = "best set found", "random"
RELIABLE = 0.5  # the reliability of m below which it is no yardstick
SHARE_EPSILONS = (0.01, 0.02, 0.05, 0.1)
KIN = ("leave_one_out", "occlusion", "lime", "kernel_shap", "shapley")
"""Methods that erase words themselves, as the yardstick does; a test holds them to the registry."""
SPLITS = ("class", "length", "confidence", "leverage")
MIN_STRATUM = 30  # distinct texts of a stratum that is tested
MIN_CLUSTERS = 10  # documents, say, of a stratum that is tested
LEAST_WORDS = 4  # shorter texts are counted, not judged
