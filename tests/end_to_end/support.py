"""What the end-to-end tests share: running the binary, reading what a run leaves behind."""

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("DRIVETRAIN_BINARY", str(ROOT / "build/release/drivetrain"))
TIMEOUT_S = 120

LLAMA = {"model.preset": "llama-tiny", "model.override": "{layers: 2, dim: 32, heads: 4, kv_heads: 2, ffn: 64}"}
GPT2 = {
    "model.preset": "gpt2-124m",
    "model.override": "{layers: 2, dim: 32, heads: 4, ffn: 64, vocab: 257, positions: 64, dropout: 0.1}",
}


class EndToEnd(unittest.TestCase):
    """Each test works in an empty folder of its own."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="drivetrain-test-"))
        words = " ".join(f"word{i * i % 97} and {i}" for i in range(1500))
        (self.folder / "train.txt").write_text(words)
        (self.folder / "eval.txt").write_text(words[:700])

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def config(self, name="run", **changes):
        """Writes a configuration; keys are dotted with '__' for '.'."""
        keys = {
            "run.name": name,
            "device": "cpu",
            **LLAMA,
            "data.train": "[train.txt]",
            "data.eval": "[eval.txt]",
            "data.tokenizer": "bytes",
            "data.seq_len": "32",
            "batch.global": "8",
            "batch.micro": "2",
            "precision.compute": "fp32",
            "optimizer.lr": "0.003",
            "schedule.kind": "cosine",
            "schedule.warmup": "2",
            "steps": "6",
            "telemetry.progress": "lines",
        }
        keys.update({k.replace("__", "."): str(v) for k, v in changes.items()})
        tree = {}
        for key, value in keys.items():
            *path, leaf = key.split(".")
            node = tree
            for part in path:
                node = node.setdefault(part, {})
            node[leaf] = value
        lines = []
        for key, value in tree.items():
            if isinstance(value, dict):
                lines += [f"{key}:"] + [f"  {k}: {v}" for k, v in value.items()]
            else:
                lines.append(f"{key}: {value}")
        file = self.folder / f"{name}.yaml"
        file.write_text("\n".join(lines) + "\n")
        return str(file)

    def environment(self):
        env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMP_NUM_THREADS="1")
        return env

    def command(self, ranks, *arguments):
        if ranks == 1:
            return [BINARY, *arguments]
        return ["mpirun", "--oversubscribe", "--bind-to", "none", "--mca", "pml", "ob1", "--mca", "btl",
                "self,vader,tcp", "-np", str(ranks), BINARY, *arguments]

    def run_command(self, command, expect=0):
        done = subprocess.run(command, cwd=self.folder, env=self.environment(), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=TIMEOUT_S)
        if expect is not None:
            self.assertEqual(done.returncode, expect, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
        return done

    def drivetrain(self, *arguments, ranks=1, expect=0):
        return self.run_command(self.command(ranks, *arguments), expect)

    def train(self, name="run", ranks=1, expect=0, **changes):
        self.drivetrain("train", self.config(name, **changes), ranks=ranks, expect=expect)
        return self.metrics(name)

    def metrics(self, name="run"):
        file = self.folder / "runs" / name / "metrics.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()]

    def losses(self, rows):
        return [(row["loss"], row["grad_norm"], row["lr"]) for row in rows]

    def assert_close(self, a, b, relative=1e-5):
        self.assertEqual(len(a), len(b))
        for x, y in zip(a, b):
            for u, v in zip(x, y):
                self.assertLessEqual(abs(u - v), relative * abs(u), f"{u} and {v}")

    def wait_for(self, condition, seconds=30):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if condition():
                return
            time.sleep(0.05)
        self.fail("waited too long")


def read_safetensors(file):
    """name -> (shape, list of floats); F32 only."""
    data = Path(file).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    out = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        assert entry["dtype"] == "F32", entry
        begin, end = (8 + length + x for x in entry["data_offsets"])
        out[name] = (entry["shape"], struct.unpack(f"<{(end - begin) // 4}f", data[begin:end]))
    return out


__all__ = ["BINARY", "EndToEnd", "GPT2", "LLAMA", "ROOT", "os", "read_safetensors", "signal", "subprocess", "sys",
           "time", "unittest"]
