#pragma once
// Memory of tensors: an aligned matrix with guards before and after it and in the gaps between its rows.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "kernels/words.hpp"

namespace rowtune::cpu {

class GuardedMatrix {
 public:
  /// rows x cols elements of element_bytes each, row stride ld, the first `off` elements after an address aligned to
  /// 64 bytes (to 2 MB, on huge pages where the system gives them, when the matrix is that large).
  /// Every byte that is not an element is a guard. Throws std::bad_alloc.
  GuardedMatrix(std::int64_t rows, std::int64_t cols, std::int64_t ld, std::int64_t off, int element_bytes);

  void* data() { return first_; }
  const void* data() const { return first_; }
  std::byte* row(std::int64_t r) { return first_ + r * row_bytes_; }
  const std::byte* row(std::int64_t r) const { return first_ + r * row_bytes_; }
  std::int64_t bytes() const { return rows_ * cols_bytes_; }  ///< of the elements

  void fill(int byte);                         ///< the elements
  void copy_from(const GuardedMatrix& other);  ///< the elements; same shape
  /// Empty when all guards stand; else a sentence saying where the first dead one is.
  std::string damage() const;

  static std::int64_t bytes_needed(std::int64_t rows, std::int64_t cols, std::int64_t ld, std::int64_t off,
                                   int element_bytes);

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  std::int64_t rows_, cols_bytes_, row_bytes_, total_;
  std::unique_ptr<std::byte, Free> memory_;
  std::byte* first_ = nullptr;
};

}  // namespace rowtune::cpu
