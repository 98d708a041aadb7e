"""Hooks on layers, and where a layer keeps its hidden states among inputs and outputs.

Hidden states are the first argument or `hidden_states`, and the first output. This is a convention
of transformers, not of one family; callers check the shapes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import get_ident
from typing import Any

from torch import Tensor, nn

LayerPreHook = Callable[[nn.Module, tuple[Any, ...], dict[str, Any]], Any]
LayerPostHook = Callable[[nn.Module, Any], None]


def input_states(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The hidden states among a layer's inputs, or None."""
    return args[0] if args else kwargs.get("hidden_states")


def replace_input_states(
    args: tuple[Any, ...], kwargs: dict[str, Any], states: Tensor
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A layer's inputs with other hidden states."""
    if args:
        return (states, *args[1:]), kwargs
    return args, {**kwargs, "hidden_states": states}


def output_states(output: Any) -> Any:
    """The hidden states among a layer's outputs."""
    return output[0] if isinstance(output, tuple) else output


def output_count(output: Any) -> int:
    """Length of a layer's output tuple; 0 for a bare tensor."""
    return len(output) if isinstance(output, tuple) else 0


def identity_forward(count: int, own: Callable[..., Any]) -> Any:
    """A forward function that returns its input states, in a tuple of `count` (0: bare).

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
    """Make layers the identity inside the block; values are the lengths of their outputs.

    For this thread alone, which must hold the lock of the model: two blocks at once would restore
    each other's forward.
    """
    # an instance attribute may shadow the method already
    own = {layer: layer.__dict__.get("forward") for layer in layers}
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
    """Remove the hooks after the block."""
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def layer_hooks(
    layers: Iterable[nn.Module], enter: LayerPreHook, leave: LayerPostHook | None = None
) -> Iterator[None]:
    """Call `enter` and `leave` around each layer inside the block; `enter` may change the inputs.

    Only for calls of this thread: others may use the model unmodified.
    """
    thread = get_ident()

    def before(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return enter(module, args, kwargs) if get_ident() == thread else None

    def after(module: nn.Module, _: object, output: Any) -> None:
        if leave is not None and get_ident() == thread:
            leave(module, output)

    each = dict.fromkeys(layers)
    handles: list[Any] = [one.register_forward_pre_hook(before, with_kwargs=True) for one in each]
    handles += [one.register_forward_hook(after) for one in each]
    with removing_hooks(handles):
        yield
