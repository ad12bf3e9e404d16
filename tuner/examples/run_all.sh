#!/usr/bin/env bash
# Both examples on a machine with a GPU, nvcc and PyTorch: right answers, and times beside the table's and PyTorch's.
# usage: run_all.sh TABLE_FOLDER INCLUDE_FOLDER OUT_FOLDER; DTYPES, OPERATIONS, NVCC and ARCH may be set.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
usage="usage: run_all.sh TABLE_FOLDER INCLUDE_FOLDER OUT_FOLDER"
table=${1:?$usage} include=${2:?$usage} out=${3:?$usage}
mkdir -p "$out"
wrong=0
read -ra operations <<<"${OPERATIONS:-}"
BUILD=$out/consumer "$here/consumer/run.sh" "$table" "$include" ${operations[@]+"${operations[@]}"} 2>&1 |
  tee "$out/consumer.txt" || wrong=1
OPERATIONS=${OPERATIONS:-softmax layernorm rmsnorm} "$here/pytorch/build.sh" "$table" "$include" "$out/pytorch"
python3 "$here/pytorch/check.py" "$out/pytorch/librowtune_table.so" --dtypes "$(tr ' ' , <<<"${DTYPES:-bf16 f16 f32}")" 2>&1 |
  tee "$out/pytorch.txt" || wrong=1
exit $wrong
