"""The functions that Python users call: load, audit, explain, explain_all."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from heedful.api.explanations import Explanations
from heedful.api.run import Run, temporary_run
from heedful.core.errors import ConfigError
from heedful.core.timing import Progress, no_progress
from heedful.data.dataset import Dataset
from heedful.data.read import DataLike, read
from heedful.models.load import load_in_memory, load_subject
from heedful.models.protocols import Subject
from heedful.pipeline.audit.run_audit import run_audit
from heedful.pipeline.explain.explain_dataset import (
    DataExplanations,
    ExplainSource,
    explain_to_file,
    require_new,
)
from heedful.pipeline.explain.explain_text import explain_text
from heedful.pipeline.explain.request import ExplainRequest, MethodsLike, resolve_methods
from heedful.pipeline.plan.plan import Plan
from heedful.pipeline.retrain.run_retraining import Callbacks
from heedful.pipeline.retrain.training_data import read_training_data
from heedful.results.outputs import output_path

ModelSource = str | Path | Subject | Any  # Any: a live model, whose type needs transformers


def load(model: ModelSource, tokenizer: Any = None, **choices: Any) -> Subject:
    """A subject from a model folder, a hub id, or a live transformers model with its tokenizer.

    A subject of your own is given back as it is. For transformers models `choices` are `layer`,
    `head` and `position` (which attention is under audit), `answers`, `prefix`, `chat`,
    `max_length`, and for those that are loaded `dtype`, `device` and `revision`.
    """
    if isinstance(model, str | Path):
        return load_subject(model, **choices)
    if isinstance(model, Subject):
        if choices:
            raise ConfigError(f"A subject is used as it is; {', '.join(choices)} cannot be set.")
        return model
    if hasattr(model, "config") and hasattr(model, "named_modules"):
        if tokenizer is None:
            raise ConfigError("A live model comes with its tokenizer: load(model, tokenizer).")
        return load_in_memory(model, tokenizer, **choices)
    raise ConfigError(
        f"A model is a folder or an object with the verbs of heedful.Subject, not a "
        f"{type(model).__name__}. See docs/your-own-model.md for a 30-line adapter."
    )


def audit(
    model: ModelSource,
    data: DataLike,
    *,
    checks: Sequence[str] = (),
    out: str | Path | None = None,
    plan: Plan | None = None,
    train: DataLike | None = None,
    dev: DataLike | None = None,
    progress: Progress = no_progress,
    announce: Callable[[str], None] = lambda _: None,
    warn: Callable[[str], None] = warnings.warn,
    **settings: Any,
) -> Run:
    """Audit a model on data and return the run; a run interrupted in `out` is continued.

    `settings` are those of `heedful.Plan` (limit, seed, split, max_batch_tokens, …);
    `cluster="document"` names a column of ids of texts that are drawn together. A plan given whole
    is followed as it is. Without `out` the run is in a temporary folder, removed when the run is no
    longer in use, or at exit: `Run.save` copies it, `Run.report(path)` writes elsewhere.
    Checks that retrain models use `train` and `dev`, or the splits of that name that the data has;
    `announce` is called with a line on what that will cost, `warn` with one on files of an earlier
    session that are missing or changed, which are made again.
    """
    chosen = plan.subject if plan else settings.get("subject", {})
    subject = load(model, **chosen)
    if plan is None:
        if isinstance(data, Dataset):  # which says itself how it was cleaned, and what is a cluster
            settings.setdefault("cleaning", data.cleaning)
            settings.setdefault("cluster", data.cluster)
        plan = Plan(_name(model, subject), _data_name(data), checks=tuple(checks), **settings)
    elif checks or settings:
        raise ConfigError("Give a plan or settings, not both; dataclasses.replace changes a plan.")
    labelled = getattr(subject, "labelled", True)  # a next token is not
    asked: dict[str, Any] = {
        name: getattr(plan, name) for name in ("split", "limit", "cleaning", "cluster")
    }
    rows = read(data, fields=plan.fields or None, labels=subject.labels, labelled=labelled, **asked)
    known = subject.labels if labelled else ()
    training = read_training_data(data, plan, known, train=train, dev=dev)
    callbacks = Callbacks(progress, announce, warn)
    place = output_path(out) if out else None
    folder = run_audit(subject, rows, plan, out=place, training=training, callbacks=callbacks)
    return Run(folder) if out else temporary_run(folder)


def explain(
    model: ModelSource,
    text: str,
    *,
    question: str | None = None,
    method: str | None = None,
    methods: MethodsLike = None,
    target: str | None = None,
    granularity: str = "word",
    of: str | None = None,
    seed: int = 0,
    **choices: Any,
) -> Explanations:
    """Explain the prediction for one text by one method, several, or the usual ones.

    `question` is a question about the text, or the other text of a pair, for models that read two.
    `methods` are names, a mapping from names to settings, or "all"; the usual ones are all but
    the slow and the controls. `of` (probability, log_odds or logit) is what methods explain that
    know the choice. `choices` are those of `load`.
    """
    asked = _request(method, methods, target=target, granularity=granularity, of=of, seed=seed)
    subject = load(model, **choices)
    found = explain_text(subject, text, asked, question=question)
    return Explanations(found, _name(model, subject))


def explain_all(
    model: ModelSource,
    data: DataLike,
    *,
    out: str | Path = "explanations.parquet",
    overwrite: bool = False,
    methods: MethodsLike = None,
    target: str | None = None,
    granularity: str = "word",
    of: str | None = None,
    split: str = "test",
    fields: str | Mapping[str, str] | None = None,
    limit: int | None = None,
    cleaning: str | None = None,
    seed: int = 0,
    max_batch_tokens: int = 20_000,
    progress: Progress = no_progress,
    **choices: Any,
) -> DataExplanations:
    """Explain every text of a data set, into one Parquet file with a row per text and method.

    A file that exists is refused unless it has explanations and `overwrite` is true; then it is
    replaced once all is done.
    Memory does not grow with the data. Labels are kept where the data has some; under a paper's
    `cleaning` it must. The rest is as for `explain`.
    """
    asked = _request(None, methods, target=target, granularity=granularity, of=of, seed=seed)
    source = ExplainSource(data, split, fields, limit, cleaning, max_batch_tokens)
    require_new(place := output_path(out), overwrite=overwrite)
    subject = load(model, **choices)
    return explain_to_file(subject, source, asked, out=place, progress=progress)


def _request(method: str | None, methods: MethodsLike, **rest: Any) -> ExplainRequest:
    if method and methods:
        raise ConfigError("Give method or methods, not both.")
    return ExplainRequest(resolve_methods((method,) if method else methods), **rest)


def _name(model: ModelSource, subject: Subject) -> str:
    return subject.family if isinstance(model, Subject) else str(model)


def _data_name(data: DataLike) -> str:
    name = getattr(data, "name", None)
    if isinstance(data, str | Path):
        return str(data)
    return name if isinstance(name, str) else f"a {type(data).__name__} in memory"
