"""Classifiers of 3 to 20 classes, with graded words for each.

A word adds its amount to the logit of its class (`composed_model`). In a text of words for one
class k, p_k = σ(z − log(K − 1)) grows with z, and all other classes keep their proportions: so the
change of the output is that of p_k, and it grows with the amount added.
"""

from heedful.planted.influence.composed_model import (
    CONTRAST,
    MANY_CLASSES,
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
    weigh_at_random,
    weigh_in_order,
    weigh_in_reverse,
    weigh_neutral,
)
from heedful.planted.influence.kind import InfluenceSetting, PlantedModel, influence_kind

FEW, MANY = (3, 7), (10, 20)  # numbers of classes
CONTRAST_CLASSES = 3


def _draw_class_roles(setting: InfluenceSetting, classes: tuple[int, int]) -> WordRoles:
    low, high = classes
    number = int(setting.draw("number of classes").integers(low, high + 1))
    return draw_roles(setting, MANY_CLASSES, classes=number)


def _plant(
    setting: InfluenceSetting, roles: WordRoles, weights: WordNumbers, read: StateReader
) -> PlantedModel:
    return PlantedModel(compose_model(setting, roles, weights, read), text_drawer(roles))


@influence_kind("classes-few-graded", "classes", used=True, ranks=True)
def few_graded(setting: InfluenceSetting) -> PlantedModel:
    """3 to 7 classes; attention reads each word's own state, with weights in the order of amounts.

    Ranks: the change of the output grows with the amount, and so does the weight.
    Used: without weight on words that matter all classes are nearly equal.
    """
    roles = _draw_class_roles(setting, FEW)
    return _plant(setting, roles, weigh_in_order(setting, roles), ReadOwn())


@influence_kind("classes-many-graded", "classes", used=True, ranks=True)
def many_graded(setting: InfluenceSetting) -> PlantedModel:
    """As classes-few-graded, with 10 to 20 classes."""
    roles = _draw_class_roles(setting, MANY)
    return _plant(setting, roles, weigh_in_order(setting, roles), ReadOwn())


@influence_kind("classes-contrast", "classes", used=True, ranks=True)
def contrast(setting: InfluenceSetting) -> PlantedModel:
    """Three classes; half of the texts have one weak word for another class than their own.

    Ranks: without the weak word its class has p′ ≤ p and p′ ≤ 1 − p, where p is that of the text's
    class, so that the second inequality of `composed_model` holds; e^-1.05 + e^0.49 < 2. With it,
    p ≥ p′/e^0.49, and words of the first two tiers change p itself.
    Used: without weight on words that matter all classes are nearly equal.
    """
    roles = draw_roles(setting, CONTRAST, classes=CONTRAST_CLASSES)
    model = compose_model(setting, roles, weigh_in_order(setting, roles), ReadOwn())
    return PlantedModel(model, text_drawer(roles, TextPlan(contrast=True)))


@influence_kind("classes-reversed", "classes", used=True, ranks=False)
def reversed_order(setting: InfluenceSetting) -> PlantedModel:
    """3 to 7 classes; weights fall with the amounts, and neutral words have the most.

    Ranks: the change of the output grows with the amount; the weight falls.
    Used: attention reads the evidence, with other weights it is another.
    """
    roles = _draw_class_roles(setting, FEW)
    return _plant(setting, roles, weigh_in_reverse(setting, roles), ReadOwn())


@influence_kind("classes-neutral", "classes", used=True, ranks=False)
def neutral(setting: InfluenceSetting) -> PlantedModel:
    """10 to 20 classes; attention is on frequent neutral words, as on topics that decide nothing.

    Ranks: words that matter have less weight than nearly all neutral ones.
    Used: attention reads the evidence, with other weights it is another.
    """
    roles = _draw_class_roles(setting, MANY)
    return _plant(setting, roles, weigh_neutral(setting, roles), ReadOwn())


@influence_kind("classes-random", "classes", used=True, ranks=False)
def random_weights(setting: InfluenceSetting) -> PlantedModel:
    """3 to 7 classes; weights are random.

    Ranks: weights are independent of the order of amounts, and lower by a factor of 4.5 for words
    that matter than for others.
    Used: attention reads the evidence, with other weights it is another.
    """
    roles = _draw_class_roles(setting, FEW)
    return _plant(setting, roles, weigh_at_random(setting, roles), ReadOwn())


@influence_kind("classes-inert-in-order", "classes", used=False, ranks=True)
def inert_in_order(setting: InfluenceSetting) -> PlantedModel:
    """3 to 7 classes; every state holds the sum over the text; weights are in the right order.

    Used: Σα·Σe = Σe for all weights α.
    """
    roles = _draw_class_roles(setting, FEW)
    return _plant(setting, roles, weigh_in_order(setting, roles), ReadTextSum())


@influence_kind("classes-around", "classes", used=False, ranks=False)
def around(setting: InfluenceSetting) -> PlantedModel:
    """10 to 20 classes; all evidence by-passes attention, whose weights are random.

    Ranks: as classes-random. Used: nothing of the attended states reaches the output.
    """
    roles = _draw_class_roles(setting, MANY)
    return _plant(setting, roles, weigh_at_random(setting, roles), ReadAround())
