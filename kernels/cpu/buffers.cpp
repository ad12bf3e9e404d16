#include "kernels/cpu/buffers.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace rowtune::cpu {
namespace {

constexpr std::int64_t guard_bytes = 4096;
constexpr std::int64_t huge_page = 2 << 20;
constexpr std::byte guard{0xa5};

bool intact(const std::byte* begin, const std::byte* end) {
  return std::all_of(begin, end, [](std::byte b) { return b == guard; });
}

std::int64_t alignment_for(std::int64_t bytes) { return bytes >= huge_page ? huge_page : guard_bytes; }

}  // namespace

void GuardedMatrix::Free::operator()(std::byte* p) const { std::free(p); }

std::int64_t GuardedMatrix::bytes_needed(std::int64_t rows, std::int64_t cols, std::int64_t ld, std::int64_t off,
                                         int element_bytes) {
  const std::int64_t elements = rows == 0 ? 0 : (rows - 1) * ld + cols;
  const std::int64_t bytes = guard_bytes + (off + elements) * element_bytes + guard_bytes;
  const std::int64_t alignment = alignment_for(bytes);
  return (bytes + alignment - 1) / alignment * alignment + (alignment > guard_bytes ? alignment : 0);
}

GuardedMatrix::GuardedMatrix(std::int64_t rows, std::int64_t cols, std::int64_t ld, std::int64_t off, int element_bytes)
    : rows_(rows),
      cols_bytes_(cols * element_bytes),
      row_bytes_(ld * element_bytes),
      total_(bytes_needed(rows, cols, ld, off, element_bytes)) {
  const auto alignment = static_cast<std::size_t>(alignment_for(total_));
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, static_cast<std::size_t>(total_))));
  if (!memory_) throw std::bad_alloc();
  if (alignment == huge_page) madvise(memory_.get(), static_cast<std::size_t>(total_), MADV_HUGEPAGE);
  std::memset(memory_.get(), static_cast<int>(guard), static_cast<std::size_t>(total_));
  first_ = memory_.get() + guard_bytes + off * element_bytes;
}

void GuardedMatrix::fill(int byte) {
  for (std::int64_t r = 0; r < rows_; ++r) std::memset(row(r), byte, static_cast<std::size_t>(cols_bytes_));
}

void GuardedMatrix::copy_from(const GuardedMatrix& other) {
  if (row_bytes_ == cols_bytes_) {
    std::memcpy(first_, other.first_, static_cast<std::size_t>(bytes()));
    return;
  }
  for (std::int64_t r = 0; r < rows_; ++r) std::memcpy(row(r), other.row(r), static_cast<std::size_t>(cols_bytes_));
}

std::string GuardedMatrix::damage() const {
  const std::byte* const start = memory_.get();
  if (!intact(start, first_)) return "something was written before the first row";
  for (std::int64_t r = 0; r + 1 < rows_; ++r)
    if (!intact(row(r) + cols_bytes_, row(r + 1)))
      return fmt::format("something was written in the gap after row {}", r);
  const std::byte* const end = rows_ == 0 ? first_ : row(rows_ - 1) + cols_bytes_;
  // Beyond the guard lies only what alignment asked for.
  const std::byte* const limit = std::min(start + total_, end + guard_bytes);
  return intact(end, limit) ? "" : "something was written after the last row";
}

}  // namespace rowtune::cpu
