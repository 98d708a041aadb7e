"""The functions that Python users call: load, audit, explain."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.auditing.explain import explain_text
from heedful.auditing.plan import Plan
from heedful.core.errors import ConfigError, RunError
from heedful.core.progress import Progress, silent
from heedful.core.records import Explained
from heedful.data.resolve import Data, read
from heedful.methods import methods as known_methods
from heedful.models.base import Subject
from heedful.models.loading import load_live, load_named
from heedful.report.words import print_words
from heedful.runner.local import run
from heedful.runner.run import Run

if TYPE_CHECKING:
    import pandas as pd

Model = str | Path | Subject | Any  # a live transformers model too; its type needs transformers


def load(model: Model, tokenizer: Any = None, **choices: Any) -> Subject:
    """A subject from a model folder, a hub id, or a live transformers model with its tokenizer.

    A subject of your own is given back as it is. For transformers models `choices` are `layer`,
    `head` and `position` (which attention is under audit), `answers`, `prefix`, `chat`,
    `max_length`, and for those that are loaded `dtype`, `device` and `revision`.
    """
    if isinstance(model, str | Path):
        return load_named(model, **choices)
    if isinstance(model, Subject):
        if choices:
            raise ConfigError(f"A subject is used as it is; {', '.join(choices)} cannot be set.")
        return model
    if hasattr(model, "config") and hasattr(model, "named_modules"):
        if tokenizer is None:
            raise ConfigError("A live model comes with its tokenizer: load(model, tokenizer).")
        return load_live(model, tokenizer, **choices)
    raise ConfigError(
        f"A model is a folder or an object with the verbs of heedful.Subject, not a "
        f"{type(model).__name__}. See docs/your-own-model.md for a 30-line adapter."
    )


def audit(
    model: Model,
    data: Data,
    *,
    checks: Sequence[str] = (),
    out: str | Path | None = None,
    plan: Plan | None = None,
    progress: Progress = silent,
    **settings: Any,
) -> Run:
    """Audit a model on data and return the run; a run interrupted in `out` is continued.

    `settings` are those of `heedful.Plan` (limit, seed, split, max_batch_tokens, …). A plan given
    whole is followed as it is. Without `out` the run lies in a temporary folder: `Run.save` it.
    """
    chosen = plan.subject if plan else settings.get("subject", {})
    subject = load(model, **chosen)
    if plan is None:
        plan = Plan(_name(model, subject), _data_name(data), checks=tuple(checks), **settings)
    elif checks or settings:
        raise ConfigError("Give a plan or settings, not both; dataclasses.replace changes a plan.")
    rows = read(
        data,
        split=plan.split,
        fields=plan.fields or None,
        labels=subject.labels,
        limit=plan.limit,
        labelled=getattr(subject, "labelled", True),
    )
    return run(subject, rows, plan, out=Path(out) if out else None, progress=progress)


@dataclass(frozen=True)
class Explanations:
    """What several methods say of one text; `record` holds the numbers."""

    record: Explained

    def show(self, *, numbers: bool = False) -> None:
        """Print the words coloured by their scores, a line per method."""
        print_words(self.record, numbers=numbers)

    def to_dict(self) -> dict[str, Any]:
        """The explanation as `heedful explain --json` prints it."""
        return self.record.to_dict()

    def to_dataframe(self) -> "pd.DataFrame":
        """One row per word, one column per method."""
        try:
            import pandas as pd
        except ImportError:
            raise RunError("to_dataframe needs pandas: pip install pandas.") from None
        columns = {name: one.scores for name, one in self.record.methods.items()}
        return pd.DataFrame({"token": self.record.tokens, **columns})


def explain(
    model: Model,
    text: str,
    *,
    method: str | None = None,
    methods: Sequence[str] = (),
    target: str | None = None,
    granularity: str = "word",
    seed: int = 0,
    **choices: Any,
) -> Explanations:
    """Explain the prediction for one text by one method, several, or all there are.

    `choices` are those of `load`.
    """
    names = (method,) if method else tuple(methods) or tuple(known_methods)
    record = explain_text(
        load(model, **choices), text, names=names, target=target, granularity=granularity, seed=seed
    )
    return Explanations(record)


def _name(model: Model, subject: Subject) -> str:
    return subject.family if isinstance(model, Subject) else str(model)


def _data_name(data: Data) -> str:
    name = getattr(data, "name", None)
    if isinstance(data, str | Path):
        return str(data)
    return name if isinstance(name, str) else f"a {type(data).__name__} in memory"
