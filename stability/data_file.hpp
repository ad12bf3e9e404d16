#pragma once
// Files of the user's numbers as rows that stream: nothing of a file is held but the stretch being read.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "kernels/words.hpp"
#include "stability/rows.hpp"

namespace rowtune::stability {

/// A matrix of numbers in a file (a temporary one for text). Safe to read from several threads.
class DataFile {
 public:
  virtual ~DataFile() = default;
  virtual std::int64_t rows() const = 0;
  virtual std::int64_t cols() const = 0;
  virtual Dtype dtype() const = 0;
  virtual std::string description() const = 0;  ///< `npy, f16, 2500 x 10`
  /// Elements first .. of a row. Throws EnvironmentError when the file has shrunk or cannot be read.
  virtual void read(std::int64_t row, std::int64_t first, std::span<double> out) const = 0;
};

/// How to take the file's numbers.
struct DataFileOptions {
  /// Of a .npy of uint16: bf16 (or f16) as its bits. Of other files: numbers are rounded to it first, as a tensor of
  /// that dtype would hold them. Absent: a .npy's own dtype, f64 for text.
  std::optional<Dtype> dtype;
};

/// By its first bytes a .npy (read_npy) or else text (read_text).
std::unique_ptr<DataFile> open_data_file(const std::string& path, const DataFileOptions& options);

/// NumPy's format, versions 1 to 3: little-endian f2, f4, f8, or u2 with dtype bf16 or f16; 1-D is one row, 2-D rows
/// are rows, C order. Throws EnvironmentError (what is wrong with the file, and what to do), UsageError where the flag
/// is.
std::unique_ptr<DataFile> open_npy(const std::string& path, const DataFileOptions& options);

/// Numbers separated by spaces, tabs, commas or semicolons; # begins a comment. One column is one row of data, several
/// columns are a matrix whose lines are rows. Throws EnvironmentError naming the line for words and ragged lines.
std::unique_ptr<DataFile> open_text(const std::string& path, const DataFileOptions& options);

/// One row of a file as a source for the methods.
class FileRow final : public RowSource {
 public:
  FileRow(const DataFile& file, std::int64_t row) : file_(file), row_(row) {}
  std::int64_t size() const override { return file_.cols(); }
  void read(std::int64_t first, std::span<double> out) const override { file_.read(row_, first, out); }

 private:
  const DataFile& file_;
  std::int64_t row_;
};

namespace detail {

/// A file descriptor that is closed; reads at an offset, so threads do not disturb each other.
class ReadableFile {
 public:
  explicit ReadableFile(const std::string& path);  ///< throws EnvironmentError
  ReadableFile(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  ~ReadableFile();
  ReadableFile(const ReadableFile&) = delete;
  ReadableFile& operator=(const ReadableFile&) = delete;
  std::int64_t size() const;
  /// Up to `bytes`; the number read. Throws EnvironmentError on an error of the system.
  std::int64_t read_some(void* to, std::int64_t bytes, std::int64_t offset) const;
  /// All of them, or EnvironmentError.
  void read_all(void* to, std::int64_t bytes, std::int64_t offset) const;
  const std::string& path() const { return path_; }

 private:
  int descriptor_;
  std::string path_;
};

}  // namespace detail
}  // namespace rowtune::stability
