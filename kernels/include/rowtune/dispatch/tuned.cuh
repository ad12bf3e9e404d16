#pragma once
// What a generated header says: for each operation and dtype the kernels it instantiates and, for each device, the
// tables that choose among them. Also compiled by a host compiler alone, for who wants the look-up without launches.

#include "rowtune/dispatch/lookup.cuh"

namespace rowtune {

struct f32;
struct f16;
struct bf16;

namespace dispatch {

/// Of the data that a generated header holds: raised when Kernel, Entry, Region or Table change.
constexpr int data_version = 1;

enum class Operation : unsigned char { softmax, log_softmax, layernorm, rmsnorm, fused_add_rmsnorm, argmax_logsumexp };
constexpr bool is_norm(Operation o) {
  return o == Operation::layernorm || o == Operation::rmsnorm || o == Operation::fused_add_rmsnorm;
}
/// Whether an operation gives rows x 2 words of 32 bits, not a tensor like its input.
constexpr bool gives_row_results(Operation o) { return o == Operation::argmax_logsumexp; }

/// The GPU that a table was measured on. A part of it (a MIG slice) has other limits and is another device.
struct Device {
  const char* model;
  int architecture;  ///< 90 for sm_90
  int units;         ///< multiprocessors
  int threads_per_block, threads_per_unit;
  int registers_per_unit;
  int shared_per_block, shared_per_unit;
  long long l2_bytes;
};

constexpr bool same_text(const char* a, const char* b) {
  while (*a != 0 && *a == *b) ++a, ++b;
  return *a == *b;
}
constexpr bool same_device(const Device& a, const Device& b) {
  return a.architecture == b.architecture && a.units == b.units && a.threads_per_block == b.threads_per_block &&
         a.threads_per_unit == b.threads_per_unit && a.registers_per_unit == b.registers_per_unit &&
         a.shared_per_block == b.shared_per_block && a.shared_per_unit == b.shared_per_unit &&
         a.l2_bytes == b.l2_bytes && same_text(a.model, b.model);
}

/// Specialised by a generated header: see below for what it has. This one: nothing was tuned.
template <Operation O, class T>
struct Tuned {
  static constexpr bool weight = false;  ///< the options that were tuned
  static constexpr bool bias = false;
  static constexpr int kernel_count = 0;
  static constexpr const Kernel* kernels = nullptr;       ///< an array of kernel_count
  static constexpr const char* const* configs = nullptr;  ///< their names
  static constexpr int table_count = 0;
  static constexpr const Device* devices = nullptr;  ///< arrays of table_count
  static constexpr const Table* tables = nullptr;
};

/// The table of this device for this operation and dtype; -1 when there is none.
template <Operation O, class T>
constexpr int table_of(const Device& device) {
  for (int i = 0; i < Tuned<O, T>::table_count; ++i)
    if (same_device(Tuned<O, T>::devices[i], device)) return i;
  return -1;
}

/// Looks up in the table of index `table` (see table_of). `weight` and `bias`: what the caller has.
template <Operation O, class T>
constexpr Answer look_up(int table, const Question& question, bool weight = Tuned<O, T>::weight,
                         bool bias = Tuned<O, T>::bias) {
  Answer answer;
  if (Tuned<O, T>::table_count == 0 || weight != Tuned<O, T>::weight || bias != Tuned<O, T>::bias) {
    answer.kind = MatchKind::not_tuned;
    return answer;
  }
  if (table < 0) {
    answer.kind = MatchKind::other_device;
    return answer;
  }
  return look_up(Tuned<O, T>::tables[table], question);
}

}  // namespace dispatch
}  // namespace rowtune
