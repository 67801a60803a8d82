"""Reports on real runs: a rank that somebody stops now and then, one that is stopped for good, one that dies."""

import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

from support import *

SLOW = dict(model__override="{layers: 4, dim: 128, heads: 4, kv_heads: 2, ffn: 256}", data__seq_len=64, batch__global=16,
            batch__micro=4, checkpoint__at_end="off", eval__batches=1)


class Diagnose(EndToEnd):
    def launch(self, name, **changes):
        """A job of two ranks under launch, in the background; gone when the test ends."""
        job = subprocess.Popen(
            [BINARY, "launch", self.config(name, **{**SLOW, **changes}), "-n", "2"], cwd=self.folder,
            env=self.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, job, name)
        return job

    def end(self, job, name):
        if job.poll() is None:
            job.kill()
            job.communicate()
        for rank in (0, 1):
            left = self.process_of(rank, name)
            if left:
                os.kill(left, signal.SIGKILL)

    def process_of(self, rank, name):
        """The process of a rank of the run, None before it trains."""
        ranks = str(self.folder / "runs" / name / "attempt-0/ranks")
        for proc in Path("/proc").glob("[0-9]*"):
            try:
                entries = (proc / "environ").read_bytes().split(b"\0")
                if os.readlink(proc / "exe") != os.path.realpath(BINARY):
                    continue
            except OSError:
                continue
            if f"DRIVETRAIN_RANK_DIR={ranks}".encode() in entries and f"OMPI_COMM_WORLD_RANK={rank}".encode() in entries:
                if b"train" in (proc / "cmdline").read_bytes().split(b"\0"):
                    return int(proc.name)
        return None

    def wait_for_steps(self, name, steps):
        self.wait_for(lambda: (self.folder / "runs" / name / "metrics.jsonl").exists()
                      and len(self.metrics(name)) >= steps, 90)

    def diagnose(self, name):
        return json.loads(self.drivetrain("diagnose", f"runs/{name}", "--json").stdout)

    def test_a_rank_that_is_stopped_again_and_again_shows_in_rows_page_and_trace(self):
        job = self.launch("held", steps=80)
        self.wait_for_steps("held", 1)
        pid, over = self.process_of(1, "held"), threading.Event()

        def hold():
            while not over.wait(0.05):
                try:
                    os.kill(pid, signal.SIGSTOP)
                    time.sleep(0.3)
                    os.kill(pid, signal.SIGCONT)
                except ProcessLookupError:
                    return

        holder = threading.Thread(target=hold)
        holder.start()
        try:
            said = job.communicate(timeout=180)[1]
        finally:
            over.set()
            holder.join()
        self.assertEqual(job.returncode, 0, said)
        report = self.diagnose("held")
        self.assertEqual(report["state"], "finished")
        # What launch said at the end, and the page it left.
        self.assertIn("report: ", said)
        self.assertIn('<p class="answer">', (self.folder / "runs/held/report.html").read_text())
        for rank in report["ranks"]:
            self.assertLess(abs(rank["residual_ms"]), 0.01 * rank["step_ms"])
            self.assertAlmostEqual(sum(rank["classes_ms"].values()) + rank["residual_ms"], rank["step_ms"], places=3)
        self.drivetrain("trace", "runs/held", "-o", "trace.json")
        trace = json.loads((self.folder / "trace.json").read_text())
        waits = [e["args"] for e in trace["traceEvents"] if e["ph"] == "X" and e["args"].get("waiting_ms", 0) > 100]
        self.assertTrue(waits)
        self.assertIn(1, {wait.get("last_rank") for wait in waits})

    def test_a_job_that_hangs_tells_which_rank_is_stopped(self):
        job = self.launch("hung", steps=100000)
        self.wait_for_steps("hung", 12)
        self.assertEqual(self.diagnose("hung")["state"], "running")
        pid = self.process_of(1, "hung")
        os.kill(pid, signal.SIGSTOP)
        self.wait_for(lambda: self.diagnose("hung")["state"] == "hung", 60)
        report = self.diagnose("hung")
        self.assertIn("no rank has ended a step for", report["first_line"])
        self.assertIn(f"rank 1: process {pid}, state T (stopped)", report["first_line"])
        self.assertTrue(any(line.startswith("rank 0: process") for line in report["end"]["account"]))
        self.assertIn("Until then:", self.drivetrain("diagnose", "runs/hung").stdout)

    def test_a_rank_that_dies_is_told_first(self):
        job = self.launch("dead", steps=100000)
        self.wait_for_steps("dead", 12)
        os.kill(self.process_of(1, "dead"), signal.SIGKILL)
        said = job.communicate(timeout=180)[1]
        self.assertNotEqual(job.returncode, 0)
        report = self.diagnose("dead")
        self.assertEqual(report["state"], "failed")
        self.assertIn("rank 1", report["first_line"])
        self.assertIn("report: the job failed", said)

    def test_plain_errors(self):
        for arguments, words in ((["runs/nope"], "runs/nope"), ([], "no run given"), (["."], "no ledger"),
                                 ([".", "--steps", "9:1"], "--steps")):
            done = self.drivetrain("diagnose", *arguments, expect=None)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, done.stderr)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
