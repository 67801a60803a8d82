#!/usr/bin/env python3
"""Checks the rule of the house: kernels < runtime < models < launcher, and one door for each third-party header.

usage: check_layers.py [ROOT]   exits 1 and lists every include that breaks a rule
"""
import re
import sys
from pathlib import Path

STOREYS = ["kernels", "runtime", "models", "launcher"]

# Header pattern -> the places (path prefixes) that may include it; tests/ and tools/ may include anything.
DOORS = {
    r"(cuda|cublas|cudnn)": ["kernels/cuda/"],
    r"nccl\.h": ["runtime/comm/"],
    r"mpi\.h": ["runtime/comm/mpi_"],
    r"(oneapi/dnnl/|dnnl)": ["kernels/cpu/"],
    r"hwy/": ["kernels/cpu/"],
    r"boost/program_options": ["launcher/"],
    r"yaml-cpp/": ["runtime/config/yaml_tree"],
    r"spdlog/": ["runtime/log."],
    r"prometheus/": ["runtime/telemetry/"],
    r"(gtest|gmock|benchmark)/": [],
    r"nlohmann/": ["runtime/data/", "runtime/checkpoint/", "runtime/metrics", "runtime/monitor/", "models/", "launcher/"],
    r"pcre2\.h": ["runtime/data/"],
    r"utf8proc\.h": ["runtime/data/"],
    r"xxhash\.h": ["runtime/data/", "runtime/checkpoint/", "runtime/replica_check"],
}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
MAX_LINES = 400


def faults_of(path: Path, root: Path) -> list[str]:
    name = path.relative_to(root).as_posix()
    storey = name.split("/")[0]
    lines = path.read_text(encoding="utf-8").splitlines()
    faults = []
    if len(lines) > MAX_LINES:
        faults.append(f"{name}: {len(lines)} lines; the limit is {MAX_LINES}")
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if not match or storey not in STOREYS:
            continue
        own, foreign = match.groups()
        if own:
            target = own.split("/")[0]
            if target in ("tests", "tools"):
                faults.append(f"{name}:{number}: the product includes {own}")
            if target in STOREYS and STOREYS.index(target) > STOREYS.index(storey):
                faults.append(f"{name}:{number}: {storey} includes {own}, a storey above it")
            if storey == "models" and target == "kernels" and own.startswith(("kernels/cpu", "kernels/cuda")):
                faults.append(f"{name}:{number}: models include a backend: {own}")
        else:
            for pattern, doors in DOORS.items():
                if re.match(pattern, foreign) and not any(name.startswith(d) for d in doors):
                    faults.append(f"{name}:{number}: <{foreign}> may be included only in {', '.join(doors) or 'tests'}")
    return faults


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    files = [f for s in [*STOREYS, "tests", "tools"] for f in sorted((root / s).rglob("*")) if f.suffix in (".h", ".cpp", ".cu", ".cuh")]
    faults = [fault for f in files for fault in faults_of(f, root)]
    print("\n".join(faults) if faults else f"{len(files)} files keep the rules")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
