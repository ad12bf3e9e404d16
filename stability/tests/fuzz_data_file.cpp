// A user's numbers: .npy, and text for everything that does not begin as NumPy's files do.

#include <algorithm>
#include <array>

#include "kernels/errors.hpp"
#include "kernels/tests/fuzz.hpp"
#include "stability/data_file.hpp"

using namespace rowtune;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::InputFile input(fuzz::text_of(data, size));
  for (const std::optional<Dtype> dtype : {std::optional<Dtype>(), std::optional(Dtype::bf16)}) {
    try {
      const auto file = stability::open_data_file(input.path(), {dtype});
      fuzz::require(file->rows() > 0 && file->cols() > 0, "a file that opens holds numbers");
      std::array<double, 64> buffer{};
      const auto count = std::min<std::int64_t>(64, file->cols());
      file->read(0, 0, {buffer.data(), static_cast<std::size_t>(count)});
      file->read(file->rows() - 1, file->cols() - count, {buffer.data(), static_cast<std::size_t>(count)});
    } catch (const EnvironmentError&) {
    } catch (const UsageError&) {
    }
  }
  return 0;
}
