#!/usr/bin/env python3
"""Installs drivetrain to a temporary prefix and uses it as a stranger would: tools/comm_example is copied away from
the sources, built with find_package(drivetrain) and run; each installed header must compile on its own, without MPI
and CUDA.

usage: outside_project.py SOURCE_FOLDER BUILD_FOLDER MPIEXEC CXX_COMPILER
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FOREIGN = re.compile(r"/(mpi\w*|cuda\w*|nccl\w*|omp|dnnl\w*|hwy/\w+)\.h")
MPI_FLAGS = ["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]


def run(*command: object) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=100)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def expect(what: str, got: str, wanted: str) -> None:
    if not re.search(wanted, got):
        sys.exit(f"{what} gave\n{got}\ninstead of {wanted}")


def check_header(compiler: str, include: Path, header: Path) -> None:
    source = f'#include <drivetrain/{header.relative_to(include / "drivetrain")}>\n'
    flags = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-H", f"-I{include}", f"-I{include}/drivetrain"]
    done = subprocess.run([compiler, *flags, "-x", "c++", "-"], input=source, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{header} does not compile on its own:\n{done.stderr}")
    if foreign := FOREIGN.search(done.stderr):
        sys.exit(f"{header} includes {foreign.group(0)}")


def main() -> None:
    source, build, mpiexec, compiler = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        prefix, example = Path(folder, "prefix"), Path(folder, "example")
        run("cmake", "--install", build, "--prefix", prefix)
        expect("the installed program", run(prefix / "bin/drivetrain", "--version"), r"drivetrain \d+\.\d+\.\d+")

        headers = sorted((prefix / "include").rglob("*.h"))
        names = {h.name for h in headers}
        if missing := {"communicator.h", "world.h", "thread_comm.h", "tensor.h", "buffer.h", "error.h"} - names:
            sys.exit(f"not installed: {missing}")
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(lambda h: check_header(compiler, prefix / "include", h), headers))

        shutil.copytree(Path(source, "tools/comm_example"), example)
        run("cmake", "-S", example, "-B", example / "build", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_CXX_COMPILER={compiler}")
        run("cmake", "--build", example / "build")
        program = example / "build/comm_example"
        mpirun = [mpiexec, *MPI_FLAGS, "-np"]
        reached = "weights at the mean of their targets: yes"
        expect("one rank", run(program), f"^1 ranks over self: {reached}; 1 even ranks$")
        expect("three threads", run(program, "--threads", 3), f"^3 ranks over threads: {reached}; 2 even ranks$")
        expect("two processes", run(*mpirun, 2, program), f"^2 ranks over shm: {reached}; 1 even ranks$")
        failed = subprocess.run([*map(str, mpirun), "2", str(program), "--fail", "1"], capture_output=True, text=True, timeout=60)
        expect("a failing rank", failed.stderr, "comm_example: this rank was told to fail")
        if failed.returncode == 0:
            sys.exit("a failing rank did not fail the job")


if __name__ == "__main__":
    main()
