"""Kinds written after the rule was last changed, by somebody who had not seen it."""

from heedful.planted.influence.families.unseen import kinds as kinds
