"""Hooks on modules, and where a layer keeps its hidden states among inputs and outputs.

Hidden states are the first argument or `hidden_states`, and the first output. This is a convention
of transformers, not of one family; callers check the shapes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import get_ident
from typing import Any

from torch import Tensor, nn

EnterHook = Callable[[nn.Module, tuple[Any, ...], dict[str, Any]], Any]
LeaveHook = Callable[[nn.Module, tuple[Any, ...], dict[str, Any], Any], Any]


@contextmanager
def forward_hooks(
    modules: Iterable[nn.Module], enter: EnterHook | None = None, leave: LeaveHook | None = None
) -> Iterator[None]:
    """Call `enter` before and `leave` after each module inside the block.

    As in torch, `enter` may return other inputs and `leave` another output. Both are called for
    this thread only: other threads may use the model unmodified.
    """
    thread = get_ident()

    def before(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return enter(module, args, kwargs) if enter and get_ident() == thread else None

    def after(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
        return leave(module, args, kwargs, output) if leave and get_ident() == thread else None

    handles: list[Any] = []
    try:
        for one in dict.fromkeys(modules):
            if enter is not None:
                handles.append(one.register_forward_pre_hook(before, with_kwargs=True))
            if leave is not None:
                handles.append(one.register_forward_hook(after, with_kwargs=True))
        yield
    finally:
        for handle in handles:
            handle.remove()


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


def identity_forward(count: int, own: Callable[..., Any]) -> Any:
    """A forward function that returns its input states, in a tuple of `count` (0: bare).

    Another thread than this one gets the layer's own forward.
    """
    thread = get_ident()

    def forward(hidden_states: Tensor, *args: Any, **kwargs: Any) -> Any:
        if get_ident() != thread:
            return own(hidden_states, *args, **kwargs)
        return hidden_states if count == 0 else (hidden_states, *[None] * (count - 1))

    return forward


def input_states(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The hidden states among a layer's inputs, or None."""
    return args[0] if args else kwargs.get("hidden_states")


def replace_input_states(
    args: tuple[Any, ...], kwargs: dict[str, Any], states: Tensor
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A layer's inputs with other hidden states."""
    return ((states, *args[1:]), kwargs) if args else (args, {**kwargs, "hidden_states": states})


def output_states(output: Any) -> Any:
    """The hidden states among a layer's outputs."""
    return output[0] if isinstance(output, tuple) else output


def output_count(output: Any) -> int:
    """Length of a layer's output tuple; 0 for a bare tensor."""
    return len(output) if isinstance(output, tuple) else 0
