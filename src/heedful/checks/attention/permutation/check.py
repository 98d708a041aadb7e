"""Does shuffled attention change the output? (Jain & Wallace, 2019, experiment 2.1)"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.checks.base import Findings
from heedful.checks.draws import draw_uniform
from heedful.checks.interventions.leverage import Leverage
from heedful.checks.interventions.simple import Permute, permute_rows
from heedful.core.rng import generator
from heedful.core.settings import Repeats, check_on_init
from heedful.models.batch_context import BatchContext
from heedful.models.protocols import HasEditableRows
from heedful.numerics.tensor.distributions import positions_first, tvd

NO_LEVERAGE = 1e-9  # smaller changes are rounding, and a share of them means nothing


@check_on_init
@dataclass(frozen=True)
class Permutation:
    """Does shuffled attention change the output?

    `median_tvd` is the median change over `draws` shuffles, `leverage` the largest change that any
    attention could cause on the same states, and `median_of_leverage` the first as a share of the
    second. In a model with many attentions the weight on special tokens stays in place;
    `…_all_keys` shuffles it too, and `…_random_rows` gives a scale: the same shuffle applied to
    the rows of a random position and layer (`elsewhere` draws).
    """

    draws: Repeats = 100
    elsewhere: Repeats = 10

    def __call__(self, context: BatchContext) -> Findings:
        before = context.forward.probabilities
        shuffled = context.decode(Permute(draws=self.draws)(context)).softmax(-1)
        median = tvd(shuffled, before).quantile(0.5, dim=0)
        extreme = context.decode(Leverage()(context)).softmax(-1)
        leverage = torch.maximum(tvd(extreme, before)[0], median)
        share = torch.where(leverage > NO_LEVERAGE, median / leverage, torch.nan)
        words = context.forward.attention.masked_fill(~context.batch.mask, 0.0)
        columns = {
            "median_tvd": median,
            "leverage": leverage,
            "median_of_leverage": share,
            "max_attention": words.amax(-1),
        }
        if context.forward.maps:
            everywhere = Permute(self.draws, "permutation of all keys", "all")(context)
            moved = tvd(context.decode(everywhere).softmax(-1), before)
            columns["median_tvd_all_keys"] = moved.quantile(0.5, dim=0)
            square = context.forward.maps[0].shape[2] == context.batch.ids.shape[1]
            if isinstance(context.subject, HasEditableRows) and square:
                moved = self._elsewhere(context, context.subject)
                columns["median_tvd_random_rows"] = moved.quantile(0.5, dim=0)
        return Findings.from_columns(columns)

    def _elsewhere(self, context: BatchContext, subject: HasEditableRows) -> Float[Tensor, "K B"]:
        """Change of output when rows drawn at random are shuffled instead."""
        batch, count, changes = context.batch, self.elsewhere, []
        present = batch.present.sum(-1, keepdim=True)
        drawn, keys = (
            draw_uniform(context, purpose, draws=count, lengths=present[:, 0].tolist())
            for purpose in ("random rows", "shuffle of random rows")
        )
        inside = torch.arange(drawn.shape[-1]) < present
        random, depth = generator(context.seed, "random layers"), len(context.forward.maps)
        layers = random.integers(depth, size=count)
        for draw, layer in enumerate(layers.tolist()):
            number = drawn[:, draw].masked_fill(~inside, -1.0).argmax(-1)
            position = positions_first(batch.present).gather(1, number[:, None]).squeeze(1)
            rows, decode = subject.rows_and_decoder_at(
                batch, context.forward, layer=layer, position=position
            )
            movable, one = batch.mask[:, None] & (rows > 0), keys[:, draw : draw + 1].to(rows)
            shuffled = decode(permute_rows(rows, movable, keys=one)).softmax(-1)
            changes.append(tvd(shuffled, context.forward.probabilities))
        return torch.cat(changes)
