// Tensors of more than 2^31 and 2^32 elements, on the emulator: their addresses are reserved and only the rows that
// some blocks touch are ever there. And proofs of the index arithmetic of rows of nearly 2^31 columns.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <set>
#include <vector>

#include "kernels/cuda/known_devices.hpp"
#include "kernels/emulator/executor.hpp"
#include "kernels/emulator/ledger.hpp"
#include "kernels/oracle.hpp"
#include "kernels/space.hpp"
#include "rowtune/rows.cuh"
#include "rowtune/testdata.cuh"

namespace rowtune {
namespace {

using emulator::SampledCase;

/// Addresses without memory: a page is there once it is touched.
class Reserved {
 public:
  explicit Reserved(std::uint64_t bytes) : bytes_(bytes) {
    void* p = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p != MAP_FAILED) data_ = static_cast<std::byte*>(p);
  }
  ~Reserved() {
    if (data_) munmap(data_, bytes_);
  }
  Reserved(const Reserved&) = delete;
  Reserved& operator=(const Reserved&) = delete;
  std::byte* data() const { return data_; }

 private:
  std::uint64_t bytes_;
  std::byte* data_ = nullptr;
};

/// Runs the blocks of some rows and checks those rows; the rows beside them must stay untouched.
class Huge {
 public:
  Huge(const SampledCase& c, const std::vector<std::int64_t>& rows)
      : c_(c),
        w_(c.workload),
        rows_(rows),
        fused_(w_.op == Operation::fused_add_rmsnorm),
        bytes_(static_cast<std::uint64_t>((w_.shape.rows - 1) * w_.shape.ld + w_.shape.cols) *
               static_cast<unsigned>(size_of(w_.dtype))),
        input_(bytes_),
        residual_(fused_ ? bytes_ : 4096),
        output_(bytes_),
        residual_out_(fused_ ? bytes_ : 4096) {}
  bool there() const { return input_.data() && residual_.data() && output_.data() && residual_out_.data(); }

  std::string run_and_check() {
    const std::int64_t cols = w_.shape.cols;
    const auto n = static_cast<std::size_t>(cols * size_of(w_.dtype));
    std::vector<std::byte> weight(n + 16), bias(n + 16);
    for (std::int64_t i = 0; i < cols; ++i) {
      store_element(w_.dtype, weight.data(), i, test_value(test_weight, 0, i, cols));
      store_element(w_.dtype, bias.data(), i, test_value(test_bias, 0, i, cols));
    }
    for (const std::int64_t r : rows_)
      for (std::int64_t i = 0; i < cols; ++i) {
        store_element(w_.dtype, input_.data(), r * w_.shape.ld + i, test_value(test_input, r, i, cols));
        if (fused_)
          store_element(w_.dtype, residual_.data(), r * w_.shape.ld + i, test_value(test_residual, r, i, cols));
      }
    RowArgs a{};
    a.input = input_.data();
    a.output = output_.data();
    a.weight = w_.options.weight ? weight.data() : nullptr;
    a.bias = w_.options.bias ? bias.data() : nullptr;
    if (fused_) a.residual = residual_.data(), a.residual_out = residual_out_.data();
    a.rows = w_.shape.rows;
    a.cols = cols;
    a.input_stride = a.residual_stride = a.output_stride = a.residual_out_stride = w_.shape.ld;
    a.eps = static_cast<float>(w_.options.eps);
    Shape s = w_.shape;
    if (w_.op == Operation::copy && s.contiguous()) {
      s = {1, s.rows * s.cols, s.rows * s.cols, 0};
      a.rows = 1;
      a.cols = s.cols;
    }
    const int bytes = size_of(w_.dtype);
    std::vector<emulator::Region> regions{
        {"input", input_.data(), s.rows, s.cols, s.ld, bytes, emulator::Use::input},
        {"output", output_.data(), s.rows, s.cols, s.ld, bytes, emulator::Use::input_output},
        {"weight", weight.data(), 1, cols, cols, bytes, emulator::Use::input},
        {"bias", bias.data(), 1, cols, cols, bytes, emulator::Use::input}};
    if (fused_) {
      regions.push_back({"residual", residual_.data(), s.rows, s.cols, s.ld, bytes, emulator::Use::input});
      regions.push_back(
          {"residual_out", residual_out_.data(), s.rows, s.cols, s.ld, bytes, emulator::Use::input_output});
    }
    emulator::Executor executor;
    try {
      executor.run(w_, c_.config, a, regions, 3, blocks());
    } catch (const std::exception& e) {
      return e.what();
    }
    for (const std::int64_t r : rows_) {
      const std::string wrong = check_row(r, weight.data(), bias.data());
      if (!wrong.empty()) return wrong;
    }
    return {};
  }

