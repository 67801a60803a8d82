"""Reads GGUF files (version 2 and 3): metadata, and tensors turned into float32.

Format: ggml's docs/gguf.md; quantised blocks: ggml-common.h. Tensor types other than those
in BLOCKS are refused by name.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

MAGIC = b"GGUF"
ALIGNMENT = 32
SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
STRING, ARRAY = 8, 9
TYPE_NAMES = {0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 9: "Q8_1"}
TYPE_NAMES |= {10: "Q2_K", 11: "Q3_K", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K", 30: "BF16"}


class GgufError(ValueError):
    """A file that is cut, malformed or uses what is not supported; names file and field."""


def _half(raw: np.ndarray) -> np.ndarray:
    """Two bytes per block -> (blocks, 1) float32."""
    return np.ascontiguousarray(raw).view(np.float16).astype(np.float32)


def _nibbles(raw: np.ndarray) -> np.ndarray:
    """16 bytes per block -> (blocks, 32): low halves are elements 0-15, high halves 16-31."""
    return np.concatenate([raw & 15, raw >> 4], axis=1).astype(np.float32)


def _q4_0(raw: np.ndarray) -> np.ndarray:
    return _half(raw[:, :2]) * (_nibbles(raw[:, 2:]) - 8)


def _q4_1(raw: np.ndarray) -> np.ndarray:
    return _half(raw[:, :2]) * _nibbles(raw[:, 4:]) + _half(raw[:, 2:4])


def _q8_0(raw: np.ndarray) -> np.ndarray:
    return _half(raw[:, :2]) * raw[:, 2:].view(np.int8).astype(np.float32)


def _bf16(raw: np.ndarray) -> np.ndarray:
    return (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


# type name -> (elements per block, bytes per block, (blocks, bytes) u8 -> (blocks, elements) f32)
BLOCKS: dict[str, tuple[int, int, Callable[[np.ndarray], np.ndarray]]] = {
    "F32": (1, 4, lambda raw: raw.view(np.float32)),
    "F16": (1, 2, lambda raw: raw.view(np.float16).astype(np.float32)),
    "BF16": (1, 2, _bf16),
    "Q4_0": (32, 18, _q4_0),
    "Q4_1": (32, 20, _q4_1),
    "Q8_0": (32, 34, _q8_0),
}


@dataclass(frozen=True)
class TensorInfo:
    shape: tuple[int, ...]  # row-major: outermost first, the reverse of the file
    type_name: str
    offset: int  # bytes, inside the data section


class _Cursor:
    def __init__(self, file: Path, data: np.ndarray) -> None:
        self.file, self.data, self.at, self.field = file, data, 0, "header"

    def fail(self, what: str) -> GgufError:
        return GgufError(f"{self.file}: {self.field}: {what}")

    def take(self, size: int) -> bytes:
        if size > len(self.data) - self.at:
            raise self.fail(f"needs {size} bytes at {self.at}, the file has {len(self.data)}")
        self.at += size
        return self.data[self.at - size : self.at].tobytes()

    def scalar(self, code: str) -> Any:
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code)))[0]

    def text(self) -> str:
        try:
            return self.take(self.scalar("Q")).decode()
        except UnicodeDecodeError as error:
            raise self.fail(f"is not UTF-8: {error}") from None

    def value(self, kind: int) -> Any:
        if kind in SCALARS:
            return self.scalar(SCALARS[kind])
        if kind == STRING:
            return self.text()
        if kind != ARRAY:
            raise self.fail(f"unknown value type {kind}")
        inner, count = self.scalar("I"), self.scalar("Q")
        if count > len(self.data):
            raise self.fail(f"{count} elements are more than the file has bytes")
        if inner in SCALARS:
            code = f"{count}{SCALARS[inner]}"
            return list(struct.unpack("<" + code, self.take(struct.calcsize("<" + code))))
        return [self.value(inner) for _ in range(count)]


class GgufFile:
    def __init__(self, file: Path) -> None:
        self.file = file
        if file.stat().st_size == 0:
            raise GgufError(f"{file}: is empty")
        self._data = np.memmap(file, dtype=np.uint8, mode="r")
        cursor = _Cursor(file, self._data)
        if cursor.take(4) != MAGIC:
            raise cursor.fail("does not start with GGUF")
        version = cursor.scalar("I")
        if version not in (2, 3):
            raise cursor.fail(f"version {version} is not supported (2 and 3 are)")
        tensor_count, value_count = cursor.scalar("Q"), cursor.scalar("Q")
        self.metadata: dict[str, Any] = {}
        for _ in range(value_count):
            cursor.field = "metadata key"
            cursor.field = cursor.text()
            self.metadata[cursor.field] = cursor.value(cursor.scalar("I"))
        self.tensors: dict[str, TensorInfo] = {}
        for _ in range(tensor_count):
            self._read_info(cursor)
        alignment = self.metadata.get("general.alignment", ALIGNMENT)
        self._begin = -(-cursor.at // alignment) * alignment

    def _read_info(self, cursor: _Cursor) -> None:
        cursor.field = "tensor name"
        cursor.field = name = cursor.text()
        dims = [cursor.scalar("Q") for _ in range(cursor.scalar("I"))]
        code, offset = cursor.scalar("I"), cursor.scalar("Q")
        kind = TYPE_NAMES.get(code, f"number {code}")
        if kind not in BLOCKS:
            raise cursor.fail(f"tensor type {kind} is not supported ({', '.join(BLOCKS)} are)")
        self.tensors[name] = TensorInfo(tuple(reversed(dims)), kind, offset)

    def get(self, key: str) -> Any:
        if key not in self.metadata:
            raise GgufError(f"{self.file}: {key}: is missing")
        return self.metadata[key]

    def read(self, name: str) -> np.ndarray:
        """The tensor as float32. Raises GgufError when it is absent or cut."""
        if name not in self.tensors:
            raise GgufError(f"{self.file}: {name}: no such tensor")
        info = self.tensors[name]
        elements, size, convert = BLOCKS[info.type_name]
        count = int(np.prod(info.shape, dtype=object))
        if count % elements:
            raise GgufError(f"{self.file}: {name}: {count} elements are no whole blocks")
        begin, length = self._begin + info.offset, count // elements * size
        if begin + length > len(self._data):
            raise GgufError(f"{self.file}: {name}: data is cut")
        raw = np.array(self._data[begin : begin + length]).reshape(-1, size)
        return convert(raw).reshape(info.shape)
