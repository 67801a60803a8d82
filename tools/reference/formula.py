"""Closed-form weights: every value follows from (tensor name, flat element index) alone.

    u     = splitmix64(fnv1a64(name) + index)            (64-bit, wrapping)
    unit  = (u >> 40) / 2^24 - 0.5                        (exact in float32)
    value = float32(offset + float32(float32(scale) * unit))

`name` is the Hugging Face name, `index` the row-major index in the Hugging Face layout.
tests/models/golden.cpp repeats these lines, so no weights are stored in the repository.
"""

from __future__ import annotations

import numpy as np

FNV_OFFSET = 0xCBF29CE484222325
FNV_PRIME = 0x100000001B3
MASK = (1 << 64) - 1

# kind -> (scale, offset). Large enough that attention is far from uniform and no
# gradient is tiny: with 32 columns, projections of a normalised row have deviation ~1.
KINDS: dict[str, tuple[float, float]] = {
    "matrix": (0.6, 0.0),
    "embedding": (1.0, 0.0),
    "bias": (0.4, 0.0),
    "norm": (0.4, 1.0),
}


def fnv1a64(text: str) -> int:
    value = FNV_OFFSET
    for byte in text.encode():
        value = ((value ^ byte) * FNV_PRIME) & MASK
    return value


def splitmix64(state: np.ndarray) -> np.ndarray:
    z = state + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def random_bits(name: str, count: int) -> np.ndarray:
    """count 64-bit values of the stream `name`."""
    return splitmix64(np.uint64(fnv1a64(name)) + np.arange(count, dtype=np.uint64))


def kind_of(name: str) -> str:
    """Kind of a parameter of the supported families, from its Hugging Face name."""
    if name.endswith(".bias"):
        return "bias"
    parts = name.split(".")
    if "norm" in parts[-2] or parts[-2].startswith("ln_"):
        return "norm"
    return "embedding" if parts[-2] in ("embed_tokens", "wte", "wpe") else "matrix"


def weight(name: str, shape: tuple[int, ...]) -> np.ndarray:
    scale, offset = KINDS[kind_of(name)]
    bits = random_bits(name, int(np.prod(shape))) >> np.uint64(40)
    unit = bits.astype(np.float32) / np.float32(2**24) - np.float32(0.5)
    value = np.float32(offset) + np.float32(scale) * unit
    return value.reshape(shape)
