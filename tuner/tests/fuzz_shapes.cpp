// Shapes: one, a list as the command line takes it, a file; and the options that databases and tables hold as text.

#include "kernels/tests/fuzz.hpp"
#include "tuner/shapes.hpp"

using namespace rowtune;

namespace {

void check(const ShapeSet& set) {
  for (const Operation op : all_operations())
    for (const Shape& shape : set.of(op)) {
      fuzz::require(parse_shape(to_string(shape)) == shape, "a shape is reversible");
      const Workload workload = Workload::of(op, Dtype::f32, shape);
      fuzz::require(bytes_moved(workload) > 0, "a shape moves bytes");
      fuzz::require(bytes_moved(ceiling_of(workload)) > 0, "its ceiling moves bytes");
    }
}

template <class F>
void parse(F f) {
  try {
    f();
  } catch (const UsageError&) {
  } catch (const EnvironmentError&) {
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  parse([&] { check(ShapeSet::parse(fuzz::InputFile(text).path())); });
  // What begins with a digit or has a comma is a list, all else the name of a file.
  parse([&] { check(ShapeSet::parse("1x1," + std::string(text))); });
  parse([&] {
    const Options options = parse_options(text);
    fuzz::require(parse_options(to_string(options)) == options, "options are reversible");
  });
  return 0;
}
