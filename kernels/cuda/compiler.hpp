#pragma once
// NVRTC, loaded when it is first needed, behind a cache on disk.
//
// A cache entry is found by a hash of source, headers, flags, architecture and compiler version, and holds all of that
// text, which is compared: a collision, a cut-off file or a damaged one is a miss. Entries are written under a
// temporary name and renamed, so that a kill leaves no half entry.

#include <filesystem>
#include <memory>
#include <string>

#include "kernels/errors.hpp"

namespace rowtune::cuda {

struct Binary {
  std::string cubin;
  std::string hash;  ///< of the cubin
  std::string log;   ///< what the compiler and ptxas said; empty when it came from the cache
  bool cached = false;
};

class Compiler {
 public:
  /// Throws EnvironmentError saying which library was looked for and what to install. Thread-safe afterwards.
  explicit Compiler(std::filesystem::path cache_directory = default_cache());
  ~Compiler();

  std::string version() const;  ///< `NVRTC 13.0`
  /// A translation unit for sm_<architecture>. Throws ConfigFailure(compile_error) with the compiler's first error.
  Binary compile(const std::string& source, int architecture, bool verbose_ptxas = false) const;

  /// $ROWTUNE_CACHE, else $XDG_CACHE_HOME/rowtune, else ~/.cache/rowtune; empty (no cache) when none can be had.
  static std::filesystem::path default_cache();

 private:
  struct Library;
  std::unique_ptr<Library> library_;
  std::filesystem::path cache_;
  std::string identity_;  ///< version and all embedded headers
};

}  // namespace rowtune::cuda
