#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/errors.hpp"
#include "stability/data_file.hpp"
#include "stability/elements.hpp"
#include "stability/formats.hpp"

namespace rowtune::stability {
namespace {

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
  std::int64_t data_offset = 0;
};

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw EnvironmentError(fmt::format("'{}': {}", path, why));
}

/// The text after `'key':` in the header, which is a Python dictionary.
std::string_view value_of(std::string_view dictionary, std::string_view key, const std::string& path) {
  for (const char quote : {'\'', '"'}) {
    const std::string quoted = fmt::format("{0}{1}{0}", quote, key);
    std::size_t at = dictionary.find(quoted);
    if (at == std::string_view::npos) continue;
    at = dictionary.find_first_not_of(" ", at + quoted.size());
    if (at == std::string_view::npos || dictionary[at] != ':') continue;
    at = dictionary.find_first_not_of(" ", at + 1);
    if (at != std::string_view::npos) return dictionary.substr(at);
  }
  refuse(path, fmt::format("its .npy header has no '{}': the file is damaged, save it again", key));
}

std::vector<std::int64_t> parse_shape_tuple(std::string_view text, const std::string& path) {
  const std::size_t close = text.find(')');
  if (text.empty() || text.front() != '(' || close == std::string_view::npos)
    refuse(path, "its .npy header has no readable shape: the file is damaged, save it again");
  std::vector<std::int64_t> shape;
  std::string_view inside = text.substr(1, close - 1);
  while (!inside.empty()) {
    const std::size_t comma = std::min(inside.find(','), inside.size());
    std::string_view item = inside.substr(0, comma);
    inside.remove_prefix(std::min(comma + 1, inside.size()));
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    while (!item.empty() && item.back() == ' ') item.remove_suffix(1);
    if (item.empty()) continue;
    std::int64_t extent = 0;
    const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), extent);
    if (error != std::errc() || end != item.data() + item.size() || extent < 0)
      refuse(path,
             fmt::format("its shape has '{}' where a length should be: the file is damaged, save it again", item));
    shape.push_back(extent);
  }
  return shape;
}

Header parse_header(const detail::ReadableFile& file) {
  const std::string& path = file.path();
  unsigned char start[12] = {};
  const std::int64_t got = file.read_some(start, 12, 0);
  if (got < 10 || std::memcmp(start, "\x93NUMPY", 6) != 0)
    refuse(path, got == 0 ? "the file is empty" : "it is named .npy and does not begin as NumPy's files do");
  const int version = start[6];
  if (version < 1 || version > 3)
    refuse(path, fmt::format(".npy version {} is unknown; save it with numpy.save", version));
  Header header;
  std::int64_t length = start[8] | (start[9] << 8);
  header.data_offset = 10;
  if (version >= 2) {
    length |= (static_cast<std::int64_t>(start[10]) << 16) | (static_cast<std::int64_t>(start[11]) << 24);
    header.data_offset = 12;
  }
  if (length > 1 << 20 || header.data_offset + length > file.size())
    refuse(path, "it is truncated inside its header: copy or save it again");
  std::string text(static_cast<std::size_t>(length), ' ');
  file.read_all(text.data(), length, header.data_offset);
  header.data_offset += length;
  const std::string_view descr = value_of(text, "descr", path);
  const std::size_t close = descr.size() > 1 ? descr.find(descr.front(), 1) : std::string_view::npos;
  if ((descr.front() != '\'' && descr.front() != '"') || close == std::string_view::npos)
    refuse(path, "it holds records, not plain numbers; save one field as an array");
  header.descr = descr.substr(1, close - 1);
  header.fortran_order = value_of(text, "fortran_order", path).substr(0, 4) == "True";
  header.shape = parse_shape_tuple(value_of(text, "shape", path), path);
  return header;
}

/// The format of the stored numbers.
Dtype stored_dtype(const Header& header, const DataFileOptions& options, const std::string& path) {
  const std::string kind = header.descr.size() > 1 ? header.descr.substr(1) : header.descr;
  if (!header.descr.empty() && header.descr.front() == '>')
    refuse(path, fmt::format("its numbers ({}) are big-endian; save array.astype(array.dtype.newbyteorder('<'))",
                             header.descr));
  if (kind == "f2") return Dtype::f16;
  if (kind == "f4") return Dtype::f32;
  if (kind == "f8") return Dtype::f64;
  if (kind == "u2") {
    if (options.dtype == Dtype::bf16 || options.dtype == Dtype::f16) return *options.dtype;
    throw UsageError(
        fmt::format("'{}' holds uint16: say --dtype bf16 (or f16) if these are the bits of such numbers", path));
  }
  refuse(path, fmt::format("its dtype '{}' is not one of f2, f4, f8 (or u2 for bf16 bits); save array.astype('f4')",
                           header.descr));
}

class NpyFile final : public DataFile {
 public:
  NpyFile(const std::string& path, const DataFileOptions& options) : file_(path), header_(parse_header(file_)) {
    stored_ = stored_dtype(header_, options, path);
    dtype_ = options.dtype.value_or(stored_);
    const std::vector<std::int64_t>& shape = header_.shape;
    if (shape.empty() || shape.size() > 2)
      refuse(path, fmt::format("it has {} dimensions; give 1-D (one row) or 2-D (rows are rows): array.reshape(-1, "
                               "array.shape[-1])",
                               shape.size()));
    rows_ = shape.size() == 2 ? shape[0] : 1;
    cols_ = shape.back();
    if (rows_ == 0 || cols_ == 0) refuse(path, "it holds no numbers: there is nothing to measure");
    if (header_.fortran_order && rows_ > 1 && cols_ > 1)
      refuse(path, "it is in Fortran order, its rows are scattered; save numpy.ascontiguousarray(array)");
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 16;
    if (cols_ > most / rows_) refuse(path, "its shape is impossible: the file is damaged, save it again");
    const std::int64_t need = header_.data_offset + rows_ * cols_ * size_of(stored_);
    if (file_.size() < need)
      refuse(path, fmt::format("it is truncated: {} x {} {} need {} bytes and it has {}; copy or save it again", rows_,
                               cols_, to_string(stored_), need, file_.size()));
  }
  std::int64_t rows() const override { return rows_; }
  std::int64_t cols() const override { return cols_; }
  Dtype dtype() const override { return dtype_; }
  std::string description() const override {
    std::string text = fmt::format(".npy of {}, {} x {}", to_string(stored_), rows_, cols_);
    if (dtype_ != stored_) text += fmt::format(", rounded to {}", to_string(dtype_));
    return text;
  }
  void read(std::int64_t row, std::int64_t first, std::span<double> out) const override {
    const std::int64_t size = size_of(stored_);
    std::vector<char> bytes(out.size() * static_cast<std::size_t>(size));
    file_.read_all(bytes.data(), static_cast<std::int64_t>(bytes.size()),
                   header_.data_offset + (row * cols_ + first) * size);
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = element_at(stored_, bytes.data(), static_cast<std::int64_t>(i));
      if (dtype_ != stored_) out[i] = round_to(dtype_, out[i]);
    }
  }

 private:
  detail::ReadableFile file_;
  Header header_;
  Dtype stored_ = Dtype::f32, dtype_ = Dtype::f32;
  std::int64_t rows_ = 0, cols_ = 0;
};

}  // namespace

std::unique_ptr<DataFile> open_npy(const std::string& path, const DataFileOptions& options) {
  return std::make_unique<NpyFile>(path, options);
}

}  // namespace rowtune::stability
