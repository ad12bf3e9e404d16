#pragma once
// What the fuzz targets of all folders share. A target is a file with one function, LLVMFuzzerTestOneInput: it gives
// the input to a parser and lets nothing out but the errors that the parser documents. Everything else (another
// exception, an abort, what a sanitizer sees) is a finding. libFuzzer drives it in the preset `fuzz`, and
// fuzz_replay.cpp runs it over the kept inputs in every build (cmake/fuzzers.cmake).

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace rowtune::fuzz {

/// A file in memory that holds the input, for parsers that take a path.
class InputFile {
 public:
  explicit InputFile(std::string_view content) : descriptor_(memfd_create("input", MFD_CLOEXEC)) {
    if (descriptor_ < 0 || write(descriptor_, content.data(), content.size()) != ssize_t(content.size())) std::abort();
  }
  ~InputFile() { close(descriptor_); }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// A property that every input must have.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

}  // namespace rowtune::fuzz
