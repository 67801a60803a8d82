"""`drivetrain comm bench` as users run it: as threads, as a job it starts, and as ranks under somebody's mpirun."""

from support import *

import json


class CommBench(EndToEnd):
    def bench(self, *arguments, expect=0):
        return self.drivetrain("comm", "bench", *arguments, expect=expect)

    def json(self, *arguments):
        done = self.bench(*arguments, "--json", "-")
        return json.loads(done.stdout)

    def test_threads_run_every_operation_and_type(self):
        figures = self.json("-n", "3", "--transport", "threads", "--op", "all", "--dtype", "all", "-b", "8", "-e", "64K",
                            "-f", "90", "--iters", "2")
        self.assertEqual(figures["meta"]["ranks"], 3)
        self.assertEqual(figures["meta"]["transport"], "threads")
        rows = figures["rows"]
        self.assertEqual({row["op"] for row in rows}, {"all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                                       "reduce", "all_to_all", "sendrecv", "barrier"})
        self.assertEqual(len({row["dtype"] for row in rows}), 7)
        for row in rows:
            self.assertEqual(row["wrong"], 0, row)
            self.assertGreater(row["time_us"], 0)
            self.assertLessEqual(row["min_us"], row["time_us"])
            self.assertLessEqual(row["time_us"], row["max_us"])
            factor = {"all_reduce": 4 / 3, "reduce_scatter": 2 / 3, "all_gather": 2 / 3, "all_to_all": 2 / 3}
            self.assertAlmostEqual(row["algbw_gbps"], row["bytes"] / row["time_us"] / 1e3)
            self.assertAlmostEqual(row["busbw_gbps"], row["algbw_gbps"] * factor.get(row["op"], 1))

    def test_a_job_against_mpi_in_every_operation_and_type(self):
        file = self.folder / "bench.json"
        done = self.bench("-n", "2", "--against", "mpi", "--mpi-settings", "tuned", "--op", "all", "--dtype", "all",
                          "-b", "1K", "-e", "1M", "-f", "1000", "--iters", "2", "--json", str(file))
        figures = json.loads(file.read_text())
        self.assertIn("Open MPI", figures["meta"]["mpi"]["library"])
        self.assertEqual(figures["meta"]["mpi"]["settings"], "tuned")
        self.assertEqual(figures["meta"]["mpi"]["parameters"]["OMPI_MCA_btl_vader_single_copy_mechanism"], "none")
        self.assertEqual(figures["meta"]["transport"], "shm")
        for row in figures["rows"]:
            self.assertEqual((row["wrong"], row["mpi_wrong"]), (0, 0), row)
            self.assertAlmostEqual(row["ratio"], row["mpi_time_us"] / row["time_us"])
        lines = done.stdout.splitlines()
        self.assertLessEqual(max(len(line) for line in lines), 100)
        self.assertEqual(sum(not line.startswith("#") and line != "" for line in lines), len(figures["rows"]))

    def test_reductions_beside_mpi_are_right_for_max_and_min(self):
        for reduce in ("max", "min"):
            figures = self.json("-n", "2", "--against", "mpi", "--op", "all_reduce,reduce_scatter,reduce", "--dtype",
                                "all", "--reduce", reduce, "-b", "10K", "-e", "10K", "--iters", "1")
            for row in figures["rows"]:
                self.assertEqual((row["wrong"], row["mpi_wrong"]), (0, 0), row)

    def test_blocks_of_ranks_stand_for_hosts(self):
        figures = self.json("-n", "4", "--ranks-per-host", "2", "-b", "100", "-e", "100K", "-f", "1000", "--op", "all",
                            "--iters", "1", "--warmup", "0")
        self.assertEqual(figures["meta"]["transport"], "hierarchical")
        self.assertEqual(figures["meta"]["hosts"], 2)
        self.assertEqual(sum(row["wrong"] for row in figures["rows"]), 0)

    def test_ranks_of_a_foreign_mpirun(self):
        done = self.drivetrain("comm", "bench", "-e", "1K", "--transport", "mpi", "--back-to-back", "--against", "mpi",
                               "--json", "bench.json", ranks=2)
        meta = json.loads((self.folder / "bench.json").read_text())["meta"]
        self.assertEqual((meta["transport"], meta["timing"], meta["mpi"]["settings"]), ("mpi", "back-to-back", "by hand"))
        self.assertIn("transport mpi (asked for)", done.stdout)

    def test_links_of_three_ranks(self):
        done = self.bench("-n", "3", "--links", "--json", "links.json")
        figures = json.loads((self.folder / "links.json").read_text())
        self.assertEqual([(link["a"], link["b"], link["kind"]) for link in figures["links"]],
                         [(0, 1, "shm"), (0, 2, "shm"), (1, 2, "shm")])
        for link in figures["links"]:
            self.assertGreater(link["latency_us"], 0)
            self.assertGreater(link["bandwidth_gbps"], 0)
        self.assertTrue(figures["findings"])
        for sentence in figures["findings"]:
            self.assertIn(sentence, done.stdout)
        two = self.json("-n", "2", "--links", "--transport", "threads")
        self.assertIn("Too few links", two["findings"][0])

    def test_a_bench_that_dies_leaves_the_file_that_was_there(self):
        file = self.folder / "kept.json"
        file.write_text('{"old": 1}')
        job = subprocess.Popen([BINARY, "comm", "bench", "-n", "2", "--transport", "threads", "-b", "1M", "-e", "1M",
                                "--iters", "100000000", "--json", str(file)], stdout=subprocess.DEVNULL)
        try:
            until = time.monotonic() + 30
            while not (self.folder / "kept.json.part").exists():
                self.assertLess(time.monotonic(), until, "the bench never began")
                time.sleep(0.05)
        finally:
            job.kill()
            job.wait()
        self.assertEqual(file.read_text(), '{"old": 1}')

    def test_refusals_name_the_word_and_the_way_out(self):
        for arguments, code, words in [
            (["-n", "2", "--op", "allreduce"], 64, "did you mean 'all_reduce'?"),
            (["-n", "2", "--memory", "shared"], 64, "wants symmetric or ordinary"),
            (["-n", "1"], 64, "at least 2 ranks"),
            (["-n", "300", "--transport", "threads"], 64, "at most 256"),
            (["-n", "2", "--transport", "threads", "--host", "a:2"], 64, "leave the hosts"),
            (["-n", "2", "--transport", "hierarchical"], 64, "--ranks-per-host"),
            (["-n", "3", "--ranks-per-host", "2"], 64, "does not divide 3"),
            (["-n", "2", "-f", "2", "--step", "8"], 64, "exclude each other"),
            (["-n", "2", "--links", "--against", "mpi"], 64, "has no --against"),
            (["-n", "2", "--iters", "0"], 64, "--iters 0"),
            (["-n", "2", "-f", "1.00000001", "-e", "64G"], 64, "gives more than 10000 sizes"),
            (["-n", "2", "-b", "1T", "-e", "1T"], 10, "M fits"),
            (["-n", "2", "--json", "/nowhere/x"], 74, "/nowhere/x"),
        ]:
            start = time.monotonic()
            done = self.bench(*arguments, expect=code)
            self.assertIn(words, done.stderr, arguments)
            self.assertLess(time.monotonic() - start, 20)

    def test_ranks_refuse_what_only_one_process_can_do(self):
        for arguments, words in [(["--transport", "threads"], "run it without mpirun"),
                                 (["-n", "3"], "leave -n out"),
                                 (["--mpi-settings", "tuned"], "with --mca"),
                                 (["--ranks-per-host", "3"], "does not divide 2")]:
            done = self.drivetrain("comm", "bench", *arguments, ranks=2, expect=64)
            self.assertIn(words, done.stderr)
        done = self.run_command(["mpirun", "-np", "1", BINARY, "comm", "bench"], expect=64)
        self.assertIn("started 1 rank", done.stderr)


if __name__ == "__main__":
    unittest.main()
