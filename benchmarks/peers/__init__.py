"""Other libraries' explanations as scorers of words, for `python -m benchmarks.peers`.

Each module holds one library in `ADAPTERS`: by name, functions from a subject and an `Example` to
one score per word. A library that is not installed is named in the output.
"""
