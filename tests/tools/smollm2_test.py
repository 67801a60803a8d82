"""Tests of tools/gguf_file.py and tools/smollm2_from_pypi on tiny GGUF files made here."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import struct
import sys
import tempfile
import unittest
from pathlib import Path
from types import ModuleType
from typing import Any

try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no numpy")
    sys.exit(77)

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
sys.dont_write_bytecode = True

from gguf_file import GgufError, GgufFile  # noqa: E402

F32, F16, Q4_0, Q4_1, Q8_0, Q6_K, BF16 = 0, 1, 2, 3, 8, 14, 30


def load_script() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("smollm2", str(TOOLS / "smollm2_from_pypi"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("smollm2", loader))
    loader.exec_module(module)
    return module


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def value(x: Any) -> bytes:
    if isinstance(x, list):
        parts = [value(e) for e in x]
        return (
            struct.pack("<I", 9)
            + parts[0][:4]
            + struct.pack("<Q", len(x))
            + b"".join(part[4:] for part in parts)
        )
    if isinstance(x, str):
        return struct.pack("<I", 8) + text(x)
    if isinstance(x, float):
        return struct.pack("<If", 6, x)
    return struct.pack("<II", 4, x)


def gguf_bytes(
    metadata: dict[str, Any], tensors: dict[str, tuple[tuple[int, ...], int, bytes]]
) -> bytes:
    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    out += b"".join(text(k) + value(v) for k, v in metadata.items())
    data = b""
    for name, (shape, kind, raw) in tensors.items():
        data += b"\0" * (-len(data) % 32)
        dims = struct.pack(f"<{len(shape)}Q", *reversed(shape))
        out += (
            text(name) + struct.pack("<I", len(shape)) + dims + struct.pack("<IQ", kind, len(data))
        )
        data += raw
    return out + b"\0" * (-len(out) % 32) + data


class GgufCase(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def open(self, raw: bytes) -> GgufFile:
        file = self.folder / "tiny.gguf"
        file.write_bytes(raw)
        return GgufFile(file)

    def read_one(self, shape: tuple[int, ...], kind: int, raw: bytes) -> np.ndarray:
        return self.open(
            gguf_bytes({}, {"pad": ((1,), F32, b"\0" * 4), "x": (shape, kind, raw)})
        ).read("x")

    def fails(self, raw: bytes, *words: str) -> None:
        with self.assertRaises(GgufError) as caught:
            self.open(raw).read("x")
        for word in ("tiny.gguf", *words):
            self.assertIn(word, str(caught.exception))


class Reading(GgufCase):
    def test_metadata(self) -> None:
        wanted = {"a.b": 7, "name": "é", "list": [1, 2, 3], "words": ["x", "yz"], "eps": 0.5}
        self.assertEqual(self.open(gguf_bytes(wanted, {})).metadata, wanted)

    def test_plain_types(self) -> None:
        x = np.array([[1.5, -2, 0], [4, 0.25, -8]], np.float32)
        bf16 = (x.view(np.uint32) >> 16).astype(np.uint16).tobytes()
        for kind, raw in ((F32, x.tobytes()), (F16, x.astype(np.float16).tobytes()), (BF16, bf16)):
            np.testing.assert_array_equal(self.read_one((2, 3), kind, raw), x)

    def test_quantised_blocks(self) -> None:
        low, high = np.arange(16), 15 - np.arange(16)  # elements 0-15 and 16-31
        nibbles = (low | high << 4).astype(np.uint8).tobytes()
        order = np.concatenate([low, high])
        half = np.float16(0.5).tobytes()
        got = self.read_one((1, 32), Q4_0, half + nibbles)
        np.testing.assert_array_equal(got[0], 0.5 * (order - 8))
        got = self.read_one((1, 32), Q4_1, half + np.float16(-3).tobytes() + nibbles)
        np.testing.assert_array_equal(got[0], 0.5 * order - 3)
        signed = np.arange(-64, 64, 4).astype(np.int8)
        got = self.read_one((2, 32), Q8_0, 2 * (half + signed.tobytes()))
        np.testing.assert_array_equal(got, np.stack([0.5 * signed] * 2))


class Refusing(GgufCase):
    def test_bad_files(self) -> None:
        good = gguf_bytes({"key": "word"}, {"x": ((4,), F32, b"\0" * 16)})
        self.fails(b"", "empty")
        self.fails(b"GGML" + good[4:], "GGUF")
        self.fails(good[:4] + b"\x09" + good[5:], "version 9")
        for size in range(4, len(good)):
            self.fails(good[:size])
        self.fails(good[:-1], "x", "cut")
        self.fails(good.replace(b"word", b"\xff\xff\xff\xff"), "key", "UTF-8")
        huge = struct.pack("<II", 9, 8) + struct.pack("<Q", 2**62)
        self.fails(good.replace(struct.pack("<I", 8) + text("word"), huge), "key", str(2**62))

    def test_unsupported_or_absent(self) -> None:
        self.fails(gguf_bytes({}, {"x": ((256,), Q6_K, b"\0" * 210)}), "x", "Q6_K")
        self.fails(gguf_bytes({}, {"x": ((31,), Q8_0, b"\0" * 34)}), "x", "blocks")
        self.fails(gguf_bytes({}, {}), "x", "no such tensor")
        with self.assertRaisesRegex(GgufError, "llama.block_count"):
            self.open(gguf_bytes({}, {})).get("llama.block_count")


class Converting(GgufCase):
    def test_heads_get_their_halves_back(self) -> None:
        script = load_script()
        heads, dim, width = 3, 8, 2
        wanted = np.arange(heads * dim * width, dtype=np.float32).reshape(-1, width)
        paired = wanted.reshape(heads, 2, dim // 2, width).swapaxes(1, 2).reshape(-1, width)
        metadata = {"llama.attention.head_count": heads, "llama.attention.head_count_kv": heads}
        raw = {
            f"blk.0.{n}.weight": (wanted.shape, F32, paired.tobytes()) for n in ("attn_q", "attn_k")
        }
        raw["blk.0.attn_v.weight"] = (wanted.shape, F32, wanted.tobytes())
        gguf = self.open(gguf_bytes(metadata, raw))
        for name in raw:
            np.testing.assert_array_equal(script.hf_tensor(gguf, name), wanted)

    def test_bf16_rounds_to_nearest_even(self) -> None:
        values = np.array([1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, -2.5], np.float32)
        bits = np.frombuffer(load_script().to_bytes(values, "bf16"), np.uint16).astype(np.uint32)
        wanted = np.array([1, 1 + 2**-6, 1 + 2**-7, -2.5], np.float32)
        np.testing.assert_array_equal((bits << 16).view(np.float32), wanted)

    def test_weight_file(self) -> None:
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        gguf = self.open(gguf_bytes({}, {"token_embd.weight": ((2, 3), F32, x.tobytes())}))
        file = self.folder / "model.safetensors"
        load_script().write_weights(gguf, file, "f32")
        raw = file.read_bytes()
        length = struct.unpack("<Q", raw[:8])[0]
        entry = json.loads(raw[8 : 8 + length])["model.embed_tokens.weight"]
        self.assertEqual(entry, {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]})
        self.assertEqual(raw[8 + length :], x.tobytes())

    def test_unknown_tensor_is_refused(self) -> None:
        gguf = self.open(gguf_bytes({}, {"blk.0.foo.weight": ((1,), F32, b"\0" * 4)}))
        with self.assertRaisesRegex(GgufError, "blk.0.foo.weight"):
            load_script().hf_name(gguf, "blk.0.foo.weight")


if __name__ == "__main__":
    unittest.main()
