"""Two hosts on one machine with a link between them that is slowed or cut.

Network namespaces stand for hosts: own address, own hostname, one pair of virtual interfaces in between. mpirun reaches
the second through a launch agent that enters its namespace, so no ssh is needed. Needs root and iproute2.
usage: link_faults.py FAULT_PROBE MPIRUN
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

PROBE, MPIRUN = (str(Path(word).resolve()) if "/" in word else word for word in sys.argv[1:3])
MISSING = "needs root" if os.geteuid() != 0 else None
for tool in ("ip", "tc", "unshare"):
    if MISSING is None and shutil.which(tool) is None:
        MISSING = f"needs {tool} (iproute2, util-linux)"


def sh(command):
    subprocess.run(command, shell=True, check=True, capture_output=True, text=True)


def can_make_hosts():
    name = f"dtl{os.getpid()}x"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode == 0
    if made:
        sh(f"ip netns del {name}")
    return made


if MISSING is None and not can_make_hosts():
    MISSING = "needs the right to make network namespaces"


@unittest.skipIf(MISSING, MISSING)
class LinkFaults(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="drivetrain-lab-"))
        self.hosts = [f"dtl{os.getpid()}{letter}" for letter in "ab"]
        self.network = f"10.213.{os.getpid() % 250}"
        self.addCleanup(self.take_down)
        a, b = self.hosts
        for host in self.hosts:
            sh(f"ip netns add {host}")
        sh(f"ip link add eth0 netns {a} type veth peer name eth0 netns {b}")
        for i, host in enumerate(self.hosts, 1):
            sh(f"ip -n {host} link set lo up")
            sh(f"ip -n {host} addr add {self.network}.{i}/24 dev eth0")
            sh(f"ip -n {host} link set eth0 up")
        agent = self.folder / "agent"
        agent.write_text(
            "#!/bin/sh\n"
            f"case $1 in {self.network}.1) host={a};; *) host={b};; esac\n"
            'shift\nexec ip netns exec $host unshare --uts sh -c "hostname $host; $*"\n'
        )
        agent.chmod(0o755)

    def take_down(self):
        for host in self.hosts:
            pids = subprocess.run(["ip", "netns", "pids", host], capture_output=True, text=True).stdout.split()
            for pid in pids:
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except ProcessLookupError:
                    pass
            subprocess.run(["ip", "netns", "del", host], capture_output=True)
            for segment in Path("/dev/shm").glob(f"vader_segment.{host}.*"):
                segment.unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, *arguments):
        mpirun = [
            MPIRUN, "--mca", "plm_rsh_agent", str(self.folder / "agent"),
            "--host", f"{self.network}.1:2,{self.network}.2:2", "-np", "4", "--bind-to", "none", "--oversubscribe",
            "--mca", "pml", "ob1", "--mca", "btl", "self,vader,tcp",
            "--mca", "btl_tcp_if_include", f"{self.network}.0/24", "--mca", "oob_tcp_if_include", f"{self.network}.0/24",
            PROBE, *arguments,
        ]
        self.output = self.folder / "output"
        env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMP_NUM_THREADS="1")
        with self.output.open("w") as out:
            return subprocess.Popen(
                ["ip", "netns", "exec", self.hosts[0], "unshare", "--uts", "sh", "-c",
                 f"hostname {self.hosts[0]}; exec \"$@\"", "sh", *mpirun],
                stdout=out, stderr=subprocess.STDOUT, env=env,
            )

    def wait_for(self, text, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if text in self.output.read_text():
                return
            time.sleep(0.1)
        self.fail(f"no '{text}' within {seconds} s:\n{self.output.read_text()}")

    def test_a_slowed_link_gives_right_results(self):
        for host in self.hosts:
            sh(f"tc -n {host} qdisc add dev eth0 root tbf rate 100mbit burst 64kb latency 400ms")
        job = self.start("none", "--seconds", "4")
        self.assertEqual(job.wait(timeout=90), 0, self.output.read_text())
        self.assertIn("right sums over hierarchical", self.output.read_text())

    def test_a_cut_link_ends_in_an_error_that_names_the_silent_host(self):
        self.start("none", "--seconds", "60")
        self.wait_for("has begun", 30)
        time.sleep(1)
        sh(f"ip -n {self.hosts[1]} link set eth0 down")
        cut = time.monotonic()
        self.wait_for("did not finish within its deadline of 5000 ms", 60)
        self.assertLess(time.monotonic() - cut, 12)
        text = self.output.read_text()
        self.assertRegex(text, rf"absent: rank [23] \(host {self.hosts[1]}, pid \d+, does not answer")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
