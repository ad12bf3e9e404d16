#include "kernels/emulator/shared.hpp"

#include <fmt/format.h>

#include <cstring>

#include "kernels/emulator/fault.hpp"

namespace rowtune::emulator {
namespace {

constexpr std::size_t gap = 64;  ///< between arrays, so that an index past one does not land in the next

std::size_t round_up(std::size_t n) { return (n + 15) / 16 * 16; }

}  // namespace

// Addresses are handed out, so the bytes never move; words (histories) grow with use.
SharedMemory::SharedMemory() : memory_(capacity + 16 * gap) {}

void SharedMemory::begin(std::size_t dynamic_bytes) {
  ++life_;
  arrays_.assign(1, {nullptr, 0, dynamic_bytes});
  used_ = dynamic_bytes;
  const std::size_t end = round_up(dynamic_bytes) + gap;
  if (words_.size() < end / 4) words_.resize(end / 4);
  std::memset(memory_.data(), 0xff, round_up(dynamic_bytes));  // NaNs
}

std::byte* SharedMemory::array(const void* key, std::size_t bytes, std::string (*where)()) {
  for (const Array& a : arrays_)
    if (a.key == key) return memory_.data() + a.begin;
  const std::size_t begin = round_up(arrays_.back().begin + arrays_.back().bytes) + gap;
  used_ += bytes;
  if (used_ > capacity || begin + bytes > memory_.size())
    throw Fault(FaultKind::shared_bounds, fmt::format("{}: the block asks for {} bytes of shared memory, more than {}",
                                                      where(), used_, capacity));
  arrays_.push_back({key, begin, bytes});
  const std::size_t end = begin + round_up(bytes) + gap;
  if (words_.size() < end / 4) words_.resize(end / 4);
  std::memset(memory_.data() + begin, 0xff, bytes);
  return memory_.data() + begin;
}

const SharedMemory::Array* SharedMemory::array_at(const void* p, std::size_t bytes) const {
  const auto* at = static_cast<const std::byte*>(p);
  for (const Array& a : arrays_) {
    const std::byte* begin = memory_.data() + a.begin;
    if (at >= begin && at + bytes <= begin + a.bytes) return &a;
  }
  return nullptr;
}

const SharedMemory::Array& SharedMemory::need_array(const void* p, std::size_t bytes, std::string (*where)()) const {
  const Array* array = array_at(p, bytes);
  if (array) return *array;
  std::string near;
  for (const Array& a : arrays_) {
    const auto offset = static_cast<const std::byte*>(p) - (memory_.data() + a.begin);
    if (offset >= -static_cast<std::ptrdiff_t>(gap) && offset < static_cast<std::ptrdiff_t>(a.bytes + gap))
      near = fmt::format("; byte {} of an array of {}", offset, a.bytes);
  }
  throw Fault(FaultKind::shared_bounds,
              fmt::format("{}: touches {} bytes outside the shared arrays of its block{}", where(), bytes, near));
}

std::string SharedMemory::place(const Array& array, const void* p) const {
  return fmt::format("word {} of a {} shared array of {} bytes",
                     (static_cast<const std::byte*>(p) - (memory_.data() + array.begin)) / 4,
                     array.key ? "static" : "dynamic", array.bytes);
}

void SharedMemory::check(const void* p, std::size_t bytes, Kind kind, const Moment& now, std::string (*where)()) {
  const Array& array = need_array(p, bytes, where);
  if (reinterpret_cast<std::uintptr_t>(p) % bytes != 0)
    throw Fault(FaultKind::alignment,
                fmt::format("{}: a shared access of {} bytes is not aligned: {}", where(), bytes, place(array, p)));
  const std::size_t offset = static_cast<std::size_t>(static_cast<const std::byte*>(p) - memory_.data());
  const bool stores = kind != Kind::load;
  for (std::size_t i = offset / 4; i < (offset + bytes + 3) / 4; ++i) {
    Word& w = words_[i];
    if (w.life != life_) static_cast<History&>(w) = {life_, 0, {}, {}};
    const auto* word = memory_.data() + 4 * i;
    if (w.pending == life_) {
      if (kind != Kind::async_store)
        throw Fault(FaultKind::async_copy, fmt::format("{}: {} {} while an asynchronous copy into it is under way",
                                                       where(), stores ? "stores" : "loads", place(array, word)));
      w.pending = 0;
    }
    if (!stores && w.written != life_)
      throw Fault(FaultKind::uninitialised,
                  fmt::format("{}: loads {}, which the block has not stored", where(), place(array, word)));
    if (!w.store.before(now) || (stores && !w.load.before(now)))
      throw Fault(FaultKind::shared_race, fmt::format("{}: {} {}, which another thread {} with no barrier between",
                                                      where(), stores ? "stores" : "loads", place(array, word),
                                                      w.store.before(now) ? "loads" : "stores"));
    if (stores) w.written = life_;
    (stores ? w.store : w.load).add(now, false);
  }
}

void SharedMemory::begin_async(const void* p, std::size_t bytes, const Moment& now, std::string (*where)()) {
  check(p, bytes, Kind::store, now, where);
  const std::size_t offset = static_cast<std::size_t>(static_cast<const std::byte*>(p) - memory_.data());
  for (std::size_t i = offset / 4; i < (offset + bytes) / 4; ++i) words_[i].pending = life_;
}

std::byte* SharedMemory::same_place_in(SharedMemory& peer, const void* p, std::string (*where)()) const {
  const Array& array = need_array(p, 4, where);
  const std::size_t offset =
      static_cast<std::size_t>(static_cast<const std::byte*>(p) - (memory_.data() + array.begin));
  if (!array.key) return peer.dynamic() + offset;
  return peer.array(array.key, array.bytes, where) + offset;
}

}  // namespace rowtune::emulator
