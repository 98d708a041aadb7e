"""`heedful explain`: explain one text, or every text of a data set, by several methods."""

import json
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from heedful.cli import options
from heedful.core.errors import ConfigError


def explain(
    model: options.Model,
    text: Annotated[str | None, Argument(help="The text to explain.")] = None,
    question: Annotated[
        str | None, Option(help="A question about TEXT, or the other text of a pair.")
    ] = None,
    data: Annotated[
        str | None, Option(help="Explain every text of this data; write to --out.")
    ] = None,
    out: Annotated[
        Path | None, Option(parser=options.path, help="With --data: the .parquet to write.")
    ] = None,
    methods: Annotated[
        str | None,
        Option(help="Methods by commas, or all. [default: no slow, patented or control ones]"),
    ] = None,
    settings: Annotated[
        list[str] | None,
        Option("--set", help="Set METHOD.SETTING=VALUE, as rollout.residual=0.3; repeatable."),
    ] = None,
    of: Annotated[
        str | None, Option(help="What is explained: probability, log_odds or logit.")
    ] = None,
    target: Annotated[
        str | None, Option(help="The class to explain. [default: the predicted one]")
    ] = None,
    granularity: Annotated[str, Option(help="word or token.")] = "word",
    as_json: options.Json = False,
    numbers: Annotated[bool, Option("--numbers", help="Print a table of scores.")] = False,
    html: options.Html = None,
    split: Annotated[str | None, Option(help="With --data: the split. [default: test]")] = None,
    fields: options.Fields = None,
    cleaning: options.Cleaning = None,
    limit: options.Limit = None,
    subject: options.Subject = None,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Explain one TEXT by several methods, with words coloured by score, or --data into a file."""
    one = {"--json": as_json, "--numbers": numbers, "--html": html, "--question": question}
    many = {"--out": out, "--split": split, "--fields": fields, "--limit": limit}
    many |= {"--cleaning": cleaning}
    _require_text_or_data(text, data, one, many)
    request = {"methods": _method_settings(methods, settings), "target": target, "of": of}
    request |= {"granularity": granularity, "seed": seed, **options.parse_subject_options(subject)}
    if data is not None:
        more = {key.removeprefix("--"): value for key, value in many.items() if value is not None}
        _explain_data(model, data, request | more, quiet=quiet)
    else:
        from heedful.api.functions import explain as explain_text
        from heedful.results.outputs import HTML_MARK, require_output

        if html:
            require_output(html, HTML_MARK)  # before anything is computed
        found = explain_text(model, text or "", question=question, **request)
        if html:
            found.to_html(html)
        if as_json:
            typer.echo(json.dumps(found.to_dict(), ensure_ascii=False))
        elif html and not quiet:
            typer.echo(f"{html} ({html.stat().st_size / 1e3:.0f} kB, opens offline)")
        elif not html:
            found.show(numbers=numbers)


def _explain_data(model: str, data: str, request: dict[str, Any], *, quiet: bool) -> None:
    from heedful.api.functions import explain_all

    with options.progress_bar("explain", quiet=quiet) as progress:
        found = explain_all(model, data, progress=progress, **request)
    if not quiet:
        typer.echo(str(found))


def _require_text_or_data(
    text: str | None, data: str | None, one: dict[str, Any], many: dict[str, Any]
) -> None:
    """Require one text or a data set, and no option that belongs to the other."""
    if (text is None) == (data is None):
        came = "none of them was" if text is None else "both were"
        raise ConfigError(f"Give either a TEXT or --data; {came} given.")
    if data is not None and many["--out"] is None:
        raise ConfigError("--data needs --out FILE.parquet, the file to write.")
    foreign, word = (one, "one TEXT") if data is not None else (many, "--data")
    for name, value in foreign.items():
        if value:
            raise ConfigError(f"{name} applies to {word} only; leave it out.")


def _method_settings(text: str | None, settings: list[str] | None) -> Any:
    """The methods with the settings given by --set."""
    from heedful.pipeline.explain.request import resolve_methods

    given: dict[str, dict[str, Any]] = {}
    for one in settings or ():
        name, equals, value = one.partition("=")
        method, dot, key = name.strip().partition(".")
        if not (method and dot and key and equals and value.strip()):
            raise ConfigError(
                f"--set got {one!r}; it must be METHOD.SETTING=VALUE, as rollout.residual=0.3."
            )
        given.setdefault(method, {})[key] = _parse_value(value.strip())
    return resolve_methods(options.split_names(text), given)


def _parse_value(text: str) -> bool | int | float | str:
    """Parse a whole number, a number, true or false, or else a name.

    >>> [_parse_value(one) for one in ("8", "0.3", "true", "mean", "nan")]
    [8, 0.3, True, 'mean', 'nan']
    """
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            number: int | float = kind(text)
        except ValueError:
            continue
        if isfinite(number):
            return number
    return text
