#!/usr/bin/env bash
# Builds and runs consumer.cu for every operation and dtype of a table, with nvcc alone.
# usage: run.sh TABLE_FOLDER INCLUDE_FOLDER [operation...]; NVCC, ARCH and DTYPES may be set. Exits 1 if anything is wrong.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
table=${1:?usage: run.sh TABLE_FOLDER INCLUDE_FOLDER [operation...]}
include=${2:?usage: run.sh TABLE_FOLDER INCLUDE_FOLDER [operation...]}
shift 2
operations=("$@")
[ ${#operations[@]} -gt 0 ] || operations=(softmax log_softmax layernorm rmsnorm fused_add_rmsnorm argmax_logsumexp)
read -ra dtypes <<<"${DTYPES:-f32 f16 bf16}"
build=${BUILD:-$(mktemp -d)}
mkdir -p "$build"
compile() {
  "${NVCC:-nvcc}" -std=c++17 -O2 -fmad=false "-arch=${ARCH:-native}" -I "$include" -I "$table" \
    "-DOPERATION=$1" "-DDTYPE=$2" -o "$build/consumer_$1_$2" "$here/consumer.cu"
}
echo "compiling in $build"
jobs=()
for operation in "${operations[@]}"; do
  for dtype in "${dtypes[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
    compile "$operation" "$dtype" &
    jobs+=($!)
  done
done
for job in "${jobs[@]}"; do wait "$job"; done
wrong=0
for operation in "${operations[@]}"; do
  for dtype in "${dtypes[@]}"; do "$build/consumer_${operation}_$dtype" || wrong=1; done
done
[ $wrong = 0 ] && echo "everything is right" || echo "SOMETHING IS WRONG"
exit $wrong
