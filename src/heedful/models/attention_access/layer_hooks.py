"""How layers are called: states come first, or by their name, and leave first of all.

By custom of transformers, not of a family; who relies on it looks at the shape of what came.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import get_ident
from typing import Any

from torch import Tensor, nn

LayerPreHook = Callable[[nn.Module, tuple[Any, ...], dict[str, Any]], Any]
LayerPostHook = Callable[[nn.Module, Any], None]


def input_states(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The states that a layer is given; None where there are none."""
    return args[0] if args else kwargs.get("hidden_states")


def replace_input_states(
    args: tuple[Any, ...], kwargs: dict[str, Any], states: Tensor
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What a layer is given, with other states."""
    if args:
        return (states, *args[1:]), kwargs
    return args, {**kwargs, "hidden_states": states}


def output_states(output: Any) -> Any:
    """The states among what a layer gives back."""
    return output[0] if isinstance(output, tuple) else output


def output_count(output: Any) -> int:
    """How many things a layer gives back; 0 for a bare tensor."""
    return len(output) if isinstance(output, tuple) else 0


def identity_forward(count: int, own: Callable[..., Any]) -> Any:
    """A layer's forward that passes its states on, and gives back as many things.

    Another thread than this one gets the layer's own forward.
    """
    mine = get_ident()

    def forward(hidden_states: Tensor, *args: Any, **kwargs: Any) -> Any:
        if get_ident() != mine:
            return own(hidden_states, *args, **kwargs)
        return hidden_states if count == 0 else (hidden_states, *[None] * (count - 1))

    return forward


@contextmanager
def skipped_layers(layers: Mapping[nn.Module, int]) -> Iterator[None]:
    """Inside the block layers only pass their states on; each gives back as many things as said.

    For this thread alone, which must hold the lock of the model: two blocks at once would restore
    each other's forward.
    """
    own = {one: one.__dict__.get("forward") for one in layers}  # others may have put one there
    try:
        for one, count in layers.items():
            one.forward = identity_forward(count, one.forward)
        yield
    finally:
        for one, forward in own.items():
            one.__dict__.pop("forward", None)
            if forward is not None:
                one.forward = forward


@contextmanager
def removing_hooks(handles: list[Any]) -> Iterator[None]:
    """Hooks that are taken off after the block."""
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def layer_hooks(
    layers: Iterable[nn.Module], enter: LayerPreHook, leave: LayerPostHook | None = None
) -> Iterator[None]:
    """Inside the block this thread's calls of layers pass by: `enter` may change what they get.

    Another thread may use the model as it is.
    """
    mine = get_ident()

    def before(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return enter(module, args, kwargs) if get_ident() == mine else None

    def after(module: nn.Module, _: object, output: Any) -> None:
        if leave is not None and get_ident() == mine:
            leave(module, output)

    each = dict.fromkeys(layers)
    handles: list[Any] = [one.register_forward_pre_hook(before, with_kwargs=True) for one in each]
    handles += [one.register_forward_hook(after) for one in each]
    with removing_hooks(handles):
        yield