 private:
  /// Blocks of the plan's launch that work on the rows: none named where the whole grid is run.
  std::vector<std::int64_t> blocks() const {
    if (w_.shape.rows <= 16) return {};
    const cuda::Plan plan = cuda::plan_kernel(w_, c_.config);
    std::vector<std::int64_t> list;
    const std::int64_t per_block =
        c_.config.algorithm == "lanes" ? c_.config.block_size() / 32 * c_.config.rows_per_warp() : 1;
    for (const std::int64_t r : rows_) {
      if (w_.op == Operation::copy) {
        const std::int64_t step =
            static_cast<std::int64_t>(c_.config.block_size()) * c_.config.get('u', 1) * c_.config.vector_width();
        for (std::int64_t b = r * w_.shape.cols / step; b <= ((r + 1) * w_.shape.cols - 1) / step; ++b)
          list.push_back(b);
        continue;
      }
      for (int part = 0; part < plan.split; ++part) list.push_back(r / per_block * plan.split + part);
    }
    return list;
  }
  std::vector<double> load(const std::byte* base, std::int64_t row) const {
    std::vector<double> x(static_cast<std::size_t>(w_.shape.cols));
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = load_element(w_.dtype, base, row * w_.shape.ld + static_cast<std::int64_t>(i));
    return x;
  }
  std::string check_row(std::int64_t r, const std::byte* weight, const std::byte* bias) const {
    std::vector<double> weights, biases;
    for (std::int64_t i = 0; i < w_.shape.cols; ++i) {
      weights.push_back(load_element(w_.dtype, weight, i));
      biases.push_back(load_element(w_.dtype, bias, i));
    }
    const auto want =
        reference_row(w_, load(input_.data(), r), fused_ ? load(residual_.data(), r) : std::vector<double>{},
                      w_.options.weight ? weights.data() : nullptr, w_.options.bias ? biases.data() : nullptr);
    const auto got = load(output_.data(), r);
    const double depth = cuda::plan_kernel(w_, c_.config).depth;
    for (std::size_t i = 0; i < got.size(); ++i) {
      double error = 0;
      if (!check_element(w_, got[i], want.output[i], want.spread, w_.options.weight ? weights[i] : 1, depth, &error))
        return fmt::format("element [{}, {}] is {}, must be {}", r, i, got[i], want.output[i]);
    }
    if (fused_ && load(residual_out_.data(), r) != want.new_residual)
      return fmt::format("the new residual of row {} is wrong", r);
    return {};
  }

  const SampledCase& c_;
  const Workload& w_;
  std::vector<std::int64_t> rows_;
  bool fused_;
  std::uint64_t bytes_;
  Reserved input_, residual_, output_, residual_out_;
};

void check_huge(const char* report, const std::vector<std::int64_t>& rows) {
  for (const SampledCase& c : emulator::ledger_cases_of(report)) {
    if (c.config.get('g', 0) > 0) continue;  // its few blocks would walk over all rows
    Huge huge(c, rows);
    if (!huge.there()) GTEST_SKIP() << "this system reserves no memory beyond what it has";
    EXPECT_EQ(huge.run_and_check(), "") << to_string(c.workload) << ", " << c.config.name();
  }
}

TEST(Huge, pytorch_84144_rows_past_two_to_the_32_elements) {
  // 42730 x 50259 is the row that crosses 2^31 elements, 85460 that of 2^32.
  check_huge("pytorch_84144", {0, 42729, 42730, 85459, 85460, 85631});
}
TEST(Huge, pytorch_181555_layernorm_of_two_to_the_32_elements) {
  check_huge("pytorch_181555", {0, 524287, 524288, 1048575, 1048576});
}
TEST(Huge, vllm_42862_rmsnorm_and_fused_add) { check_huge("vllm_42862", {0, 524287, 524288, 1048576, 1048640}); }
TEST(Huge, copies_past_two_to_the_32_elements) { check_huge("copy_2_32", {0, 42730, 85460, 85631}); }
TEST(Huge, every_algorithm_at_a_huge_stride) { check_huge("huge_stride", {0, 1, 2, 3, 4}); }

// ------------------------------------------------------------------------------------------- one row of 2^31 - 1
// columns

struct Wide : KernelTraits {
  using Element = f16;
  static constexpr int block = 1024, vector = 8;
  static constexpr bool ragged = true;
};
constexpr i64 most_cols = 2147483647;

/// Addresses of which many stand for the same memory: `chunk` bytes, again and again. The last ones are on their own.
class Repeated {
 public:
  Repeated(std::uint64_t bytes, std::uint64_t chunk) : bytes_((bytes + chunk - 1) / chunk * chunk) {
    void* p = mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return;
    data_ = static_cast<std::byte*>(p);
    const int file = memfd_create("repeated", MFD_CLOEXEC);
    bool ok = file >= 0 && ftruncate(file, static_cast<off_t>(2 * chunk)) == 0;
    for (std::uint64_t at = 0; ok && at < bytes_; at += chunk) {
      const auto offset = static_cast<off_t>(at + chunk == bytes_ ? chunk : 0);
      ok = mmap(data_ + at, chunk, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, offset) != MAP_FAILED;
    }
    if (file >= 0) close(file);
    there_ = ok;
  }
  ~Repeated() {
    if (data_) munmap(data_, bytes_);
  }
  Repeated(const Repeated&) = delete;
  Repeated& operator=(const Repeated&) = delete;
  bool there() const { return there_; }
  std::byte* data() const { return data_; }
  std::byte* last(std::uint64_t chunk) const { return data_ + bytes_ - chunk; }

