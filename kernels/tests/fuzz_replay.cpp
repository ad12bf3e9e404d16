// Runs a fuzz target without libFuzzer, on the files of a folder: each as it is, cut short at VARIANTS lengths, and
// with VARIANTS single bits flipped. usage: NAME_replay FOLDER VARIANTS

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "kernels/tests/fuzz.hpp"

namespace {

int runs = 0;

void run(const std::vector<std::uint8_t>& input) {
  // A copy of its own, so that a sanitizer sees a read past the end.
  const std::vector<std::uint8_t> exact(input.begin(), input.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
  ++runs;
}

void run_with_variants(std::vector<std::uint8_t> input, std::size_t variants) {
  run(input);
  if (variants == 0) return;
  for (std::size_t i = 0; i < input.size(); i += std::max<std::size_t>(1, input.size() / variants)) {
    run({input.begin(), input.begin() + static_cast<std::ptrdiff_t>(i)});
    const auto flip = static_cast<std::uint8_t>(1u << (i % 8));
    input[i] ^= flip;
    run(input);
    input[i] ^= flip;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& path : files) {
    std::printf("%s\n", path.filename().c_str());
    std::fflush(stdout);  // so that a crash says on which
    std::ifstream file(path, std::ios::binary);
    run_with_variants({std::istreambuf_iterator<char>(file), {}}, std::strtoul(argv[2], nullptr, 10));
  }
  std::printf("%d inputs from %zu files\n", runs, files.size());
  return files.empty() ? 1 : 0;
}
