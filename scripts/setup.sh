#!/usr/bin/env bash
# Installs what Briar builds and tests with, by package name. Safe to run again: does nothing when all
# is there. docs/dependencies.md says why each package is needed and under which licence it comes.
set -euo pipefail

packages=(
  build-essential cmake ninja-build ccache pkg-config xz-utils python3
  libfmt-dev libspdlog-dev libcli11-dev libgtest-dev libbenchmark-dev libdnnl-dev libxxhash-dev liblzma-dev libssl-dev prometheus-cpp-dev
)

# Boost 1.81 or newer: Debian 12 has it beside its default (1.74), Ubuntu 24.04 by default (1.83).
. /etc/os-release
case "${ID}-${VERSION_ID:-}" in
  debian-12) packages+=(libboost1.81-dev libboost-json1.81-dev) ;;
  ubuntu-24.04) packages+=(libboost-dev libboost-json-dev) ;;
  *)
    echo "setup.sh: ${PRETTY_NAME:-this system} is not tested; taking its default Boost" >&2
    packages+=(libboost-dev libboost-json-dev)
    ;;
esac

# The browser test, in continuous integration; Ubuntu has no such packages, only a snap.
if [ -n "${CI:-}" ] && [ "${ID}" = debian ]; then packages+=(chromium chromium-driver); fi
# scripts/fetch_xgrammar.sh needs pip; a Python from elsewhere has its own.
python3 -m pip --version >/dev/null 2>&1 || packages+=(python3-pip)
# And the environment of the clients' tests needs this.
python3 -c 'import ensurepip' 2>/dev/null || packages+=(python3-venv)

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

echo "installing: ${missing[*]}" >&2
sudo=()
if [ "$(id -u)" -ne 0 ]; then sudo=(sudo); fi
"${sudo[@]}" apt-get update -qq
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