 private:
  std::uint64_t bytes_;
  std::byte* data_ = nullptr;
  bool there_ = false;
};

/// pytorch 191565, as a run: a periodic row, whose mean square is known. A 32-bit index would leave the addresses, or
/// the end of the row as it was.
TEST(Huge, Long_pytorch_191565_a_row_of_nearly_two_to_the_31_columns) {
  constexpr i64 chunk = i64{1} << 25;
  const SampledCase c = emulator::ledger_cases_of("pytorch_191565").at(0);
  Repeated input(2 * most_cols, 2 * chunk), output(2 * most_cols, 2 * chunk);
  if (!input.there() || !output.there()) GTEST_SKIP() << "this system has no room for the addresses";
  std::vector<double> values(1009);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>(test_value(test_input, 0, static_cast<i64>(i), most_cols));
  double squares = 0;
  for (std::byte* to : {input.data(), input.last(2 * chunk)})
    for (i64 i = 0; i < chunk; ++i) {
      store_element(Dtype::f16, to, i, values[static_cast<std::size_t>(i) % values.size()]);
      if (to != input.data()) continue;
      const double x = load_element(Dtype::f16, to, i);
      squares += x * x;
    }
  for (std::byte* to : {output.data(), output.last(2 * chunk)}) std::memset(to, 0xff, 2 * chunk);
  const double end = load_element(Dtype::f16, input.last(2 * chunk), chunk - 1);  // lies behind the row
  const double mean = (squares * 64 - end * end) / static_cast<double>(most_cols);
  const double rstd = 1 / std::sqrt(mean + c.workload.options.eps);

  RowArgs a{};
  a.input = input.data();
  a.output = output.data();
  a.rows = 1;
  a.cols = most_cols;
  a.input_stride = a.output_stride = most_cols;
  a.eps = static_cast<float>(c.workload.options.eps);
  emulator::Executor executor;
  executor.run(c.workload, c.config, a,
               {{"input", input.data(), 1, most_cols, most_cols, 2, emulator::Use::input},
                {"output", output.data(), 1, most_cols, most_cols, 2, emulator::Use::input_output}},
               3);
  const double depth = cuda::plan_kernel(c.workload, c.config).depth;
  for (const std::byte* got : {output.data(), output.last(2 * chunk)})
    for (i64 i = 0; i < chunk; ++i) {
      const double y = load_element(Dtype::f16, got, i);
      if (got != output.data() && i == chunk - 1) {
        EXPECT_TRUE(std::isnan(y)) << "what lies behind the row was overwritten";
        continue;
      }
      double error = 0;
      ASSERT_TRUE(check_element(c.workload, y, load_element(Dtype::f16, input.data(), i) * rstd, 1, 1, depth, &error))
          << "column " << i << (got == output.data() ? "" : " of the last ones") << ": " << y;
    }
}

/// pytorch 191565: vectors and edges of the row cover every column once, up to the last, wherever it begins.
TEST(Huge, pytorch_191565_vectors_of_the_longest_row) {
  for (int head = 0; head < 8; ++head) {
    const auto* row = reinterpret_cast<const char*>(std::uintptr_t{1} << 40) + 2 * head;
    const Geometry<Wide, i64> geometry(row, most_cols);
    const i64 lead = (8 - head) % 8;
    EXPECT_EQ(geometry.vector(0).first, lead);
    const i64 end = geometry.vector(geometry.vectors - 1).first + 8;
    EXPECT_LE(end, most_cols);
    EXPECT_GT(end + 8, most_cols);
    EXPECT_FALSE(geometry.vector(geometry.vectors).exists);
    std::vector<i64> at, columns;
    for (int i = 0; geometry.edge(i).exists; ++i) at.push_back(geometry.edge(i).first);
    for (i64 c = 0; c < lead; ++c) columns.push_back(c);
    for (i64 c = end; c < most_cols; ++c) columns.push_back(c);
    EXPECT_EQ(at, columns);
    // What a block looks at behind the end, with all of its loads in flight, must not wrap.
    EXPECT_FALSE(geometry.vector(geometry.vectors + 16 * 1024 * 132).exists);
  }
}

/// Algorithms that count columns of a row with an int are not legal where the count could overflow.
TEST(Huge, longest_rows_are_refused_where_a_thread_could_not_hold_its_part) {
  const DeviceInfo device = cuda::known_device(90);
  std::set<std::string> legal;
  for (const auto op : all_operations()) {
    const Workload w = Workload::of(op, Dtype::f16, Shape::of(1, most_cols));
    for (const SampledCase& c : emulator::legal_cases(w, device, 1)) legal.insert(c.config.algorithm);
  }
  EXPECT_EQ(legal, (std::set<std::string>{"copy", "reread", "split_reread", "threepass", "two_launches", "unfused",
                                          "unsafe"}));
}

}  // namespace
}  // namespace rowtune
