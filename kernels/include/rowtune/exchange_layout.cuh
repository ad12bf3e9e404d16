#pragma once
// Sizes of the workspace through which blocks of one launch exchange partial results (exchange.cuh): for kernels and
// for the host that allocates it.

#include "rowtune/algebra.cuh"

namespace rowtune {

constexpr int exchange_words = 3;   ///< values of the largest state
constexpr int exchange_stages = 2;  ///< merges of one row at most

/// Bytes of a workspace for a launch of this many rows, each shared by `split` blocks.
ROWTUNE_FUNCTION long long exchange_bytes(long long rows, int split) {
  return 64 + exchange_stages * rows * split * exchange_words * 8;
}

}  // namespace rowtune
