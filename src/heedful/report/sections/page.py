"""Records → what the page of a run shows: the verdict, then a list of sections."""

from heedful.report.sections.attention_maps import build_attention_maps
from heedful.report.sections.check_measures import build_checks
from heedful.report.sections.check_sections import (
    build_retraining_parts,
    list_figures,
    place_figures,
    split_check_sections,
)
from heedful.report.sections.claims import build_claims_section
from heedful.report.sections.descriptive_checks import build_descriptive_checks
from heedful.report.sections.example_texts import build_example_texts
from heedful.report.sections.multiverse import build_choices
from heedful.report.sections.provenance import build_limits, build_provenance
from heedful.report.sections.retrained_models import build_retraining
from heedful.report.sections.slices import build_slices
from heedful.results.document import Section
from heedful.results.run_records import RunRecords


def build_sections(records: RunRecords) -> tuple[Section, ...]:
    """Everything below the verdict, in order."""
    verdict, figures = records.verdict, list_figures(records)
    voting, others = split_check_sections(records)
    retraining = build_retraining(records, tuple(build_retraining_parts(records)))
    own = (build_descriptive_checks(records), retraining, *others, build_attention_maps(records))
    placed, rest = place_figures([*voting, *(one for one in own if one is not None)], figures)
    first, after = placed[: len(voting)], placed[len(voting) :]
    claims = build_claims_section(verdict, records.manifest)
    head = (claims, *first, build_choices(verdict), build_checks(records))
    tail = (build_example_texts, build_slices, build_limits, build_provenance)
    shown = (*head, rest, *after, *(build(records) for build in tail))
    return tuple(one for one in shown if one is not None)
