"""Outputs go to new files and over our own, and over nothing else."""

import os
from pathlib import Path

import pytest

from heedful.core.errors import RunError
from heedful.results.outputs import (
    HTML_MARK,
    MARKDOWN_MARK,
    output_path,
    require_output,
    write_markdown,
    write_output,
)

PAGE = f"<!doctype html>{HTML_MARK}"


def test_a_new_file_an_empty_one_and_our_own_are_written(tmp_path):
    path = tmp_path / "folder/page.html"
    for text in (PAGE, PAGE + "again"):
        assert write_output(path, text, HTML_MARK) == path
        assert path.read_text() == text
    path.write_text("")
    write_output(path, PAGE, HTML_MARK)
    assert list(path.parent.iterdir()) == [path]


def test_markdown_says_whose_it_is(tmp_path):
    path = write_markdown(tmp_path / "page.md", "# Title\n")
    assert path.read_text() == f"{MARKDOWN_MARK}\n\n# Title\n"
    write_markdown(path, "# Other\n")
    assert "Other" in path.read_text()


@pytest.mark.parametrize("content", ["text", "x" * 5000 + HTML_MARK, MARKDOWN_MARK, "\0\xff"])
def test_what_is_not_ours_stays(tmp_path, content):
    path = tmp_path / "page.html"
    path.write_text(content)
    with pytest.raises(RunError, match=r"page\.html exists and was not written by this command"):
        write_output(path, PAGE, HTML_MARK)
    assert path.read_text() == content
    write_output(path, PAGE, HTML_MARK, ours=True)


def test_only_regular_files(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "device").symlink_to("/dev/null")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("pipe", "folder", "device", "dangling"):
        with pytest.raises(RunError, match=f"{name} is not a regular file"):
            write_output(tmp_path / name, PAGE, HTML_MARK, ours=True)
    with pytest.raises(RunError, match=r"Cannot write|not a regular file"):
        write_output(tmp_path / "loop", PAGE, HTML_MARK)


@pytest.mark.parametrize("name", ["plan.toml", "manifest.json", "verdict.json", "files.jsonl"])
def test_names_of_records_are_no_names_of_outputs(tmp_path, name):
    with pytest.raises(RunError, match="a run's own records"):
        require_output(tmp_path / name, None)


def test_nothing_joins_the_tables_of_a_run(tmp_path):
    (tmp_path / "texts").mkdir()
    require_output(tmp_path / "texts/x.parquet", None)  # a folder of the user's
    (tmp_path / "plan.toml").touch()
    with pytest.raises(RunError, match="a run's own records"):
        require_output(tmp_path / "texts/x.parquet", None)


def test_a_tilde_is_expanded_once_and_in_text_only(monkeypatch):
    monkeypatch.setenv("HOME", "/home/~")
    assert output_path("~/x") == Path("/home/~/x")
    assert output_path("./~/x") == Path("~/x")
    assert output_path(output_path("./~/x")) == Path("~/x")
    assert output_path("a/~/x") == Path("a/~/x")
