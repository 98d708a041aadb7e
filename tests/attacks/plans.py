"""Hostile plans: wrong types, absurd sizes, text that is no TOML."""

import random
from typing import Any

from attacks.data_files import damaged, hostile_value
from attacks.sandbox import Attempt, Place, must_be_refused, nothing_to_say, run_function
from heedful.core.errors import ConfigError

SOUND = """model = "m"
data = "d"
checks = ["agreement", "permutation", "adversarial"]
seed = 7
resamples = 200
level = 0.9

[settings.permutation]
draws = 20

[settings.adversarial]
steps = 50

[fields]
text = "review"
"""
ABSURD = 10**12  # of anything: no machine ends
SIZES = (
    "resamples",
    *("settings.permutation.draws", "settings.adversarial.steps", "settings.adversarial.restarts"),
    *("settings.agreement.shuffles", "settings.faithfulness.draws", "methods.lime.samples"),
    *("methods.kernel_shap.samples", "methods.smoothgrad.samples", "retraining.workers"),
)


def absurd(draw: random.Random) -> tuple[str, bool]:
    """A plan that asks for more than any machine can do, by a key that exists or not."""
    key = draw.choice(SIZES)
    *table, name = key.split(".")
    check = f'checks = ["{table[1]}"]\n' if table[:1] == ["settings"] else ""
    if table[:1] == ["methods"]:
        check = f'checks = ["agreement"]\n[settings.agreement]\nmethods = ["{table[1]}"]\n'
    head = f"[{'.'.join(table)}]\n" if table else ""
    size = draw.choice((ABSURD, 2**63 - 1, 10**30))
    return f'model = "m"\ndata = "d"\n{check}{head}{name} = {size}\n', True


def mistyped(draw: random.Random) -> tuple[str, bool]:
    """A plan one value of which is of any other type."""
    lines = SOUND.splitlines()
    at = draw.choice([n for n, line in enumerate(lines) if "=" in line])
    name = lines[at].partition("=")[0]
    lines[at] = f"{name}= {_toml(hostile_value(draw))}"
    return "\n".join(lines), False


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"k{n} = {_toml(one)}" for n, one in enumerate(value.values())) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, str):
        signs = (f"\\U{ord(sign):08x}" for sign in value)
        return '"' + "".join(signs) + '"'
    return {None: "1979-05-27", True: "true", False: "false"}.get(value, str(value))


def nested(draw: random.Random) -> tuple[str, bool]:
    """Tables in tables, lists in lists, keys of a thousand parts."""
    many = draw.choice((50, 1000, 100_000))
    return draw.choice(
        (
            f"seed = {'[' * many}1{']' * many}",
            f"settings = {'{a = ' * many}1{'}' * many}",
            f"{'.'.join(['a'] * many)} = 1",
            f"[{'.'.join(['settings'] * many)}]\nx = 1",
            "".join(f"a{n} = 1\n" for n in range(many)),
        )
    ), True


def doubled(draw: random.Random) -> tuple[str, bool]:
    """A key or a table twice."""
    line = draw.choice(("seed = 8", "[fields]", "[settings]\npermutation = 3", "checks = []"))
    return SOUND + line + "\n", line != "checks = []" and not line.startswith("seed")


def noise(draw: random.Random) -> tuple[str, bool]:
    """A sound plan, damaged."""
    return damaged(SOUND.encode(), draw).decode("utf-8", "replace"), False


KINDS = (absurd, mistyped, nested, doubled, noise)


def draw_plan(draw: random.Random, place: Place) -> Attempt:
    """A plan, read as the command and as a resumed run read it."""
    make = draw.choice(KINDS)
    text, refused = make(draw)

    def read() -> None:
        from heedful.pipeline.plan.plan import Plan, parse_plan

        parse_plan(text)
        if Plan.from_toml(text) != Plan.from_toml(Plan.from_toml(text).to_toml()):
            raise ConfigError("a plan that was kept is another one")

    wrong = must_be_refused if refused else nothing_to_say
    return Attempt(f"{make.__name__}: {text[:200]!r}", lambda: run_function(read), wrong)
