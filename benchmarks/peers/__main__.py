"""`python -m benchmarks.peers`: methods of other libraries beside ours, on the planted kinds.

Run by `make peers` in an environment of its own. Fewer texts than `heedful benchmark` takes, since
some of these methods run a model a thousand times for each text. The libraries' settings are their
defaults, except for the number of samples of LIME and Kernel SHAP, which is 1 000 as ours is.
"""

import argparse
import json
import logging
import os
import sys
import warnings
from importlib import import_module
from importlib.metadata import version

import torch

from heedful.cli.options import progress_bar, split_names
from heedful.core.errors import HeedfulError
from heedful.planted import score_methods

LIBRARIES = ("captum", "shap", "lime", "inseq")
TEXTS = 5


def find_peers():
    """All adapters by name, and by library its version or why it is not there."""
    adapters, libraries = {}, {}
    for library in LIBRARIES:
        try:
            found = import_module(f"benchmarks.peers.{library}_adapters").ADAPTERS
        except ImportError as error:
            libraries[library] = f"not there: {error}"
            continue
        adapters |= found
        libraries[library] = version(library)
    return adapters, libraries


def main():
    """Print the table, or JSON."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--json", action="store_true")
    asked.add_argument("--quiet", action="store_true")
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--texts", type=int, default=TEXTS)
    asked.add_argument("--kinds", help="kinds or families by commas")
    asked.add_argument("--methods", help="methods of heedful beside them, by commas")
    given = asked.parse_args()
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)  # libraries announce each text
    warnings.simplefilter("ignore")
    adapters, libraries = find_peers()
    with progress_bar("peers", quiet=given.quiet) as progress:
        found = score_methods(
            split_names(given.methods) if given.methods else None,
            others=adapters,
            kinds=split_names(given.kinds) if given.kinds else None,
            texts=given.texts,
            seed=given.seed,
            progress=progress,
        )
    if given.json:
        print(json.dumps({"libraries": libraries, **found.to_dict()}, allow_nan=False))
        return
    found.show()
    for library, which in libraries.items():
        print(f"{library}: {which}")


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        main()
    except HeedfulError as error:
        print(f"benchmarks.peers: {error}", file=sys.stderr)
        sys.exit(2)
