"""`drivetrain bench` as users run it: on one rank and on two, under its own mpirun and somebody else's."""

from support import *

import json

QUICK = ["--warmup", "1", "--steps", "4"]
PUBLISHED = ["drivetrain", "palm", "megatron", "megatron2024", "nanogpt", "llmc", "torchtitan", "foundry", "hf"]


class Bench(EndToEnd):
    def bench(self, *arguments, ranks=1, expect=0, **changes):
        return self.drivetrain("bench", self.config(**changes), *arguments, ranks=ranks, expect=expect)

    def json(self, *arguments, **more):
        return json.loads(self.bench(*arguments, "--json", "-", **more).stdout)

    def check_sums(self, figures):
        fall = figures["waterfall"]
        self.assertEqual(fall["ideal_us"] + sum(row["us"] for row in fall["losses"]), fall["step_us"])
        points = fall["achieved_milli_points"] + sum(row["milli_points"] for row in fall["losses"])
        self.assertEqual(points, 100000)
        self.assertAlmostEqual(figures["mfu"] * 1e5, fall["achieved_milli_points"], delta=1)
        self.assertAlmostEqual(fall["step_us"] * 1e-3, figures["step_ms"]["mean"], delta=0.001)
        for name, mfu in figures["mfu_by_convention"].items():
            ratio = figures["flops_per_token"][name] / figures["flops_per_token"]["drivetrain"]
            self.assertAlmostEqual(mfu / figures["mfu_causal"], ratio, places=9)
        self.assertLess(figures["mfu_causal"], figures["mfu_full_attention"])

    def test_one_rank_and_two(self):
        (self.folder / "train.txt").unlink()  # made-up data need no files
        for ranks in (1, 2):
            figures = self.json("-n", str(ranks), *QUICK)
            self.assertEqual(figures["schema"], "drivetrain.bench/1")
            self.assertEqual((figures["ranks"], figures["steps"], figures["warmup"]), (ranks, 4, 1))
            self.assertEqual(figures["tokens_per_step"], 8 * 32)
            self.assertEqual(len(figures["per_rank"]), ranks)
            self.assertGreater(figures["mfu"], 0)
            self.assertTrue({"gemm", "attention"} <= {row["operator"] for row in figures["operators"]})
            self.assertLessEqual(set(PUBLISHED), set(figures["mfu_by_convention"]))
            self.check_sums(figures)
        self.assertFalse((self.folder / "runs").exists(), "the configuration's run folder was touched")

    def test_text_names_the_convention_and_keeps_the_run(self):
        done = self.bench("-n", "2", *QUICK, "--mfu-convention", "palm", "--peak-tflops", "2", "--out", "kept",
                          "--json", "bench.json", memory__recompute="full")
        figures = json.loads((self.folder / "bench.json").read_text())
        self.check_sums(figures)
        self.assertEqual((figures["mfu_convention"], figures["peak_flops"]), ("palm", 4e12))
        self.assertEqual(figures["mfu"], figures["mfu_by_convention"]["palm"])
        self.assertGreater(figures["hfu"], 1.1 * figures["mfu_causal"])
        self.assertIn("counted as palm", done.stdout)
        self.assertIn("(--peak-tflops)", done.stdout)
        self.assertIn("- recompute", done.stdout)
        self.assertLessEqual(max(len(line) for line in done.stdout.splitlines()), 100)
        self.drivetrain("ledger", "dump", "kept/bench")
        self.bench("-n", "2", *QUICK, "--out", "kept", expect=64)

    def test_ranks_of_a_foreign_mpirun_and_real_data(self):
        done = self.bench(*QUICK, "--real-data", "--no-compute", "--json", "bench.json", ranks=2, parallel__tp=2)
        figures = json.loads((self.folder / "bench.json").read_text())
        self.assertEqual((figures["dp"], figures["tp"]), (1, 2))
        self.assertIn("records", figures["data"])
        self.check_sums(figures)
        self.assertEqual(figures["feed"]["limit"], "compute")
        self.assertIn("the data side is not the limit", " ".join(done.stdout.split()))
        done = self.bench("--vary", "batch.micro=1", ranks=2, expect=64)
        self.assertIn("leave mpirun and srun out", done.stderr)

    def test_vary_finds_a_planted_difference_and_calls_the_same_value_equal(self):
        figures = self.json("-n", "1", *QUICK, "--rounds", "4", "--vary",
                            "model.override={layers: 16, dim: 32, heads: 4, kv_heads: 2, ffn: 64}",
                            "--vary", "batch.micro=2,3", "--vary", "memory.limit_gb=0.000001")
        baseline, deep, same, odd, small = figures["vary"]
        self.check_sums(figures)
        self.assertIsNone(baseline["against_baseline"])
        self.assertEqual(len(baseline["rounds"]), 4)
        self.assertEqual(deep["against_baseline"]["verdict"], "slower")
        self.assertEqual(same["against_baseline"]["verdict"], "equal")
        self.assertGreater(same["against_baseline"]["detectable"], abs(same["against_baseline"]["change"]))
        self.assertIn("batch.global", odd["fault"])
        self.assertIn("does not fit into memory", small["fault"])

    def test_refusals_name_the_word_and_the_way_out(self):
        for arguments, words in [
            (["--mfu-convention", "palmm"], "known are drivetrain"),
            (["--steps", "2"], "--steps 2: wants 3"),
            (["--vary", "batch.mikro=2"], "did you mean 'batch.micro'?"),
            (["--vary", "steps=2"], "bench sets steps itself"),
            (["--vary", "data.packing=off"], "add --real-data"),
            (["-n", "3", "--set", "parallel.tp=2"], "parallel.tp"),
        ]:
            done = self.bench(*arguments, expect=None)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, done.stderr, arguments)


if __name__ == "__main__":
    unittest.main()
