#!/usr/bin/env bash
# fuzz.sh SECONDS [TARGET...]: builds the fuzz targets (gguf, safetensors, tokenizer, harmony) with clang and
# runs each for SECONDS. Inputs found stay in build/fuzz/corpus; one that fails is kept in build/fuzz/failures
# and ends the script with 1. Exit code 77: this machine has no clang with libFuzzer.
set -euo pipefail
seconds=${1:?usage: fuzz.sh SECONDS [TARGET...]}
shift
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(gguf safetensors tokenizer harmony)
cd "$(dirname "$0")/.."
build=build/fuzz

if ! command -v clang++-14 >/dev/null ||
   [ ! -e "$(clang++-14 -print-resource-dir)/lib/linux/libclang_rt.fuzzer-x86_64.a" ]; then
  echo "fuzz.sh: needs clang-14 and libclang-rt-14-dev (scripts/setup.sh installs them); skipped" >&2
  exit 77
fi

mkdir -p $build/failures
(
  flock 9 # tests that run side by side build once
  cmake --preset fuzz --log-level=WARNING
  cmake --build --preset fuzz --target fuzz_targets
  [ -d $build/seeds ] || $build/fuzz/make_seeds $build/seeds
) 9>$build/.lock >&2

for target in "${targets[@]}"; do
  corpus=$build/corpus/$target
  mkdir -p "$corpus"
  log=$build/$target.log
  if ! "$build/fuzz/${target}_fuzz" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=4096 \
      -artifact_prefix="$build/failures/$target-" "$corpus" "$build/seeds/$target" >"$log" 2>&1; then
    tail -40 "$log" >&2
    echo "fuzz.sh: $target failed; its input is in $build/failures" >&2
    exit 1
  fi
  echo "$target: $(grep -E '^Done' "$log"), $(grep -oE 'cov: [0-9]+' "$log" | tail -1)"
done
