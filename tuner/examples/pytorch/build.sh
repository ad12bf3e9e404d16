#!/usr/bin/env bash
# Builds librowtune_table.so from a dispatch table, with nvcc alone.
# usage: build.sh TABLE_FOLDER INCLUDE_FOLDER OUT_FOLDER; NVCC, ARCH, OPERATIONS and DTYPES may be set.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
usage="usage: build.sh TABLE_FOLDER INCLUDE_FOLDER OUT_FOLDER"
table=${1:?$usage} include=${2:?$usage} out=${3:?$usage}
read -ra operations <<<"${OPERATIONS:-softmax log_softmax layernorm rmsnorm fused_add_rmsnorm}"
read -ra dtypes <<<"${DTYPES:-f32 f16 bf16}"
mkdir -p "$out"
objects=() jobs=()
for operation in "${operations[@]}"; do
  for dtype in "${dtypes[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
    object=$out/${operation}_$dtype.o
    "${NVCC:-nvcc}" -std=c++17 -O2 -fmad=false "-arch=${ARCH:-native}" -Xcompiler -fPIC -I "$include" -I "$table" \
      "-DOPERATION=$operation" "-DDTYPE=$dtype" -c -o "$object" "$here/library.cu" &
    objects+=("$object") jobs+=($!)
  done
done
for job in "${jobs[@]}"; do wait "$job"; done
"${NVCC:-nvcc}" -shared "-arch=${ARCH:-native}" -o "$out/librowtune_table.so" "${objects[@]}"
echo "$out/librowtune_table.so"
