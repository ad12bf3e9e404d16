#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "kernels/errors.hpp"
#include "stability/data_file.hpp"
#include "stability/decimal.hpp"
#include "stability/formats.hpp"

namespace rowtune::stability {
namespace {

constexpr std::int64_t longest_line = 64 << 20;  ///< a binary file without a line end is not held whole

/// Lines of a file, read in pieces.
class Lines {
 public:
  explicit Lines(const detail::ReadableFile& file) : file_(file) {}
  /// False at the end.
  bool next(std::string& line) {
    line.clear();
    for (;;) {
      const std::size_t end = buffer_.find('\n', at_);
      if (end != std::string::npos) {
        line.append(buffer_, at_, end - at_);
        at_ = end + 1;
        ++number_;
        return true;
      }
      line.append(buffer_, at_, std::string::npos);
      if (static_cast<std::int64_t>(line.size()) > longest_line)
        throw EnvironmentError(fmt::format("'{}': line {} is longer than {} MiB: not a text file of numbers",
                                           file_.path(), number_ + 1, longest_line >> 20));
      buffer_.resize(1 << 20);
      at_ = 0;
      const std::int64_t got = file_.read_some(buffer_.data(), 1 << 20, offset_);
      buffer_.resize(static_cast<std::size_t>(got));
      offset_ += got;
      if (got == 0) {
        if (!line.empty()) ++number_;
        return !line.empty();
      }
    }
  }
  std::int64_t number() const { return number_; }

 private:
  const detail::ReadableFile& file_;
  std::string buffer_;
  std::size_t at_ = 0;
  std::int64_t offset_ = 0, number_ = 0;
};

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

/// The numbers, rounded to the dtype, spooled as doubles to a temporary file that has no name.
class TextFile final : public DataFile {
 public:
  TextFile(const std::string& path, const DataFileOptions& options)
      : dtype_(options.dtype.value_or(Dtype::f64)), spool_(std::tmpfile()) {
    if (!spool_)
      throw EnvironmentError("cannot create a temporary file for the numbers; set TMPDIR or free space in /tmp");
    const detail::ReadableFile file(path);
    Lines lines(file);
    std::string line;
    std::vector<double> values;
    while (lines.next(line)) {
      parse(line, lines.number(), path, values);
      if (values.empty()) continue;
      const auto count = static_cast<std::int64_t>(values.size());
      if (cols_ == 0) cols_ = count;
      if (count != cols_)
        throw EnvironmentError(
            fmt::format("'{}': line {} has {} numbers and the lines before it {}: rows must be of one "
                        "length",
                        path, lines.number(), count, cols_));
      ++rows_;
      if (std::fwrite(values.data(), sizeof(double), values.size(), spool_.get()) != values.size())
        throw EnvironmentError("the disk is full: the temporary file of the numbers could not be written");
    }
    if (rows_ == 0) throw EnvironmentError(fmt::format("'{}': the file holds no numbers", path));
    if (std::fflush(spool_.get()) != 0)
      throw EnvironmentError("the disk is full: the temporary file of the numbers could not be written");
    if (cols_ == 1) std::swap(rows_, cols_);  // a column is one row of data
    // A duplicate: the spool and this reader each close their own.
    numbers_ = std::make_unique<detail::ReadableFile>(::dup(::fileno(spool_.get())), path);
  }
  std::int64_t rows() const override { return rows_; }
  std::int64_t cols() const override { return cols_; }
  Dtype dtype() const override { return dtype_; }
  std::string description() const override {
    return fmt::format("text, {} x {}, taken as {}", rows_, cols_, to_string(dtype_));
  }
  void read(std::int64_t row, std::int64_t first, std::span<double> out) const override {
    constexpr std::int64_t size = sizeof(double);
    numbers_->read_all(out.data(), static_cast<std::int64_t>(out.size()) * size, (row * cols_ + first) * size);
  }

 private:
  void parse(std::string_view line, std::int64_t number, const std::string& path, std::vector<double>& values) const {
    constexpr std::string_view separators = " \t,;\r";
    values.clear();
    line = line.substr(0, line.find('#'));
    std::size_t at = 0;
    while ((at = line.find_first_not_of(separators, at)) != std::string_view::npos) {
      const std::size_t end = std::min(line.find_first_of(separators, at), line.size());
      const std::string_view word = line.substr(at, end - at);
      if (!is_decimal(word))
        throw EnvironmentError(
            fmt::format("'{}': line {} has '{}' where a number should be; remove headings and words, or "
                        "begin the line with #",
                        path, number, word.substr(0, 40)));
      values.push_back(decimal_to(dtype_, word));
      at = end;
    }
  }

  Dtype dtype_;
  std::int64_t rows_ = 0, cols_ = 0;
  std::unique_ptr<std::FILE, CloseFile> spool_;
  std::unique_ptr<detail::ReadableFile> numbers_;
};

}  // namespace

std::unique_ptr<DataFile> open_text(const std::string& path, const DataFileOptions& options) {
  return std::make_unique<TextFile>(path, options);
}

}  // namespace rowtune::stability
