"""`heedful list`: list registered parts, one line each."""

from collections.abc import Iterator
from enum import StrEnum
from importlib import import_module
from itertools import product
from typing import Annotated

import typer
from typer import Argument

DATA_FORMS = {
    "FILE": "a .jsonl, .jsonl.gz, .csv or .parquet file with the columns text and label",
    "FOLDER": "a folder with train, dev and test files of those endings",
    "hf:NAME[@CONFIG]": "a data set of the hub, or a folder written by `datasets`",
}


class PartKind(StrEnum):
    """Kinds of parts that can be listed."""

    methods = "methods"
    interventions = "interventions"
    checks = "checks"
    data = "data"
    cleanings = "cleanings"
    families = "families"
    studies = "studies"


REGISTRY_MODULES = {
    PartKind.methods: "heedful.methods",
    PartKind.interventions: "heedful.checks.interventions",
    PartKind.checks: "heedful.checks",
}


def list_parts(what: Annotated[PartKind, Argument(help="The kind of parts.")]) -> None:
    """List methods, interventions, checks, data, cleanings, families or studies."""
    width = 37 if what is PartKind.cleanings else 22
    for name, line in _lines(what):
        typer.echo(f"{name:{width}} {line}")


def _lines(what: PartKind) -> Iterator[tuple[str, str]]:
    if what is PartKind.data:
        from heedful.data import corpora
        from heedful.data.readers import readers

        yield from DATA_FORMS.items()
        yield from ((name, corpora.summary(name)) for name in corpora)
        yield from ((f"{name}:PATH", readers.summary(name)) for name in readers)
    elif what is PartKind.cleanings:
        from heedful.data.cleaning.presets import CLEANINGS

        yield from ((name, str(one)) for name, one in CLEANINGS.items())
    elif what is PartKind.families:
        from heedful.models.attention_access import supported_families as known
        from heedful.models.recurrent.attention import attentions
        from heedful.models.recurrent.encoders import encoders

        for encoder, attention in product(encoders, attentions):
            yield f"{encoder}-{attention}", encoders.summary(encoder)
        yield from (
            (name, known.PATH_DESCRIPTIONS[path]) for name, path in known.PATH_BY_FAMILY.items()
        )
        yield from ((name, f"refused: {why}") for name, why in known.REFUSED_FAMILIES.items())
    elif what is PartKind.studies:
        from heedful.studies.study import Study, list_studies

        for name in list_studies():
            study = Study.read(name)
            yield name, f"{study.title}. {study.reference}"
    else:
        registry = getattr(import_module(REGISTRY_MODULES[what]), what)
        yield from ((name, registry.summary(name)) for name in registry)
