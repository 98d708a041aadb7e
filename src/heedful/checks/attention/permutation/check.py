"""Does shuffled attention change the output? (Jain & Wallace, 2019, experiment 2.1)"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.checks.base import Findings, to_measurement
from heedful.checks.interventions.leverage import Leverage
from heedful.checks.interventions.simple import Permute, permute_rows
from heedful.core.errors import ConfigError
from heedful.core.rng import generator, uniform_keys
from heedful.models.batch_context import BatchContext
from heedful.models.protocols import HasEditableRows
from heedful.numerics.tensor.distributions import positions_first, tvd

NO_LEVERAGE = 1e-9  # below this no attention does anything, and a share of it means nothing


@dataclass(frozen=True)
class Permutation:
    """Does shuffled attention change the output?

    `median_tvd` is the median change over `draws` shuffles, `leverage` the largest change that any
    attention could cause on the same states, and `median_of_leverage` the first as a share of the
    second. In a model with many attentions the weight on special tokens stays in place;
    `…_all_keys` shuffles it too, and `…_random_rows` gives a scale: the same shuffle applied to
    the rows of a random position and layer (`elsewhere` draws).
    """

    draws: int = 100
    elsewhere: int = 10

    def __post_init__(self) -> None:
        Permute(draws=self.draws)  # refuses wrong settings early
        if self.elsewhere < 1:
            raise ConfigError(f"elsewhere must be at least 1, not {self.elsewhere}.")

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
        return Findings(tuple(to_measurement(name, column) for name, column in columns.items()))

    def _elsewhere(self, context: BatchContext, subject: HasEditableRows) -> Float[Tensor, "K B"]:
        """Change of output when rows drawn at random are shuffled instead."""
        batch, seed, changes = context.batch, context.seed, []
        lengths = batch.present.sum(-1).tolist()
        drawn, keys = (
            uniform_keys(seed, purpose, batch.instances, draws=self.elsewhere, lengths=lengths)
            for purpose in ("random rows", "shuffle of random rows")
        )
        layers = generator(seed, "random layers").integers(
            len(context.forward.maps), size=self.elsewhere
        )
        for draw, layer in enumerate(layers.tolist()):
            scores = torch.from_numpy(drawn[:, draw])
            inside = torch.arange(scores.shape[1]) < batch.present.sum(-1, keepdim=True)
            number = scores.masked_fill(~inside, -1.0).argmax(-1)
            position = positions_first(batch.present).gather(1, number[:, None]).squeeze(1)
            rows, decode = subject.rows_and_decoder_at(
                batch, context.forward, layer=layer, position=position
            )
            movable = batch.mask[:, None] & (rows > 0)
            one = torch.from_numpy(keys[:, draw : draw + 1]).to(rows)
            shuffled = decode(permute_rows(rows, movable, keys=one)).softmax(-1)
            changes.append(tvd(shuffled, context.forward.probabilities))
        return torch.cat(changes)
