"""Training as users run it: repeatable, resumable, layout-free, and honest when it fails."""

import json
import shutil

from support import *


class Identities(EndToEnd):
    def test_same_command_twice_is_bit_identical(self):  # TR-31
        a = self.losses(self.train("a", ranks=2, precision__compute="bf16"))
        b = self.losses(self.train("b", ranks=2, precision__compute="bf16"))
        c = self.losses(self.train("c", ranks=2, precision__compute="bf16", run__seed=8))
        self.assertEqual(a, b)
        self.assertNotEqual(a, c)

    def test_layouts_agree(self):
        one = self.losses(self.train("one"))
        self.assert_close(one, self.losses(self.train("dp", ranks=2)))
        self.assert_close(one, self.losses(self.train("tp", ranks=2, parallel__tp=2)))
        self.assert_close(one, self.losses(self.train("both", ranks=4, parallel__tp=2)))

    def test_the_progress_thread_changes_no_bit(self):
        # Gradients beyond what the caller reduces himself.
        wide = dict(model__override="{layers: 2, dim: 128, heads: 4, kv_heads: 2, ffn: 256}", steps=4)
        for ranks, tp in ((2, 1), (4, 2)):
            losses = {}
            for progress, word in (("on", "with"), ("off", "without")):
                config = self.config(f"{progress}{ranks}", parallel__tp=tp, comm__progress=progress, **wide)
                log = self.drivetrain("train", config, ranks=ranks)
                self.assertIn(f"shm collectives {word} a progress thread", log.stderr + log.stdout)
                losses[progress] = self.losses(self.metrics(f"{progress}{ranks}"))
            self.assertEqual(losses["on"], losses["off"])

    def test_resume_equals_the_unbroken_run_with_dropout(self):  # RS-11, RS-09, RS-16
        options = dict(GPT2, parallel__tp=2, steps=8, eval__every=2, precision__compute="bf16")
        whole = self.train("whole", ranks=4, **options)
        # What a job killed between two checkpoints leaves: the newest is that of step 4, metrics go further.
        self.drivetrain("train", self.config("cut", **{**options, "checkpoint__every": 4}), ranks=4)
        cut = self.folder / "runs/cut"
        shutil.rmtree(cut / "checkpoints/step-000008")
        (cut / "checkpoints/latest").unlink()
        done = self.drivetrain("train", self.config("cut", **{**options, "checkpoint__every": 4}), ranks=4)
        self.assertIn("step 4", done.stderr + done.stdout)
        self.assertEqual(self.losses(whole), self.losses(self.metrics("cut")))
        self.assertEqual([r["tokens"] for r in whole], [r["tokens"] for r in self.metrics("cut")])
        self.assertEqual([r.get("eval_loss") for r in whole], [r.get("eval_loss") for r in self.metrics("cut")])

    def test_resume_at_another_layout(self):  # RS-07
        whole = self.losses(self.train("whole", ranks=2, steps=6))
        self.train("moved", ranks=4, steps=6, checkpoint__every=3)
        shutil.rmtree(self.folder / "runs/moved/checkpoints/step-000006")
        moved = self.train("moved", ranks=2, steps=6, parallel__tp=2, checkpoint__every=3)
        self.assert_close(whole, self.losses(moved))

    def test_weight_decay_spares_norms_and_biases(self):  # TR-20
        tensors = []
        for decay in ("0", "0.1"):
            name = f"decay{decay}"
            self.train(name, **GPT2, steps=1, optimizer__weight_decay=decay, schedule__warmup=0)
            self.drivetrain("export", f"runs/{name}", name + "-out", "--dtype", "fp32")
            tensors.append(read_safetensors(self.folder / (name + "-out") / "model.safetensors"))
        for name, (shape, values) in tensors[0].items():
            exempt = ".ln_" in name or name.endswith(".bias")
            self.assertEqual(values == tensors[1][name][1], exempt, name)


