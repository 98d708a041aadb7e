"""Long texts, of 150 to 600 words, and short ones, of 4 to 7.

What a word adds to the logits depends neither on the number of words nor on where attention finds
it (`composed_model`).
"""

from heedful.planted.influence.composed_model import (
    CONTRAST,
    TWO_CLASSES,
    ReadAround,
    ReadOwn,
    ReadTextSum,
    StateReader,
    TextPlan,
    WordNumbers,
    WordRoles,
    compose_model,
    draw_roles,
    text_drawer,
    weigh_in_order,
    weigh_in_reverse,
    weigh_neutral,
)
from heedful.planted.influence.kind import InfluenceSetting, PlantedModel, influence_kind

LONG, SHORT = (300, 400), (5, 6)
LONG_PLAN = TextPlan(matter=(4, 8))
SHORT_PLAN = TextPlan(matter=(2, 3), most=7)


def _plant(
    setting: InfluenceSetting, roles: WordRoles, weights: WordNumbers, read: StateReader
) -> PlantedModel:
    plan = LONG_PLAN if setting.length > max(SHORT) else SHORT_PLAN
    return PlantedModel(compose_model(setting, roles, weights, read), text_drawer(roles, plan))


@influence_kind("lengths-long-graded", "lengths", used=True, ranks=True, lengths=LONG)
def long_graded(setting: InfluenceSetting) -> PlantedModel:
    """4 to 8 words of some hundreds matter; attention reads them, with weights in their order.

    Ranks: a word of amount d moves the logit by d; weights rise with the amounts, and neutral
    words have at most half of the least. All of these together may have most of the weight.
    Used: without weight on words that matter the output is nearly even.
    """
    roles = draw_roles(setting, TWO_CLASSES)
    return _plant(setting, roles, weigh_in_order(setting, roles), ReadOwn())


@influence_kind("lengths-long-neutral", "lengths", used=True, ranks=False, lengths=LONG)
def long_neutral(setting: InfluenceSetting) -> PlantedModel:
    """Attention is on a third of the neutral words of a long text.

    Ranks: words that matter have less weight than nearly all neutral ones.
    Used: attention reads the evidence, with other weights it is another.
    """
    roles = draw_roles(setting, TWO_CLASSES)
    return _plant(setting, roles, weigh_neutral(setting, roles), ReadOwn())


@influence_kind("lengths-long-inert-in-order", "lengths", used=False, ranks=True, lengths=LONG)
def long_inert_in_order(setting: InfluenceSetting) -> PlantedModel:
    """Every state of a long text holds the sum over the text; weights are in the right order.

    Used: Σα·Σe = Σe for all weights α.
    """
    roles = draw_roles(setting, TWO_CLASSES)
    return _plant(setting, roles, weigh_in_order(setting, roles), ReadTextSum())


@influence_kind("lengths-short-graded", "lengths", used=True, ranks=True, lengths=SHORT, short=5)
def short_graded(setting: InfluenceSetting) -> PlantedModel:
    """2 or 3 words of 4 to 7 matter; attention reads them, with weights in their order.

    Ranks: a word of amount d moves the logit by d, and weights rise with the amounts. A weak word
    may be for the other class: e^-1.05 + e^0.49 < 2.
    Used: without weight on words that matter the output is nearly even.
    """
    roles = draw_roles(setting, CONTRAST)
    model = compose_model(setting, roles, weigh_in_order(setting, roles), ReadOwn())
    plan = TextPlan(matter=SHORT_PLAN.matter, most=SHORT_PLAN.most, contrast=True)
    return PlantedModel(model, text_drawer(roles, plan))


@influence_kind("lengths-short-reversed", "lengths", used=True, ranks=False, lengths=SHORT, short=5)
def short_reversed(setting: InfluenceSetting) -> PlantedModel:
    """In texts of 4 to 7 words weights fall with the amounts, and neutral words have the most.

    Ranks: a word of amount d moves the logit by d; the weight falls with d.
    Used: attention reads the evidence, with other weights it is another.
    """
    roles = draw_roles(setting, TWO_CLASSES)
    return _plant(setting, roles, weigh_in_reverse(setting, roles), ReadOwn())


@influence_kind("lengths-short-around", "lengths", used=False, ranks=False, lengths=SHORT, short=5)
def short_around(setting: InfluenceSetting) -> PlantedModel:
    """In texts of 4 to 7 words all evidence by-passes attention, which is on neutral words.

    Used: nothing of the attended states reaches the output.
    """
    roles = draw_roles(setting, TWO_CLASSES)
    return _plant(setting, roles, weigh_neutral(setting, roles), ReadAround())
