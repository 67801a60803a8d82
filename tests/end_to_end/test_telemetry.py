"""What a run tells while it trains: monitor files, the Prometheus endpoint, TensorBoard event files."""

import json
import re
import shutil
import socket
import struct
import urllib.error
import urllib.request
from pathlib import Path

from support import *


def crc32c(data):
    """CRC-32C bit by bit: slow, and independent of the product's table."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def fields(data):
    """(field number, value) of a protocol buffer message; lengths as bytes, fixed ones as bytes, varints as int."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            yield key >> 3, varint()
        else:
            size = {1: 8, 5: 4}.get(kind) or varint()
            yield key >> 3, data[at : at + size]
            at += size


def read_events(file):
    """(step, what) per record, what being a version, {"restart": status} or {tag: value}; checks every checksum."""
    data = file.read_bytes()
    at, events = 0, []
    while at < len(data):
        (size, size_crc) = struct.unpack_from("<QI", data, at)
        assert size_crc == masked(data[at : at + 8]), f"{file}: length at {at}"
        event = data[at + 12 : at + 12 + size]
        assert struct.unpack_from("<I", data, at + 12 + size)[0] == masked(event), f"{file}: data at {at}"
        at += 16 + size
        message = dict(fields(event))
        assert abs(struct.unpack("<d", message[1])[0] - time.time()) < 3600
        what = message.get(3)
        if 7 in message:
            what = {"restart": dict(fields(message[7]))[1]}
        if 5 in message:
            values = [dict(fields(v)) for number, v in fields(message[5]) if number == 1]
            what = {v[1].decode(): struct.unpack("<f", v[2])[0] for v in values}
        events.append((message[2], what))
    return events


def monitor(folder, rank=0):
    text = (folder / f"monitor-{rank:05d}.jsonl").read_text()
    rows = [json.loads(line) for line in text.splitlines()]
    return {kind: [row for row in rows if row["kind"] == kind] for kind in ("facts", "links", "sample")}


class Telemetry(EndToEnd):
    def tensorboard(self):
        files = sorted((self.folder / "runs/run/tensorboard").iterdir())
        return [read_events(file) for file in files]

    def test_tensorboard_files_hold_the_metrics_and_a_resumed_run_voids_what_it_repeats(self):
        options = dict(telemetry__tensorboard="on", steps=4, checkpoint__every=2)
        rows = self.train(ranks=2, **options)
        (events,) = self.tensorboard()
        self.assertEqual(events[0], (0, b"brain.Event:2"))
        self.assertEqual([step for step, _ in events[1:]], [1, 2, 3, 4])
        for (_, scalars), row in zip(events[1:], rows):
            for tag, key in (("train/loss", "loss"), ("train/learning_rate", "lr"), ("train/grad_norm", "grad_norm"),
                             ("speed/step_ms", "step_ms"), ("speed/tokens_per_second", "tokens_per_s")):
                self.assertAlmostEqual(scalars[tag] / row[key], 1, delta=1e-6, msg=tag)
        self.assertAlmostEqual(events[-1][1]["eval/loss"], rows[-1]["eval_loss"], delta=1e-5)
        shutil.rmtree(self.folder / "runs/run/checkpoints/step-000004")
        (self.folder / "runs/run/checkpoints/latest").unlink()
        time.sleep(1.1)  # TensorBoard orders files by the second in their names
        self.train(ranks=2, **options)
        first, second = self.tensorboard()
        self.assertEqual(first, events)
        self.assertEqual(second[1], (3, {"restart": 1}))
        self.assertEqual([step for step, _ in second[2:]], [3, 4])

    def test_monitor_files(self):
        script = {"links": [{"kind": "pcie", "name": "0000:17:00.0", "device": "0000:17:00.0", "gen": 4, "width": 8,
                             "max_gen": 4, "max_width": 16}]}
        (self.folder / "links.json").write_text(json.dumps(script))
        config = self.config(telemetry__monitor_every_s=0.05, steps=40, telemetry__links_script="links.json")
        done = self.drivetrain("train", config, ranks=2)
        self.assertIn("PCIe trained at gen 4 x8, could do gen 4 x16", done.stderr)
        run = self.folder / "runs/run"
        first, second = monitor(run), monitor(run, 1)
        self.assertEqual(first["links"][0]["links"], script["links"])
        self.assertEqual([second["facts"][0][k] for k in ("world_rank", "local_rank", "local_size")], [1, 1, 2])
        self.assertEqual(first["facts"][0]["environment"]["OMP_NUM_THREADS"], "1")
        self.assertGreaterEqual(len(first["sample"]), 3)
        self.assertGreater(first["sample"][-1]["host"]["memory_total"], 1e8)
        self.assertNotIn("host", second["sample"][-1])  # one rank of each host is enough
        self.assertGreater(second["sample"][-1]["process"]["threads"], 1)
        self.train("quiet", telemetry__monitor="off", steps=2)
        self.assertFalse(list((self.folder / "runs/quiet").glob("monitor-*")))
        done = self.drivetrain("train", self.config(telemetry__links_script="nowhere.json"), expect=74)
        self.assertIn("nowhere.json", done.stderr)


