#pragma once
// Looking a shape up in a dispatch table: which kernel, and how well it fits the question. The same code answers for
// the tuner's JSON tables and for the header that users compile. Plain C++17: no CUDA, no standard library.

#include "rowtune/dispatch/geometry.cuh"

namespace rowtune {
namespace dispatch {

enum class MatchKind : unsigned char {
  exact,         ///< these very rows, cols and alignment were tuned
  near,          ///< inside the tuned range: what the measurements of similar shapes speak for (it may be the base)
  out_of_range,  ///< outside the tuned range, or nothing tuned can serve these pointers: the base
  other_device,  ///< the table is for other devices: the base, and a reason to warn
  not_tuned      ///< nothing for this operation, dtype and these options: the base
};

/// Words for people and logs.
constexpr const char* describe(MatchKind kind) {
  switch (kind) {
    case MatchKind::exact:
      return "exact: this shape was tuned";
    case MatchKind::near:
      return "near: chosen from the measurements of similar shapes";
    case MatchKind::out_of_range:
      return "out of range: the base kernel, not tuned for this shape";
    case MatchKind::other_device:
      return "other device: the table was made on another GPU; the base kernel, not tuned";
    default:
      return "not tuned: the table has nothing for this operation, dtype and options; the base kernel";
  }
}

/// A tuned shape.
struct Entry {
  int cols;
  int rows;
  short alignment;  ///< bytes that every row start is a multiple of: 16, 8, 4 or 2
  short kernel;     ///< index into the kernels; -1: the base
  float time_us;    ///< measured; what the table promises
};

/// Shapes in between, up to and including `cols` and `rows`. Sorted by cols, then rows.
struct Region {
  int cols;
  int rows;
  short kernel;  ///< -1: the base
};

struct Table {
  const Kernel* kernels;  ///< of all tables; this one uses those from first_kernel on
  int first_kernel, kernel_count;
  const Entry* entries;  ///< sorted by cols, rows, alignment
  int entry_count;
  const Region* aligned;  ///< for rows that start and end at 16-byte boundaries
  int aligned_count;
  const Region* ragged;  ///< for all others
  int ragged_count;
  int least_cols, least_rows;  ///< where the tuned range begins; the regions say where it ends
};

/// What is asked: the shape, and what the pointers and strides of all tensors allow.
struct Question {
  long long rows;
  long long cols;
  int element;     ///< bytes of an element
  int alignment;   ///< the largest of 16, 8, 4, 2 bytes that divides every row start of every tensor
  int congruence;  ///< the same for their distances: tensors may be misaligned alike
};

struct Answer {
  MatchKind kind = MatchKind::out_of_range;
  int kernel = -1;               ///< -1: the base
  const Entry* entry = nullptr;  ///< exact only
};

/// Whether the kernel computes these rows: they fit, and its accesses are aligned.
constexpr bool serves(const Kernel& k, const Question& q) {
  const int access = k.vector * q.element;
  if (access > q.congruence || q.rows * k.split > grid_limit) return false;
  const bool rows_aligned = q.alignment >= access;
  if (!k.ragged && (!rows_aligned || q.cols % k.vector != 0)) return false;
  return holds(k, q.cols);
}

// Both answer with an index, -1 for none: instrumented, GCC does not take comparisons of pointers for constant.

/// The first of `count` sorted regions that reaches to these cols and rows.
constexpr int region_of(const Region* regions, int count, const Question& q) {
  int low = 0, high = count;
  while (low < high) {
    const int middle = (low + high) / 2;
    const Region& r = regions[middle];
    if (r.cols < q.cols) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == count) return -1;
  const int cols = regions[low].cols;
  for (; low < count && regions[low].cols == cols; ++low)
    if (q.rows <= regions[low].rows) return low;
  return -1;
}

constexpr int entry_of(const Table& table, const Question& q) {
  int low = 0, high = table.entry_count;
  while (low < high) {
    const int middle = (low + high) / 2;
    const Entry& e = table.entries[middle];
    const bool before = e.cols != q.cols   ? e.cols < q.cols
                        : e.rows != q.rows ? e.rows < q.rows
                                           : e.alignment < q.alignment;
    if (before) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == table.entry_count) return -1;
  const Entry& e = table.entries[low];
  return e.cols == q.cols && e.rows == q.rows && e.alignment == q.alignment ? low : -1;
}

constexpr Answer look_up(const Table& table, const Question& q) {
  Answer answer;
  if (const int found = entry_of(table, q); found >= 0) {
    const Entry& entry = table.entries[found];
    if (entry.kernel < 0 || serves(table.kernels[entry.kernel], q)) {
      answer.kind = MatchKind::exact;
      answer.kernel = entry.kernel;
      answer.entry = &entry;
      return answer;
    }
  }
  if (q.rows < table.least_rows || q.cols < table.least_cols) return answer;
  const bool aligned = q.alignment == 16 && q.cols * q.element % 16 == 0;
  const Region* const regions = aligned ? table.aligned : table.ragged;
  const int found = region_of(regions, aligned ? table.aligned_count : table.ragged_count, q);
  if (found < 0) return answer;
  const int kernel = regions[found].kernel;
  if (kernel >= 0 && !serves(table.kernels[kernel], q)) return answer;
  answer.kind = MatchKind::near;
  answer.kernel = kernel;
  return answer;
}

}  // namespace dispatch
}  // namespace rowtune
