"""Cleanings by name: those of Jain & Wallace (2019), and of papers that followed them.

Wiegreffe & Pinter (2019) used code and files of Jain & Wallace for six of the data sets. They
selected the epoch on the test set and had no dev set; heedful always selects on dev.
"""

from dataclasses import replace

from heedful.core.errors import UnknownName
from heedful.data.cleaning.split_ratios import Shares
from heedful.data.cleaning.steps import Cleaning

JAIN, WIEGREFFE = "jain-wallace-2019", "wiegreffe-pinter-2019"
WIEGREFFE_DATASETS = ("sst", "imdb", "20news", "agnews", "mimic", "mimic-diabetes", "mimic-anemia")

# Clinical notes, however the user has split them; the two tasks of the papers add to this.
_CLINICAL_NOTES = Cleaning("", numbers=True, signs="once", hidden=True, shorter_than=4000, min_df=5)

_JAIN_CLEANINGS = {
    "sst": Cleaning("", "letters", longer_than=5, own_ends=True),
    "imdb": Cleaning(
        "",
        "keras",
        fewer_than=400,
        longer_than=6,
        own_ends=True,
        shares=Shares(dev=0.2, test=0.2),
        min_df=10,
    ),
    "20news": Cleaning(
        "",
        numbers=True,
        signs="last",
        longer_than=6,
        shorter_than=500,
        shares=Shares(dev=0.2, test=0.2, pooled=True, by_class=True),
        min_df=2,
    ),
    "agnews": Cleaning("", numbers=True, own_ends=True, min_df=5),
    "adr": Cleaning(
        "",
        longer_than=5,
        shorter_than=100,
        shares=Shares(test=0.2, pooled=True, by_class=True),
        min_df=2,
    ),
    "mimic": _CLINICAL_NOTES,
    "mimic-diabetes": replace(_CLINICAL_NOTES, longer_than=6),
    "mimic-anemia": replace(
        _CLINICAL_NOTES,
        own_ends=True,
        shares=Shares(dev=0.15, test=0.2, pooled=True, by_class=True),
    ),
    "snli": Cleaning("", numbers=True, min_df=3),
    "cnn": Cleaning("", "space", lower=False, min_df=8),
    "babi": Cleaning("", lower=False, closing=False, shares=Shares(dev=0.15)),
}

CLEANINGS = {
    name: replace(_JAIN_CLEANINGS[one], name=name)
    for paper, sets in ((JAIN, tuple(_JAIN_CLEANINGS)), (WIEGREFFE, WIEGREFFE_DATASETS))
    for one in sets
    for name in (f"{paper}/{one}",)
}


def get_cleaning(name: str) -> Cleaning:
    """The cleaning of that name.

    >>> get_cleaning("jain-wallace-2019/sst").clean_text("A fine film, isn't it?")
    ['a', 'fine', 'film', 'isn', 't', 'it']
    """
    if name not in CLEANINGS:
        raise UnknownName.among("cleaning", name, CLEANINGS)
    return CLEANINGS[name]
