#!/usr/bin/env bash
# fetch_xgrammar.sh DIR: leaves XGrammar's sources, patched, in DIR/xgrammar-VERSION. The archive comes from the
# Python package index by name, must have the checksum below, and stays in the user's cache, so that a
# second build needs no network.
set -euo pipefail

version=0.2.9
sha256=87b466bca2475e29bb0323abc62c6c33cbcbcff47e5fb800a3e2099ac9620b90
name="xgrammar-$version"
patch="$(cd "$(dirname "$0")/.." && pwd)/cmake/xgrammar-budget.patch"
archive="${XDG_CACHE_HOME:-$HOME/.cache}/briar/$name.tar.gz"

stamp=".complete-$(cat "$0" "$patch" | sha256sum | cut -c1-16)"
[ -f "$1/$name/$stamp" ] && exit 0
mkdir -p "$1"
work=$(mktemp -d "$1/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT

is_good() { echo "$sha256  $1" | sha256sum --check --status 2>/dev/null; }
if ! is_good "$archive"; then
  echo "xgrammar==$version --hash=sha256:$sha256" >"$work/requirements.txt"
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --no-binary xgrammar --require-hashes \
    --requirement "$work/requirements.txt" --dest "$work" >&2
  is_good "$work/$name.tar.gz" || { echo "fetch_xgrammar.sh: $name.tar.gz has another checksum than $sha256" >&2; exit 1; }
  mkdir -p "$(dirname "$archive")"
  # Two builds may do this at once: each puts its own copy in place in one step.
  cp "$work/$name.tar.gz" "$archive.$$"
  mv "$archive.$$" "$archive"
fi
tar -xzf "$archive" -C "$work"
patch --quiet --strip=1 --directory="$work/$name" <"$patch"
touch "$work/$name/$stamp"
rm -rf "${1:?}/$name"
mv "$work/$name" "$1/$name"
