#include "stability/data_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "kernels/errors.hpp"

namespace rowtune::stability {
namespace detail {

ReadableFile::ReadableFile(const std::string& path)
    : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), path_(path) {
  if (descriptor_ < 0)
    throw EnvironmentError(
        fmt::format("cannot open '{}': {}; give the path of a .npy or text file", path, std::strerror(errno)));
  struct stat facts;
  if (::fstat(descriptor_, &facts) != 0 || S_ISDIR(facts.st_mode)) {
    ::close(descriptor_);
    throw EnvironmentError(fmt::format("'{}' is not a file; give the path of a .npy or text file", path));
  }
}

ReadableFile::~ReadableFile() { ::close(descriptor_); }

std::int64_t ReadableFile::size() const {
  struct stat facts;
  if (::fstat(descriptor_, &facts) != 0)
    throw EnvironmentError(fmt::format("cannot tell the size of '{}': {}", path_, std::strerror(errno)));
  return facts.st_size;
}

std::int64_t ReadableFile::read_some(void* to, std::int64_t bytes, std::int64_t offset) const {
  std::int64_t done = 0;
  while (done < bytes) {
    const ssize_t got =
        ::pread(descriptor_, static_cast<char*>(to) + done, static_cast<std::size_t>(bytes - done), offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw EnvironmentError(fmt::format("reading '{}' failed: {}", path_, std::strerror(errno)));
    if (got == 0) break;
    done += got;
  }
  return done;
}

void ReadableFile::read_all(void* to, std::int64_t bytes, std::int64_t offset) const {
  if (read_some(to, bytes, offset) != bytes)
    throw EnvironmentError(
        fmt::format("'{}' ended before byte {}: it changed while it was read", path_, offset + bytes));
}

}  // namespace detail

std::unique_ptr<DataFile> open_data_file(const std::string& path, const DataFileOptions& options) {
  const detail::ReadableFile file(path);
  char magic[6] = {};
  const bool npy = file.read_some(magic, 6, 0) == 6 && std::memcmp(magic, "\x93NUMPY", 6) == 0;
  const bool named_npy = path.size() >= 4 && path.compare(path.size() - 4, 4, ".npy") == 0;
  return npy || named_npy ? open_npy(path, options) : open_text(path, options);
}

}  // namespace rowtune::stability
