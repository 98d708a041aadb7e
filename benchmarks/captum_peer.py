"""captum on a transformers classifier, as its documentation shows and at its best."""

import torch
from captum.attr import FeatureAblation, InputXGradient, IntegratedGradients


class Peer:
    """captum on the same model and texts; tokens and targets are given to both sides.

    `blank` stands for a hidden word, as on our side; special tokens are never hidden.
    """

    def __init__(self, one, encoded):
        self.model, self.embedding = one.model, one.model.get_input_embeddings()
        self.ids = [torch.tensor([text.ids]) for text in encoded]
        self.words = [torch.tensor([text.word]) >= 0 for text in encoded]
        with torch.no_grad():
            self.targets = [self.model(input_ids=ids).logits.argmax(-1) for ids in self.ids]
        self.blanks = {
            "blank": one.mask_embedding().vector,
            "zero": torch.zeros(self.embedding.weight.shape[1]),
        }

    def probabilities(self, vectors, mask=None):
        """The output as captum wants it: a function of the vectors."""
        return self.model(inputs_embeds=vectors, attention_mask=mask).logits.softmax(-1)

    def vectors(self, number, blank=None):
        """A text's vectors, or those of its blank."""
        vectors = self.embedding(self.ids[number]).detach()
        if blank is None:
            return vectors.requires_grad_()
        return torch.where(self.words[number][..., None], self.blanks[blank], vectors)

    def input_x_gradient(self):
        """One text per call."""
        found = []
        for number, target in enumerate(self.targets):
            given = InputXGradient(self.probabilities).attribute(
                self.vectors(number), target=target
            )
            found.append(self._of_words(number, given.sum(-1)))
        return found

    def input_x_gradient_batched(self):
        """All texts in one padded batch."""
        width = max(ids.shape[1] for ids in self.ids)
        ids = torch.cat(
            [torch.nn.functional.pad(one, (0, width - one.shape[1])) for one in self.ids]
        )
        lengths = torch.tensor([one.shape[1] for one in self.ids])
        mask = (torch.arange(width) < lengths[:, None]).long()
        vectors = self.embedding(ids).detach().requires_grad_()
        return InputXGradient(self.probabilities).attribute(
            vectors, target=torch.cat(self.targets), additional_forward_args=(mask,)
        )

    def occlusion(self, at_once=1):
        """One text per call; by default captum runs one variant at a time."""
        found = []
        for number, target in enumerate(self.targets):
            vectors = self.vectors(number)
            feature = torch.arange(vectors.shape[1])[None, :, None].expand_as(vectors)
            with torch.no_grad():
                given = FeatureAblation(self.probabilities).attribute(
                    vectors,
                    baselines=self.vectors(number, "blank"),
                    target=target,
                    feature_mask=feature,
                    perturbations_per_eval=at_once,
                )
            found.append(self._of_words(number, given[..., 0]))
        return found

    def integrated_gradients(self, blank, internal=None):
        """One text per call, 50 steps as by default."""
        found = []
        for number, target in enumerate(self.targets):
            given = IntegratedGradients(self.probabilities).attribute(
                self.vectors(number),
                baselines=self.vectors(number, blank),
                target=target,
                internal_batch_size=internal,
            )
            found.append(self._of_words(number, given.sum(-1)))
        return found

    def changes(self, blank):
        """What the scores of each text must add up to."""
        found = []
        for number, target in enumerate(self.targets):
            with torch.no_grad():
                before = self.probabilities(self.vectors(number, blank))
                after = self.probabilities(self.vectors(number))
            found.append(float((after - before)[0, target]))
        return found

    def _of_words(self, number, scores):
        return scores[self.words[number]].detach().double()
