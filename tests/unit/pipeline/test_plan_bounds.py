"""Plans that are too large, too deep, or no plans: each refused in one short line."""

import os
import socket

import pytest

from heedful.core.errors import ConfigError
from heedful.core.settings import MOST_REPEATS, setting_types
from heedful.pipeline.plan.plan import LONGEST_PLAN, Plan, parse_plan, read_plan_file
from support.hostile_input import as_in_use

as_in_use = pytest.fixture(autouse=True)(as_in_use)

WHOLE = Plan("m", "d", checks=("all",)).to_toml()


def refused(call, *given):
    with pytest.raises(ConfigError) as caught:
        call(*given)
    said = str(caught.value)
    assert "\n" not in said
    assert len(said) < 2000
    return said


def test_no_plan_comes_near_the_bound():
    assert Plan.from_toml(WHOLE).to_toml() == WHOLE
    assert len(WHOLE) < LONGEST_PLAN / 10


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# long\n" * 30_000, "has more than 131072 signs"),
        (".".join(["a"] * 2000) + " = 1", "Line 1 of the plan has 1999 dots"),
        ("[subject" + ".a" * 20 + "]\nx = 1", "more than 16 deep"),
        ("".join(f"a{n} = 1\n" for n in range(5000)), "Unknown plan keys: ['a0', "),
        (f"seed = '{'x' * 18_000}'", "seed must be a whole number"),
        (f"checks = ['{'x' * 18_000}']", "No check is named 'xxx"),
        (f"[settings]\n'{'x' * 18_000}' = 1", "Settings for 'xxx"),
        (f"[settings.permutation]\n'{'x' * 18_000}' = 1", "permutation"),
        (f"[methods]\nlime = '{'x' * 18_000}'", "must be a table, not 'xxx"),
        (f"'{'x' * 18_000}' = '", "not valid TOML"),
    ],
)
def test_what_is_no_plan_is_refused_in_a_short_line(text, said):
    assert said in refused(lambda: Plan(**{"model": "m", "data": "d", **parse_plan(text)}))


@pytest.mark.parametrize("name", ["resamples", "seed", "limit", "instances_per_job"])
@pytest.mark.parametrize("number", [10**12, 2**63, 10**400])
def test_numbers_of_a_plan_have_a_ceiling(name, number):
    if (name, number) != ("seed", 10**12):
        said = refused(lambda: Plan("m", "d", **{name: number}))
        assert said.startswith(f"{name} must be a whole number")


def test_the_ceiling_itself_is_taken():
    plan = Plan("m", "d", checks=("permutation",), resamples=MOST_REPEATS)
    assert plan.resamples == MOST_REPEATS
    draws = {"permutation": {"draws": MOST_REPEATS + 1}}
    said = refused(lambda: Plan("m", "d", checks=("permutation",), settings=draws))
    assert said == "permutation.draws must be a whole number of at most 1000000, not 1000001."


def test_every_count_of_every_check_has_a_ceiling():
    """A number of 19 digits is refused whatever whole number of a check it is given for."""
    from heedful.checks import checks

    accepted = []
    for check in checks:
        for name, kind in setting_types(checks[check]).items():
            if "int" in str(kind) and "tuple" not in str(kind):
                try:
                    checks.build(check, **{name: 10**18})
                except ConfigError:
                    continue
                accepted.append(f"{check}.{name}")
    assert accepted == []


@pytest.mark.parametrize("kind", ["folder", "socket", "pipe", "not UTF-8", "missing"])
def test_a_plan_file_that_cannot_be_read(tmp_path, kind, monkeypatch):
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    path = tmp_path / "plan.toml"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as one:
            one.bind("plan.toml")
    elif kind == "not UTF-8":
        path.write_bytes(b"\xff\xfe")
    assert refused(read_plan_file, path).startswith(f"Cannot read the plan {path}: ")
