#!/usr/bin/env bash
# Tests on a machine with an H200: gpu_check.sh [--build DIR] [--out DIR]. With --build, takes a build
# that was made elsewhere (libraries that this machine lacks lie beside its binaries); else builds
# the preset `cuda`. Ends with one JSON object, also written to DIR/gpu_check.json.
set -euo pipefail
cd "$(dirname "$0")/.."
build="" out=build/gpu_check
while [[ $# -gt 0 ]]; do
  case $1 in
    --build) build=$2; shift 2 ;;
    --out) out=$2; shift 2 ;;
    *) echo "usage: gpu_check.sh [--build DIR] [--out DIR]" >&2; exit 2 ;;
  esac
done
if [[ -z $build ]]; then
  cmake --preset cuda
  cmake --build build/cuda --target kernels_test cuda_device_test
  build=build/cuda
fi
mkdir -p "$out"
export LD_LIBRARY_PATH="$build:${LD_LIBRARY_PATH:-}"

status=0
for name in kernels_test cuda_device_test; do
  binary=$(find "$build" -name "$name" -type f | head -n 1)
  filter='*'
  [[ $name == kernels_test ]] && filter='*/cuda'
  BRIAR_SHOW_ERRORS=1 "$binary" --gtest_filter="$filter" --gtest_output="json:$out/$name.json" \
    >"$out/$name.log" 2>&1 || status=1
done

python3 - "$out" "$(git rev-parse HEAD 2>/dev/null || echo unknown)" <<'PYTHON'
import datetime, json, pathlib, re, subprocess, sys
out, commit = pathlib.Path(sys.argv[1]), sys.argv[2]


def worst_errors(log):
    """Largest error / tolerance that each test has printed."""
    worst, test = {}, None
    for line in log.read_text(errors="replace").splitlines():
        if run := re.match(r"\[ RUN +\] (\S+)", line):
            test = run.group(1)
        elif error := re.search(r"worst ([\d.]+|nan|inf) of the limit", line):
            worst[test] = max(worst.get(test, 0.0), float(error.group(1)))
    return worst


tests = []
for name in ("kernels_test", "cuda_device_test"):
    path = out / f"{name}.json"
    if not path.exists():  # it crashed
        tests.append({"name": name, "status": "FAILED", "worst": None})
        continue
    worst = worst_errors(out / f"{name}.log")
    for suite in json.loads(path.read_text())["testsuites"]:
        for case in suite["testsuite"]:
            failed = bool(case.get("failures"))
            state = "FAILED" if failed else "SKIPPED" if case["result"] == "SKIPPED" else "PASSED"
            full_name = f"{suite['name']}.{case['name']}"
            tests.append({"name": full_name, "status": state, "worst": worst.get(full_name)})
query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
gpu, driver = subprocess.check_output(query, text=True).splitlines()[0].split(", ")
version = re.search(r"CUDA Version: ([\d.]+)", subprocess.check_output(["nvidia-smi"], text=True))
summary = {"commit": commit, "gpu": gpu, "driver": driver,
           "cuda": version.group(1) if version else None,
           "date": datetime.date.today().isoformat(), "tests": tests, "bench": []}
(out / "gpu_check.json").write_text(json.dumps(summary) + "\n")
print(json.dumps(summary, indent=1))
PYTHON
exit $status
