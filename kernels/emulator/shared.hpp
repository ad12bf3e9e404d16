#pragma once
// The shared memory of one emulated block: static arrays by tag, and the dynamic array. Every word has a history.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/emulator/access.hpp"

namespace rowtune::emulator {

class SharedMemory {
 public:
  static constexpr std::size_t capacity = 228 * 1024;  ///< of a multiprocessor of sm_90

  SharedMemory();
  /// A new block begins: everything is unwritten.
  void begin(std::size_t dynamic_bytes);
  /// The array of this key (a template instantiation's); made at the first call.
  std::byte* array(const void* key, std::size_t bytes, std::string (*where)());
  std::byte* dynamic() { return memory_.data(); }
  std::size_t bytes_used() const { return used_; }

  enum class Kind { load, store, remote_store, async_store };
  void check(const void* p, std::size_t bytes, Kind kind, const Moment& now, std::string (*where)());
  /// An asynchronous copy into these bytes has begun.
  void begin_async(const void* p, std::size_t bytes, const Moment& now, std::string (*where)());
  /// In `peer`, the address that `p` is here.
  std::byte* same_place_in(SharedMemory& peer, const void* p, std::string (*where)()) const;

 private:
  struct Array {
    const void* key = nullptr;  ///< null: the dynamic array
    std::size_t begin = 0;
    std::size_t bytes = 0;
  };
  struct Word : History {
    std::uint32_t written = 0;  ///< life in which it was written
    std::uint32_t pending = 0;  ///< life in which an asynchronous copy into it began and has not landed
  };
  const Array* array_at(const void* p, std::size_t bytes) const;
  const Array& need_array(const void* p, std::size_t bytes, std::string (*where)()) const;
  std::string place(const Array& array, const void* p) const;

  std::vector<std::byte> memory_;
  std::vector<Word> words_;
  std::vector<Array> arrays_;
  std::size_t used_ = 0;
  std::uint32_t life_ = 0;
};

}  // namespace rowtune::emulator