class Prometheus(EndToEnd):
    more_environment = {}

    def environment(self):
        return {**super().environment(), **self.more_environment}

    def start(self, ranks=1, **options):
        config = self.config(steps=100000, telemetry__prometheus=0, telemetry__monitor_every_s=0.05, **options)
        log = open(self.folder / "log", "w")
        process = subprocess.Popen(self.command(ranks, "train", config), cwd=self.folder, env=self.environment(),
                                   stdout=subprocess.DEVNULL, stderr=log)
        log.close()
        self.addCleanup(lambda: process.poll() is None and process.kill())
        metrics = self.folder / "runs/run/metrics.jsonl"
        self.wait_for(lambda: metrics.exists() and metrics.read_text().count("\n") > 3)
        text = (self.folder / "log").read_text()
        return process, re.search(r"http://127\.0\.0\.1:\d+/metrics", text).group()

    def scrape(self, url):
        """name{labels} -> value of every line that is no comment."""
        with urllib.request.urlopen(url, timeout=10) as answer:
            self.assertIn("text/plain", answer.headers["Content-Type"])
            lines = answer.read().decode().splitlines()
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if line[0] != "#"}

    def test_a_scrape_sees_the_run_and_sigterm_ends_it_cleanly(self):
        process, url = self.start(ranks=1)
        self.wait_for(lambda: "drivetrain_host_cpu_busy" in self.scrape(url))
        values = self.scrape(url)
        rows = self.metrics()
        step = int(values["drivetrain_step"])
        self.assertLessEqual(step, len(rows))
        row = rows[step - 1]
        for name, expected in (("drivetrain_loss", row["loss"]), ("drivetrain_learning_rate", row["lr"]),
                               ("drivetrain_grad_norm", row["grad_norm"]), ("drivetrain_tokens_total", row["tokens"]),
                               ("drivetrain_step_seconds", row["step_ms"] * 1e-3), ("drivetrain_mfu", row["mfu"])):
            self.assertAlmostEqual(values[name] / expected, 1, delta=1e-6, msg=name)
        self.assertGreater(values['drivetrain_process_threads{rank="0"}'], 1)
        self.assertGreater(values['drivetrain_step_class_seconds{class="forward",rank="0"}'], 0)
        self.wait_for(lambda: self.scrape(url)["drivetrain_step"] > step)
        with self.assertRaises(urllib.error.HTTPError):
            urllib.request.urlopen(url.replace("/metrics", "/nothing"), timeout=10)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=30), 75)
        with self.assertRaises(urllib.error.URLError):
            urllib.request.urlopen(url, timeout=10)
        self.assertTrue(list((self.folder / "runs/run/checkpoints").glob("step-*/DONE")))
        last = monitor(self.folder / "runs/run")["sample"][-1]
        self.assertLess(abs(last["time_s"] - time.time()), 30)

    def test_devices_come_from_the_driver_library(self):
        """With a libnvidia-ml.so.1 that answers from a script in the place of the driver's."""
        script = self.folder / "nvml"
        script.write_text("count 2\n0.pci 00000000:17:00.0\n0.uuid GPU-a\n0.name H200\n0.utilization 100\n"
                          "1.pci 00000000:65:00.0\n1.uuid GPU-b\n1.name H200\n1.power 91500\n1.throttle 0x40\n"
                          "1.gen 5\n1.width 8\n1.max_gen 5\n1.max_width 16\n")
        driver = os.environ.get("FAKE_NVML_FOLDER", str(Path(BINARY).parent / "tests/runtime/monitor/whole"))
        self.assertTrue((Path(driver) / "libnvidia-ml.so.1").exists())
        self.more_environment = {"LD_LIBRARY_PATH": driver, "FAKE_NVML_SCRIPT": str(script),
                                 "CUDA_VISIBLE_DEVICES": "GPU-b"}
        process, url = self.start()
        self.wait_for(lambda: any(key.startswith("drivetrain_device_") for key in self.scrape(url)))
        devices = {k: v for k, v in self.scrape(url).items() if k.startswith("drivetrain_device_")}
        label = '{pci="0000:65:00.0",name="H200"}'
        self.assertEqual(devices, {f"drivetrain_device_{key}{label}": value
                                   for key, value in (("power_w", 91.5), ("throttle", 64), ("lost", 0))})
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=30), 75)
        self.assertIn("PCIe trained at gen 5 x8", (self.folder / "log").read_text())
        links = monitor(self.folder / "runs/run")["links"][0]["links"]
        self.assertIn({"kind": "pcie", "name": "0000:65:00.0", "device": "0000:65:00.0", "driver": "nvidia",
                       "gen": 5, "width": 8, "max_gen": 5, "max_width": 16},
                      [{k: v for k, v in link.items() if "gb_per_s" not in k} for link in links])

    def test_a_port_that_is_taken_stops_the_job_before_it_trains(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            where = f"127.0.0.1:{taken.getsockname()[1]}"
            done = self.drivetrain("train", self.config(telemetry__prometheus=where), ranks=2, expect=10)
        self.assertIn(f"telemetry.prometheus: cannot listen on {where}", done.stderr)
        self.assertEqual(self.metrics(), [])


if __name__ == "__main__":
    unittest.main()
