"""`heedful audit`: audit the attention of a model."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from heedful.cli import options
from heedful.core.errors import ConfigError
from heedful.core.records import ANSWERS

if TYPE_CHECKING:
    from heedful.api.run import Run
    from heedful.pipeline.plan.plan import Plan

ENGINES = ("local",)
PLAN_OPTIONS = ("split", "cleaning", "limit", "cluster", "seed", "min_words", "max_batch_tokens")


def audit(
    model: options.Model,
    data: options.Data,
    out: Annotated[Path, Option(parser=options.path, help="The run folder to write or continue.")],
    split: Annotated[str | None, Option(help="The split. [default: test]")] = None,
    checks: Annotated[
        str | None,
        Option(help="Checks by commas, or all. [default: those that retrain nothing]"),
    ] = None,
    methods: Annotated[
        str | None, Option(help="Methods to compare with attention, by commas, or all.")
    ] = None,
    plan: Annotated[
        Path | None, Option(parser=options.path, help="A TOML file of settings.")
    ] = None,
    fields: options.Fields = None,
    cleaning: options.Cleaning = None,
    limit: options.Limit = None,
    cluster: Annotated[
        str | None,
        Option(
            metavar="COLUMN",
            help="Draw texts with the same id here together: sentences of one document.",
        ),
    ] = None,
    seed: Annotated[int | None, Option(help="Seed of all random numbers.")] = None,
    min_words: options.MinWords = None,
    max_batch_tokens: Annotated[
        int | None, Option(min=1, help="Limits memory; does not change results.")
    ] = None,
    subject: options.Subject = None,
    quick: Annotated[bool, Option("--quick", help="A first look: few texts and steps.")] = False,
    workers: Annotated[
        int | None,
        Option(min=1, help="Models retrained in parallel. [default: one per core]"),
    ] = None,
    train_limit: Annotated[
        int | None, Option(min=1, help="Retrain on the first N training texts only.")
    ] = None,
    retrained: Annotated[
        Path | None,
        Option(parser=options.path, help="Folder of retrained models. [default: in the run]"),
    ] = None,
    retrain_transformers: Annotated[
        bool, Option("--retrain-transformers", help="Allow fine-tuning of transformers.")
    ] = False,
    engine: Annotated[str, Option(help="Where jobs run.")] = "local",
    require: Annotated[str | None, Option(help="Exit with 1 unless this is the verdict.")] = None,
    details: options.Details = False,
    quiet: options.Quiet = False,
) -> None:
    """Audit MODEL on DATA: run the checks, write the run folder, print the verdict."""
    if engine not in ENGINES:
        raise ConfigError(f"No engine is named {engine!r}. Known: {', '.join(ENGINES)}.")
    if require is not None and require not in ANSWERS:
        raise ConfigError(f"--require takes one of {', '.join(ANSWERS)}, not {require!r}.")
    here = locals()
    given = {name: here[name] for name in PLAN_OPTIONS}
    given["checks"] = options.split_names(checks) or None
    given["subject"] = options.parse_subject_options(subject) or None
    folder = None if retrained is None else str(retrained)
    retraining = {"workers": workers, "limit": train_limit, "folder": folder}
    retraining |= {"transformers": retrain_transformers or None}
    given["retraining"] = {name: one for name, one in retraining.items() if one is not None}
    complete = _plan(model, data, plan, given, fields=fields, methods=options.split_names(methods))
    chosen = complete.quick() if quick else complete
    run = audit_and_print(chosen, out, details=details, quiet=quiet)
    if require is not None and run.verdict.answer != require:
        raise typer.Exit(1)


def audit_and_print(plan: "Plan", out: Path, *, details: bool = False, quiet: bool) -> "Run":
    """Run a plan with a progress bar and print the verdict card."""
    from heedful.api.functions import audit as audit_model
    from heedful.data.read import describe_equal_splits
    from heedful.pipeline.plan.method_settings import describe_method_cost

    if not quiet and (message := describe_method_cost(plan.methods)):
        typer.echo(message, err=True)
    tell, ignore = partial(typer.echo, err=True), (lambda _: None)
    with options.progress_bar("audit", quiet=quiet) as progress:
        attended = not quiet and sys.stderr.isatty()
        run = audit_model(
            plan.model,
            plan.data,
            plan=plan,
            out=out,
            progress=progress,
            announce=tell if attended else ignore,
            warn=ignore if quiet else tell,
        )
    written = _write_report(run)
    if not quiet:
        run.show(details=details)
        if same := describe_equal_splits(plan.data):
            typer.echo(same)
        more = "" if details else f" (details: heedful report {quote(str(out))} --details)"
        typer.echo(f"Run: {out}{more}\nReport: {written}")
    return run


def _write_report(run: "Run") -> str:
    """Write the report and return its path and size; without its packages, how to install them."""
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in ("altair", "jinja2", "vl_convert")):
        return f"none; pip install 'heedful[report]', then heedful report {run.folder}"
    path = run.report()
    return f"{path} ({path.stat().st_size / 1e6:.1f} MB, opens offline)"


def _plan(
    model: str,
    data: str,
    file: Path | None,
    given: dict[str, Any],
    *,
    fields: str | None,
    methods: tuple[str, ...],
) -> "Plan":
    """The plan: settings of the plan file, overridden by those of the command line."""
    from heedful.data.columns import parse_fields
    from heedful.pipeline.plan.plan import Plan, parse_plan, read_plan_file

    raw = parse_plan(read_plan_file(file)) if file else {}
    given["retraining"] = raw.get("retraining", {}) | given["retraining"]
    raw |= {key: value for key, value in given.items() if value is not None}
    raw |= {"model": model, "data": data}
    if fields:
        raw["fields"] = parse_fields(fields)
    if methods:
        settings = {**raw.get("settings", {})}
        for check in _checks_with_methods(raw.get("checks", ())):
            settings[check] = {**settings.get(check, {}), "methods": methods}
        raw["settings"] = settings
    return Plan(**raw)


def _checks_with_methods(checks: Sequence[str]) -> tuple[str, ...]:
    """The checks whose `methods` the option sets, among those that run."""
    from heedful.checks import checks as registry

    specs = [spec for spec in registry.specs() if spec.takes_methods != "never"]
    if "all" in checks:
        return tuple(spec.name for spec in specs if spec.takes_methods == "always")
    chosen = tuple(spec.name for spec in specs if spec.name in checks)
    return chosen or ("agreement",)  # a default check; without it the plan says so
