#pragma once
// One row of numbers as the methods see it: a source that gives any stretch of it as exact doubles, and a view in the
// type of the arithmetic. The view keeps one stretch at a time, so that a row of a file larger than the memory costs
// no more than a short one; every method reads forwards, a few times over.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace rowtune::stability {

class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual std::int64_t size() const = 0;
  /// Copies elements first .. first + out.size() - 1. May throw EnvironmentError (the file shrank).
  virtual void read(std::int64_t first, std::span<double> out) const = 0;
};

/// A row in memory; does not own it.
class MemoryRow final : public RowSource {
 public:
  explicit MemoryRow(std::span<const double> values) : values_(values) {}
  std::int64_t size() const override { return static_cast<std::int64_t>(values_.size()); }
  void read(std::int64_t first, std::span<double> out) const override {
    std::copy_n(values_.begin() + first, out.size(), out.begin());
  }

 private:
  std::span<const double> values_;
};

inline constexpr std::int64_t row_stretch = 8192;  ///< elements that a view holds at once

/// A row in the type F of a policy M (see arithmetic.hpp). Elements must be numbers of F. Reads forwards cheaply.
template <class F, class M>
class RowView {
 public:
  explicit RowView(const RowSource& source)
      : source_(source),
        size_(source.size()),
        doubles_(static_cast<std::size_t>(std::min(size_, row_stretch))),
        stretch_(doubles_.size()) {}
  std::int64_t size() const { return size_; }
  F operator[](std::int64_t i) {
    const std::int64_t at = i - first_;
    if (at >= 0 && at < filled_) return stretch_[static_cast<std::size_t>(at)];
    fill(i);
    return stretch_[0];
  }

 private:
  void fill(std::int64_t first) {
    first_ = first;
    filled_ = std::min(row_stretch, size_ - first);
    const std::span<double> part(doubles_.data(), static_cast<std::size_t>(filled_));
    source_.read(first, part);
    for (std::size_t k = 0; k < part.size(); ++k) stretch_[k] = M::exact(part[k]);
  }

  const RowSource& source_;
  std::int64_t size_, first_ = 0, filled_ = 0;
  std::vector<double> doubles_;
  std::vector<F> stretch_;
};

}  // namespace rowtune::stability
