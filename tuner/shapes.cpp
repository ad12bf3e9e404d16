#include "tuner/shapes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace rowtune {
namespace {

using Shapes = std::vector<Shape>;

void add(Shapes& shapes, const Shape& shape) {
  if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
}

void add_all(Shapes& shapes, const Shapes& more) {
  for (const Shape& shape : more) add(shapes, shape);
}

Shapes grid(std::initializer_list<std::int64_t> rows, std::initializer_list<std::int64_t> cols) {
  Shapes shapes;
  for (auto c : cols)
    for (auto r : rows) shapes.push_back(Shape::of(r, c));
  return shapes;
}

Shapes list(std::initializer_list<std::pair<std::int64_t, std::int64_t>> extents) {
  Shapes shapes;
  for (auto [r, c] : extents) shapes.push_back(Shape::of(r, c));
  return shapes;
}

// `quick`: some of each kind that separates the algorithms (many short rows, medium, few long ones, an odd size), small
// and few enough that all operations in all dtypes, with their ceilings, take about a minute on two cores of a
// processor.
const Shapes& quick_rows_of_scores() {
  static const Shapes shapes = list({{256, 1000}, {4096, 64}, {4, 32000}});
  return shapes;
}
const Shapes& quick_hidden_sizes() {
  static const Shapes shapes = list({{256, 1000}, {16, 4096}, {129, 769}});
  return shapes;
}

// `llm`: what the layers of today's language models ask for.
const Shapes& attention_rows() {
  static const Shapes shapes =
      list({{1048576, 16}, {262144, 64}, {131072, 128}, {32768, 512}, {4096, 1000}, {16384, 1024}});
  return shapes;
}
const Shapes& hidden_sizes() {
  static const Shapes shapes = [] {
    Shapes all = grid({1, 16, 512, 8192}, {2048, 4096, 5120, 7168, 8192, 16384});
    add_all(all, list({{256, 5120}, {65536, 256}, {32768, 1024}, {2048, 32768}, {512, 131072}}));
    return all;
  }();
  return shapes;
}
const Shapes& long_scores() {
  static const Shapes shapes = list({{8192, 4096}, {4096, 8192}, {2048, 32768}, {512, 131072}});
  return shapes;
}
const Shapes& logits() {
  static const Shapes shapes = [] {
    Shapes all = grid({1, 8, 64, 256}, {32000, 50257, 128256, 152064});
    add_all(all, list({{64, 50000}, {1, 1048576}}));
    return all;
  }();
  return shapes;
}
const Shapes& odd_sizes() {
  static const Shapes shapes = list({{4097, 1023}, {4097, 4095}, {8192, 769}, {8192, 1153}});
  return shapes;
}

// `cliffs`: powers of two with their neighbours, and two sizes between, all of 2^25 elements: a time per element that
// jumps from one to the next is a cliff (README.md has the query).
const Shapes& cliffs() {
  static const Shapes shapes = [] {
    Shapes all;
    const auto add_cols = [&all](std::int64_t cols) { add(all, Shape::of((std::int64_t{1} << 25) / cols, cols)); };
    for (int k = 4; k <= 17; ++k)
      for (const int beside : {-1, 0, 1}) add_cols((std::int64_t{1} << k) + beside);
    add_cols(1152);
    add_cols(7296);
    return all;
  }();
  return shapes;
}

Shapes quick_shapes(Operation op) { return is_norm(op) ? quick_hidden_sizes() : quick_rows_of_scores(); }

Shapes llm_shapes(Operation op) {
  Shapes shapes;
  if (is_norm(op)) {
    add_all(shapes, hidden_sizes());
  } else {
    if (op != Operation::argmax_logsumexp) add_all(shapes, attention_rows());  // which is asked of logits alone
    if (op != Operation::argmax_logsumexp) add_all(shapes, long_scores());
    add_all(shapes, logits());
  }
  add_all(shapes, odd_sizes());
  return shapes;
}

Shape parse_tunable(std::string_view text) {
  const Shape shape = parse_shape(text);
  if (shape.rows == 0 || shape.cols == 0)
    throw UsageError(fmt::format("shape '{}' has no elements: there is nothing to time", text));
  return shape;
}

std::string_view trim(std::string_view text) {
  const auto space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return text;
}

Shapes read_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    if (errno == ENOENT)
      throw UsageError(fmt::format(
          "shapes '{}': neither a preset (quick, llm, cliffs), nor a list of shapes such as 4096x1000,64x50000, nor "
          "a file that exists",
          path));
    throw EnvironmentError(fmt::format("cannot read the shapes file {}: {}", path, std::strerror(errno)));
  }
  Shapes shapes;
  std::string line;
  int number = 0;
  while (std::getline(file, line)) {
    ++number;
    const std::string_view text = trim(std::string_view(line).substr(0, line.find('#')));
    if (text.empty()) continue;
    try {
      add(shapes, parse_tunable(text));
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("{}, line {}: {}", path, number, error.what()));
    }
  }
  if (file.bad()) throw EnvironmentError(fmt::format("cannot read the shapes file {}: {}", path, std::strerror(errno)));
  if (shapes.empty())
    throw UsageError(fmt::format("the shapes file {} names no shape; write one a line, such as 4096x1000", path));
  return shapes;
}

Shapes read_list(std::string_view text) {
  Shapes shapes;
  while (true) {
    const auto comma = text.find(',');
    add(shapes, parse_tunable(trim(text.substr(0, comma))));
    if (comma == std::string_view::npos) return shapes;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

ShapeSet ShapeSet::parse(std::string_view text) {
  ShapeSet set;
  if (text == "quick" || text == "llm" || text == "cliffs") {
    set.preset_ = text == "quick" ? Preset::quick : text == "llm" ? Preset::llm : Preset::cliffs;
    set.description_ = fmt::format("preset {}", text);
  } else if (!text.empty() && (std::isdigit(static_cast<unsigned char>(text[0])) || text.find(',') != text.npos)) {
    set.shapes_ = read_list(text);
    set.description_ = set.shapes_.size() == 1 ? std::string(text) : fmt::format("{} shapes", set.shapes_.size());
  } else {
    set.shapes_ = read_file(std::string(text));
    set.description_ = fmt::format("file {}", text);
  }
  return set;
}

std::vector<Shape> ShapeSet::of(Operation op) const {
  if (preset_ == Preset::none) return shapes_;
  const auto shapes_of = [this](Operation each) {
    return preset_ == Preset::quick ? quick_shapes(each) : preset_ == Preset::llm ? llm_shapes(each) : cliffs();
  };
  if (op != Operation::copy) return shapes_of(op);
  Shapes ceilings;
  for (Operation other : all_operations()) {
    if (other == Operation::copy) continue;
    for (const Shape& shape : shapes_of(other)) add(ceilings, ceiling_of(Workload::of(other, Dtype::f32, shape)).shape);
  }
  return ceilings;
}

}  // namespace rowtune
