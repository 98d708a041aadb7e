"""The encoders again, word by word in numpy loops; W holds an encoder's weights by name."""

import numpy as np


def inside(W, part):
    """The weights of one part of a network, by their names within it."""
    return {
        name.removeprefix(f"{part}."): one for name, one in W.items() if name.startswith(f"{part}.")
    }


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def lstm(rows, W, prefix):
    """One direction, one step at a time; gates in torch's order: input, forget, cell, output."""
    hidden = W[f"{prefix}.weight_hh_l0"].shape[1]
    h, c, states = np.zeros(hidden), np.zeros(hidden), []
    for x in rows:
        gates = W[f"{prefix}.weight_ih_l0"] @ x + W[f"{prefix}.bias_ih_l0"]
        gates = gates + W[f"{prefix}.weight_hh_l0"] @ h + W[f"{prefix}.bias_hh_l0"]
        i, f, g, o = (gates[k * hidden : (k + 1) * hidden] for k in range(4))
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        states.append(h)
    return states


def bilstm(rows, W):
    ahead = lstm(rows, W, "ahead")
    behind = lstm(rows[::-1], W, "behind")[::-1]
    return [np.concatenate(pair) for pair in zip(ahead, behind, strict=True)]


def cnn(rows, W):
    """relu(b + Σ_k w_k · x_{t+k−r}) for windows of 1, 3, 5, 7; nothing beyond the text's ends."""
    states = []
    for t in range(len(rows)):
        state = []
        for number, width in enumerate((1, 3, 5, 7)):
            weight = W[f"convolutions.{number}.weight"]
            for channel in range(len(weight)):
                total = W[f"convolutions.{number}.bias"][channel]
                for k in range(width):
                    if 0 <= t + k - width // 2 < len(rows):
                        total += weight[channel, :, k] @ rows[t + k - width // 2]
                state.append(max(total, 0.0))
        states.append(np.array(state))
    return states


def average(rows, W):
    return [np.tanh(W["project.weight"] @ x + W["project.bias"]) for x in rows]


def mlp(rows, W):
    for layer in (0, 2):
        weight, bias = W[f"layers.{layer}.weight"], W[f"layers.{layer}.bias"]
        rows = [np.tanh(weight @ x + bias) for x in rows]
    return rows


ENCODE = {"bilstm": bilstm, "cnn": cnn, "average": average, "mlp": mlp}
