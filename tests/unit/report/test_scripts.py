"""Scripts that share a page share one scope: a name declared twice stops all of them."""

import re
from collections import Counter
from importlib.resources import files

DECLARED = re.compile(r"^(?:const|let|class|(?:async )?function) (\w+)", re.MULTILINE)


def test_no_name_is_declared_twice_in_the_scripts_of_a_run():
    folder = files("heedful.report") / "templates"
    texts = [(folder / f"{name}.js").read_text() for name in ("theme", "elements", "texts", "maps")]
    counts = Counter(name for text in texts for name in DECLARED.findall(text))
    assert len(counts) > 20
    assert [name for name, count in counts.items() if count > 1] == []
