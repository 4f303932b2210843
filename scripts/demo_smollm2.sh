#!/usr/bin/env bash
# A conversation with a real pretrained model: SmolLM2-135M-Instruct, its weights in 4 bits (Q4_1).
set -euo pipefail
briar=$1
model=$("$(dirname "$0")/fetch_smollm2.sh")

"$briar" chat --model "$model" --temperature 0 --max-tokens 120 --echo <<'TALK'
What is the capital of France?
And what is it famous for? Answer in one sentence.
/system You are a pirate. Answer every question the way a pirate would, and keep it short.
How do I find north?
TALK
