"""What must hold of a transformers model before transformers sees it.

Nothing is built, unpickled or allocated here: files are regular and lie in the folder, the headers
of the weights are sound, the config asks for nothing that the weights do not have, and the
tokenizer reads short texts.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from heedful.core.errors import ModelError
from heedful.models.loading.config_sizes import check_class_names, check_config
from heedful.models.loading.errors import shortened, shown
from heedful.models.loading.files import check_files, read_json_object
from heedful.models.loading.tokenizer_limits import check_tokenizer
from heedful.models.loading.weights_header import (
    INDEX_FILE,
    WEIGHTS_FILE,
    WeightSizes,
    indexed_names,
    read_sizes,
)

CONFIG_FILE = "config.json"
CLASSIFIER = "ForSequenceClassification"
READ_FILES = ["*.json", "*.txt", "*.model", "*.jinja"]  # beside weights, of a model on the hub
NOT_READ = ["*/*.json", "*/*.txt", "*/*.model"]
MORE_BYTES = 2**29  # of masks and tables that a model computes when it is built
BYTES_PER_NUMBER = 16  # twice what a weight in float64 has


@dataclass(frozen=True)
class CheckedModel:
    """A model that may be loaded: by its name, with these arguments, as large as `sizes`."""

    name: str
    arguments: dict[str, Any]
    sizes: WeightSizes

    def require_buildable(self, auto_class: Any, config: Any) -> None:
        """Refuse a model that takes far more memory than its weights have; none is taken for it."""
        with torch.device("meta"):
            model = auto_class.from_config(config, trust_remote_code=False)
        parts = (*model.parameters(), *model.buffers())
        needed = sum(one.numel() * one.element_size() for one in parts)
        if needed > (most := self.sizes.numbers * BYTES_PER_NUMBER + MORE_BYTES):
            raise ModelError(
                f"{shortened(self.name)}: its config describes a model of {needed:,} bytes; for "
                f"the {self.sizes.numbers:,} numbers in its weights it may have {most:,}. They do "
                "not belong together."
            )


def check_model(name: str | Path, *, revision: str | None = None) -> CheckedModel:
    """Check the folder of a model; one of the hub is downloaded first, as far as it is read."""
    arguments: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}
    folder = Path(name)
    if not folder.is_dir():
        folder = _download(str(name), revision)
        arguments["revision"] = folder.name  # what was checked is what is loaded
    check_files(folder)
    config = read_json_object(folder / CONFIG_FILE)
    if (folder / "adapter_config.json").exists():
        raise ModelError(
            f"{shown(folder)} holds an adapter; merge it into its model and save that."
        )
    sizes = read_sizes(folder)
    check_config(config, folder / CONFIG_FILE, sizes)
    if any(str(one).endswith(CLASSIFIER) for one in config.get("architectures") or ()):
        check_class_names(config, folder / CONFIG_FILE)
    check_tokenizer(folder, sizes)
    return CheckedModel(str(name), arguments, sizes)


def _download(name: str, revision: str | None) -> Path:
    """Fetch the files of a model that are read, and no others; gives their folder in the cache."""
    from huggingface_hub import hf_hub_download, snapshot_download
    from huggingface_hub.errors import EntryNotFoundError

    folder = Path(
        snapshot_download(
            name, revision=revision, allow_patterns=READ_FILES, ignore_patterns=NOT_READ
        )
    )
    try:
        hf_hub_download(name, WEIGHTS_FILE, revision=folder.name)
    except EntryNotFoundError:
        if (folder / INDEX_FILE).exists():
            for one in indexed_names(folder / INDEX_FILE):
                hf_hub_download(name, one, revision=folder.name)
    return folder