class Outputs(EndToEnd):
    def test_eval_generate_export_agree(self):  # CK-04, CK-10
        rows = self.train("run", ranks=2, parallel__tp=2, steps=4)
        config = self.config("run", parallel__tp=2, steps=4)
        text = self.drivetrain("eval", config, ranks=2).stdout
        self.assertIn(f"loss {rows[-1]['eval_loss']:.6f}", text)
        self.drivetrain("export", "runs/run", "out", "--dtype", "fp32")
        tensors = read_safetensors(self.folder / "out/model.safetensors")
        self.assertEqual(tensors["model.embed_tokens.weight"][0], [257, 32])
        self.assertNotIn("lm_head.weight", tensors)
        alone = self.drivetrain("eval", self.config("alone"), "--from", "out").stdout
        loss = float(alone.split("loss ")[1].split()[0])
        self.assertAlmostEqual(loss, rows[-1]["eval_loss"], delta=1e-5)
        greedy = [self.drivetrain("generate", self.config("alone"), "--from", w, "--prompt", "word1 ", "-t", "12").stdout
                  for w in ("out", "runs/run")]
        self.assertEqual(greedy[0], greedy[1])
        timing = self.drivetrain("generate", self.config("alone"), "--from", "out", "--prompt", "w", "-t", "5",
                                 "--temperature", "1", "--top-k", "5", "--seed", "3").stderr
        self.assertIn("time to first token", timing)
        self.assertIn("tokens/s", timing)

    def test_run_folder(self):
        rows = self.train("run", ranks=2, checkpoint__every=2, checkpoint__keep=2)
        run = self.folder / "runs/run"
        self.assertEqual((run / "checkpoints/latest").read_text().strip(), "step-000006")
        self.assertEqual(sorted(p.name for p in (run / "checkpoints").glob("step-*")), ["step-000004", "step-000006"])
        self.assertTrue((run / "config.yaml").exists())
        self.assertTrue((run / "ledger/rank-00001.bin").exists())
        for key in ("step", "loss", "lr", "grad_norm", "tokens", "tokens_per_s", "mfu", "step_ms"):
            self.assertIn(key, rows[0])
        self.assertEqual(rows[0]["tokens"], 8 * 32)  # MF-12: the whole window, not one micro-batch

    def test_the_ledger_accounts_for_the_time_of_every_rank(self):
        self.train("run", ranks=2, steps=6, parallel__tp=2, eval__every=3)
        done = self.drivetrain("ledger", "dump", "runs/run", "--json")
        ranks = json.loads(done.stdout)["ranks"]
        self.assertEqual([r["world_rank"] for r in ranks], [0, 1])
        for rank in ranks:
            self.assertEqual([s["step"] for s in rank["steps"]], [1, 2, 3, 4, 5, 6])
            wall = sum(s["wall_ms"] for s in rank["steps"])
            self.assertLess(sum(s["residual_ms"] for s in rank["steps"]), 0.01 * wall)
            for step in rank["steps"]:
                classes = step["classes"]
                self.assertAlmostEqual(sum(classes.values()) + step["residual_ms"], step["wall_ms"], places=4)
                self.assertEqual(classes["eval_ms"] > 0, step["step"] % 3 == 0)
                for name in ("forward_ms", "backward_ms", "optimizer_ms", "tp_transfer_ms", "host_gap_ms"):
                    self.assertGreater(classes[name], 0, name)
                self.assertEqual(step["own_tokens"], 8 * 32)
        table = self.drivetrain("ledger", "dump", "runs/run/ledger/rank-00001.bin", "--last", "2").stdout
        self.assertIn("rank 1 of 2 (dp 0, tp 1)", table)
        self.assertEqual([line.split()[0] for line in table.splitlines()[2:5]], ["5", "6", "all,"])
        self.assertIn("tokens/s", table)
        self.assertIn("no ledger of rank 7", self.drivetrain("ledger", "dump", "runs/run", "--rank", "7",
                                                             expect=64).stderr)
        self.assertIn("does not begin with the mark",
                      self.drivetrain("ledger", "dump", "runs/run/config.yaml", expect=65).stderr)

    def test_plan_starts_nothing_and_says_whether_it_fits(self):
        fits = self.drivetrain("plan", self.config(), "-n", "2").stdout
        self.assertIn("fits", fits)
        self.drivetrain("plan", self.config("small", memory__limit_gb=0.0001), "-n", "2", expect=71)
        self.assertFalse((self.folder / "runs").exists())


