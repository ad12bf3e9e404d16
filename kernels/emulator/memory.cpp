#include "kernels/emulator/memory.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "kernels/emulator/fault.hpp"

namespace rowtune::emulator {
namespace {

/// Beyond this a tensor is virtual (an emulated launch at a huge offset) and its elements are not followed.
constexpr std::int64_t most_followed = std::int64_t{1} << 24;

std::string place_in(const Region& r, std::int64_t row, std::int64_t first, std::int64_t last) {
  return first == last ? fmt::format("{}[{}, {}]", r.name, row, first)
                       : fmt::format("{}[{}, {}..{}]", r.name, row, first, last);
}

}  // namespace

void Memory::clear() {
  regions_.clear();
  histories_used_ = 0;
  ++run_;
}

void Memory::add(const Region& region) {
  if (region.rows <= 0 || region.cols <= 0) return;
  if (region.stride < region.cols && region.rows > 1)
    throw std::invalid_argument(fmt::format("emulated tensor {}: stride {} is less than its {} columns", region.name,
                                            region.stride, region.cols));
  Entry e;
  e.region = region;
  e.begin = reinterpret_cast<std::uintptr_t>(region.base);
  e.row_bytes = static_cast<std::uint64_t>(region.cols) * region.element_bytes;
  e.stride_bytes = region.rows == 1 ? e.row_bytes : static_cast<std::uint64_t>(region.stride) * region.element_bytes;
  e.end = e.begin + static_cast<std::uint64_t>(region.rows - 1) * e.stride_bytes + e.row_bytes;
  if (region.rows <= most_followed / region.cols) {
    e.followed = true;
    e.first_history = histories_used_;
    histories_used_ += static_cast<std::size_t>(region.rows * region.cols);
    if (histories_.size() < histories_used_) histories_.resize(histories_used_);
  }
  regions_.push_back(e);
}

const Memory::Entry* Memory::find(std::uintptr_t at, std::size_t bytes, std::int64_t& row, std::int64_t& col) const {
  for (const Entry& e : regions_) {
    if (at < e.begin || at + bytes > e.end) continue;
    const std::uint64_t offset = at - e.begin;
    const std::uint64_t r = offset / e.stride_bytes;
    const std::uint64_t within = offset - r * e.stride_bytes;
    if (within + bytes > e.row_bytes) continue;
    row = static_cast<std::int64_t>(r);
    col = static_cast<std::int64_t>(within / static_cast<unsigned>(e.region.element_bytes));
    return &e;
  }
  return nullptr;
}

void Memory::explain(const void* p, std::size_t bytes, bool stores, std::string (*where)()) const {
  const auto at = reinterpret_cast<std::uintptr_t>(p);
  // The nearest region names the fault best.
  const Entry* nearest = nullptr;
  std::uint64_t distance = ~std::uint64_t{0};
  for (const Entry& e : regions_) {
    const std::uint64_t d = at < e.begin ? e.begin - at : at >= e.end ? at - e.end : 0;
    if (d < distance) nearest = &e, distance = d;
  }
  std::string text = "there is no tensor at all";
  if (nearest) {
    const Region& r = nearest->region;
    const auto offset = static_cast<std::int64_t>(at - nearest->begin);
    const auto stride = std::max<std::int64_t>(1, static_cast<std::int64_t>(nearest->stride_bytes));
    std::int64_t row = offset / stride;
    if (offset < 0 || row >= r.rows) row = offset < 0 ? 0 : r.rows - 1;
    const std::int64_t col = (offset - row * stride) / r.element_bytes;
    text = fmt::format("the nearest is {}, {} rows of {} columns (stride {}): {}", r.name, r.rows, r.cols, r.stride,
                       place_in(r, row, col, col + static_cast<std::int64_t>(bytes) / r.element_bytes - 1));
  }
  throw Fault(FaultKind::bounds, fmt::format("{}: {} {} bytes outside the rows of every tensor; {}", where(),
                                             stores ? "stores" : "loads", bytes, text));
}

void Memory::check_alignment(const Region& r, std::int64_t row, std::int64_t col, const void* p, std::size_t bytes,
                             bool stores, std::string (*where)()) {
  const auto at = reinterpret_cast<std::uintptr_t>(p);
  if (at % bytes == 0) return;
  const std::int64_t last = col + static_cast<std::int64_t>(bytes) / r.element_bytes - 1;
  throw Fault(FaultKind::alignment,
              fmt::format("{}: {} {} bytes at {}, an address of {} past a multiple of {}", where(),
                          stores ? "stores" : "loads", bytes, place_in(r, row, col, last), at % bytes, bytes));
}

void Memory::check(const void* p, std::size_t bytes, Kind kind, const Moment& now, std::string (*where)()) {
  const bool stores = kind == Kind::store || kind == Kind::atomic_store;
  const bool atomic = kind == Kind::atomic_load || kind == Kind::atomic_store;
  const auto at = reinterpret_cast<std::uintptr_t>(p);
  std::int64_t row = 0, col = 0;
  const Entry* e = find(at, bytes, row, col);
  if (!e) explain(p, bytes, stores, where);
  const Region& r = e->region;
  const std::int64_t count = static_cast<std::int64_t>(bytes) / r.element_bytes;
  check_alignment(r, row, col, p, bytes, stores, where);
  if (stores && r.use == Use::input)
    throw Fault(FaultKind::bounds,
                fmt::format("{}: stores into the input {}", where(), place_in(r, row, col, col + count - 1)));
  if (!e->followed) return;
  History* h = &histories_[e->first_history + static_cast<std::size_t>(row * r.cols + col)];
  for (std::int64_t i = 0; i < count; ++i, ++h) {
    if (h->life != launch_) *h = {launch_, h->run, {}, {}};
    if (!stores && r.use == Use::output && h->run != run_)
      throw Fault(FaultKind::uninitialised, fmt::format("{}: loads {}, which has not been stored yet", where(),
                                                        place_in(r, row, col + i, col + i)));
    const bool races = (!h->store.before(now) && !(atomic && h->store.atomic)) ||
                       (stores && !h->load.before(now) && !(atomic && h->load.atomic));
    if (races)
      throw Fault(FaultKind::global_race,
                  fmt::format("{}: {} {}, which another thread of the launch {} without an order between them", where(),
                              stores ? "stores" : "loads", place_in(r, row, col + i, col + i),
                              h->store.before(now) ? "loads" : "stores"));
    if (stores) h->run = run_;
    (stores ? h->store : h->load).add(now, atomic);
  }
}

}  // namespace rowtune::emulator
