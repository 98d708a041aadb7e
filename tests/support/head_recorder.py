"""A witness of what the heads of a tiny model are given and give out, seen where no seam is."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from support.tiny_models import FAMILIES, H

VALUES = re.compile(
    r"tt(n|ention)(\.self|\.attn|\.attention)?"
    r"\.(value|in_proj|value_proj|v_lin|v_proj|c_attn|Wqkv|query_key_value|v)$"
)
OUTPUTS = re.compile(
    r"tt(n|ention)(\.output|\.attn|\.attention)?\.(dense|out_lin|out_proj|o_proj|c_proj|Wo|o)$"
)


@contextmanager
def witnessed(model: nn.Module, name: str) -> Iterator[list[tuple[Tensor, Tensor]]]:
    """Every attention's values (B H K D) and what its heads give out (B H Q D), in order.

    Seen where no seam is: at the projections before and after, or, in XLNet, around the method
    between them.
    """
    seen: list[tuple[Tensor, Tensor]] = []
    values: list[Tensor] = []

    def valued(parent: nn.Module) -> Callable[..., None]:
        def hook(_: object, __: object, raw: Tensor) -> None:
            found = FAMILIES[name].values(raw, parent).transpose(1, 2)
            values.append(found.repeat_interleave(H // found.shape[1], dim=1).detach().clone())

        return hook

    def given(_: object, args: tuple[Tensor, ...]) -> None:
        heads = args[0].unflatten(-1, (H, -1)).transpose(1, 2)
        seen.append((values.pop(), heads.detach().clone()))

    handles = []
    for path, module in model.named_modules():
        if name == "xlnet" and path.endswith("rel_attn"):
            module.rel_attn_core = _witness_of_xlnet(module, seen)
        elif VALUES.search(path):
            parent = model.get_submodule(path.rpartition(".")[0])
            handles.append(module.register_forward_hook(valued(parent)))
        elif OUTPUTS.search(path):
            handles.append(module.register_forward_pre_hook(given))
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()
        for module in model.modules():
            module.__dict__.pop("rel_attn_core", None)


def _witness_of_xlnet(module: Any, seen: list[tuple[Tensor, Tensor]]) -> Callable[..., Tensor]:
    own = module.rel_attn_core

    def core(query: Tensor, key: Tensor, value: Tensor, *rest: Any, **more: Any) -> Tensor:
        mixed: Tensor = own(query, key, value, *rest, **more)
        seen.append((value.permute(1, 2, 0, 3).detach(), mixed.permute(1, 2, 0, 3).detach()))
        return mixed

    return core