class Faults(EndToEnd):
    def test_nan_stops_the_run_and_saves_nothing(self):
        done = self.drivetrain("train", self.config(optimizer__lr="1e30", optimizer__clip=0, schedule__warmup=0),
                               ranks=2, expect=20)
        self.assertRegex(done.stdout + done.stderr, r"step \d+")
        self.assertFalse(list((self.folder / "runs/run/checkpoints").glob("step-*")))

    def test_weights_that_are_not_finite_are_not_saved(self):
        self.train(steps=4, checkpoint__every=2)
        done = self.drivetrain("train", self.config(steps=6, checkpoint__every=1, checkpoint__keep=1,
                                                    optimizer__lr="1e39", schedule__kind="constant"), expect=20)
        self.assertIn("not finite after step 5", done.stdout + done.stderr)
        self.assertEqual((self.folder / "runs/run/checkpoints/latest").read_text().strip(), "step-000004")

    def test_a_checkpoint_of_another_model_is_refused(self):
        self.train(steps=2)
        other = dict(steps=4, model__override="{layers: 2, dim: 32, heads: 8, kv_heads: 4, ffn: 64}")
        done = self.drivetrain("train", self.config(**other), expect=64)
        self.assertIn("num_attention_heads: 4 in the checkpoint, 8 now", done.stdout + done.stderr)
        self.drivetrain("eval", self.config(**other), expect=64)

    def test_one_job_in_a_run_folder(self):
        config = self.config(steps=100000)
        process = subprocess.Popen([BINARY, "train", config], cwd=self.folder, env=self.environment(),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            metrics = self.folder / "runs/run/metrics.jsonl"
            self.wait_for(lambda: metrics.exists() and metrics.read_text().count("\n") > 3)
            done = self.drivetrain("train", config, ranks=2, expect=64)
            self.assertIn(f"pid {process.pid}", done.stdout + done.stderr)
        finally:
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(timeout=30), 75)

    def test_incomplete_checkpoints_are_named(self):
        self.train(steps=4, checkpoint__every=2)
        (self.folder / "runs/run/checkpoints/step-000004/DONE").unlink()
        done = self.drivetrain("train", self.config(steps=4))
        text = done.stdout + done.stderr
        self.assertIn("step-000004 is not complete", text)
        self.assertIn("continuing after step 2", text)

    def test_stop_signal_saves_and_the_same_command_continues(self):
        options = dict(steps=400, telemetry__every=1)
        unbroken = self.train("whole", ranks=2, **options)
        process = subprocess.Popen(self.command(2, "train", self.config("cut", **options)), cwd=self.folder,
                                   env=self.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        metrics = self.folder / "runs/cut/metrics.jsonl"
        self.wait_for(lambda: metrics.exists() and metrics.read_text().count("\n") > 3)
        process.send_signal(signal.SIGUSR1)
        self.assertEqual(process.wait(timeout=30), 75)
        self.assertLess(len(self.metrics("cut")), 400)
        self.drivetrain("train", self.config("cut", **options), ranks=2)
        self.assertEqual(self.losses(unbroken), self.losses(self.metrics("cut")))

    def test_bad_configurations_stop_before_any_step(self):
        for change, words in [
            (dict(parallel__tp=3), ["parallel.tp", "3"]),
            (dict(parallel__tp=4, model__override="{layers: 2, dim: 32, heads: 4, kv_heads: 2, ffn: 64}"),
             ["num_key_value_heads", "4"]),  # CK-01
            (dict(batch__global=6), ["batch.global", "6"]),
            (dict(data__seq_len=5000), ["seq_len", "5000"]),
            (dict(data__train="[nowhere.txt]"), ["nowhere.txt"]),
            (dict(model__preset="gpt9"), ["gpt9", "gpt2-124m"]),
        ]:
            ranks = 4 if "parallel__tp" in change else 2
            done = self.drivetrain("train", self.config(**change), ranks=ranks, expect=None)
            text = done.stdout + done.stderr
            self.assertNotEqual(done.returncode, 0, change)
            for word in words:
                self.assertIn(word, text)
            self.assertFalse((self.folder / "runs/run/metrics.jsonl").exists(), change)

    def test_bad_json_stops_every_rank(self):  # TK-19
        lines = ['{"text": "one two three four"}'] * 5
        lines[2] = "{bad"
        (self.folder / "data.jsonl").write_text("\n".join(lines))
        done = self.drivetrain("train", self.config(data__train="[data.jsonl]", data__seq_len=8), ranks=2, expect=65)
        self.assertIn("data.jsonl:3", done.stdout + done.stderr)
        done = self.drivetrain("train", self.config(data__train="[data.jsonl]", data__seq_len=8, data__on_error="skip",
                                                    steps=1, schedule__warmup=0), ranks=2)
        self.assertIn("4 records", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
