#pragma once
// Global memory as the kernels may see it: tensors with rows, columns and a stride. Every access is checked: it lies in
// one row of one tensor, is aligned, is allowed (inputs are not stored to, outputs are not read before they are
// stored), and no other thread of the launch touches the element without order.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/emulator/access.hpp"

namespace rowtune::emulator {

enum class Use { input, output, input_output };

struct Region {
  std::string name;
  std::byte* base = nullptr;  ///< element (0, 0)
  std::int64_t rows = 1;
  std::int64_t cols = 0;
  std::int64_t stride = 0;  ///< elements between rows
  int element_bytes = 4;
  Use use = Use::input;
};

class Memory {
 public:
  void clear();
  /// Regions share no elements (an in-place tensor is one region); their ranges may interleave.
  void add(const Region& region);
  void begin_launch() { ++launch_; }

  enum class Kind { load, store, atomic_load, atomic_store };
  /// Throws Fault; `where` (kernel, block, thread) is asked for only then.
  void check(const void* p, std::size_t bytes, Kind kind, const Moment& now, std::string (*where)());

 private:
  struct Entry {
    Region region;
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    std::uint64_t stride_bytes = 0;
    std::uint64_t row_bytes = 0;
    std::size_t first_history = 0;  ///< one for each element
    bool followed = false;          ///< false: too many elements for histories
  };
  const Entry* find(std::uintptr_t at, std::size_t bytes, std::int64_t& row, std::int64_t& col) const;
  [[noreturn]] void explain(const void* p, std::size_t bytes, bool stores, std::string (*where)()) const;
  static void check_alignment(const Region& r, std::int64_t row, std::int64_t col, const void* p, std::size_t bytes,
                              bool stores, std::string (*where)());

  std::vector<Entry> regions_;
  std::vector<History> histories_;  ///< reused from launch to launch: `life` tells which entries count
  std::size_t histories_used_ = 0;
  std::uint32_t launch_ = 0;
  std::uint32_t run_ = 1;  ///< since clear(): outputs of one launch may be loaded by the next
};

}  // namespace rowtune::emulator
