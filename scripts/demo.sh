#!/usr/bin/env bash
# Two answers from the bundled model: a fact and a story.
set -euo pipefail
briar=$1
model=$(dirname "$0")/../build/assets/models/tiny-harmony

ask() {
  printf '\n> %s\n\n' "$1"
  "$briar" generate --model "$model" --prompt "$1" --temperature 0 "${@:2}"
}

ask 'What is the capital of France?'
ask 'Tell me a story about a fox.' --quiet
