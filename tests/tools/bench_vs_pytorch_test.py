"""Tests of tools/bench_vs_pytorch with a stand-in for the drivetrain binary."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BENCH = Path(__file__).resolve().parents[2] / "tools" / "bench_vs_pytorch"
# Writes metrics.jsonl as a run would: step s takes (s + 1) * 100 ms.
STAND_IN = """#!{python}
import json, pathlib, sys
assert sys.argv[1] == "launch" and sys.argv[3:5] == ["-n", "2"], sys.argv
settings = dict(a.split("=", 1) for f, a in zip(sys.argv, sys.argv[1:]) if f == "--set")
folder = pathlib.Path(settings["run.dir"]) / settings["run.name"]
folder.mkdir(parents=True)
tokens = int(settings["batch.global"]) * int(settings["data.seq_len"]) * {scale}
with (folder / "metrics.jsonl").open("w") as out:
    for step in range(int(settings["steps"]) - {missing}):
        ms = (step + 1) * 100
        row = {{"step": step + 1, "step_ms": ms, "tokens_per_s": tokens / ms * 1000}}
        print(json.dumps(row), file=out)
sys.exit({code})
"""


class BenchVsPytorch(unittest.TestCase):
    def bench(
        self, *options: str, scale: float = 1, missing: int = 0, code: int = 0
    ) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory() as scratch:
            binary = Path(scratch) / "drivetrain"
            script = STAND_IN.format(python=sys.executable, scale=scale, missing=missing, code=code)
            binary.write_text(script)
            binary.chmod(0o755)
            command = [sys.executable, str(BENCH), "--side", "drivetrain", "--binary", str(binary)]
            command += ["--dtype", "bf16", "--cores", "2", "--rounds", "2", "--warmup", "2"]
            command += ["--steps", "3", *options]
            return subprocess.run(command, capture_output=True, text=True, timeout=60)

    def test_medians_over_all_rounds_without_warmup(self) -> None:
        result = self.bench("--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        row = report["rows"][0]
        found = [row[key] for key in ("step_ms", "min_ms", "max_ms", "steps", "tokens_per_s")]
        self.assertEqual(found, [400, 300, 500, 6, 2560])
        self.assertEqual(report["tokens_per_step"], 1024)
        self.assertEqual(report["ratios"], {})

    def test_table(self) -> None:
        self.assertIn("dp=2", self.bench().stdout)

    def test_refuses_other_work_than_asked_for(self) -> None:
        for fault, words in (
            ({"scale": 0.5}, "512 tokens a step, not 1024"),
            ({"missing": 1}, "2 timed rows"),
            ({"code": 3}, "exit code 3"),
        ):
            result = self.bench(**fault)
            self.assertEqual(result.returncode, 1)
            self.assertIn(words, result.stderr)

    def test_batch_must_divide(self) -> None:
        self.assertIn("not divisible", self.bench("--batch", "3").stderr)


if __name__ == "__main__":
    unittest.main()
