// The public ledger: inputs that broke other people's kernels, each report as a test of its kind. Their workloads and
// configs are in kernels/emulator/ledger.cpp. Huge tensors are in emulated_huge_test.cpp; reports about time only
// (pytorch 144645, Fuser 566, TileOPs 1716, Fast-LLM 499) are measured on a GPU by ledger_times.py.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/emulator/ledger.hpp"
#include "kernels/tests/spec_problem.hpp"
#include "rowtune/testdata.cuh"

namespace rowtune::spec {
namespace {

using emulator::ledger_cases_of;
using emulator::SampledCase;

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

double normal(std::int64_t r, std::int64_t c) { return test_value(test_weight, r, c, 1 << 20) * 8 - 8; }

/// Every case of a report on the values; those that make no promise of such values are left out.
void check(const std::string& report, const Fill& fill, const Layout& layout = {}, Values kind = Values::normal) {
  int ran = 0;
  for (const SampledCase& c : ledger_cases_of(report)) {
    if (!promised(c.workload, c.config, kind)) continue;
    EXPECT_EQ(run_and_check(make_call(c.workload, c.config, fill, layout), 77), "");
    ++ran;
  }
  EXPECT_GT(ran, 0) << "no case of " << report;
}
void check(const std::string& report, const std::vector<Values>& rows, const Layout& layout = {}) {
  int ran = 0;
  for (const SampledCase& c : ledger_cases_of(report)) {
    std::vector<Values> kept;
    for (const Values v : rows)
      if (promised(c.workload, c.config, v)) kept.push_back(v);
    if (kept.empty()) continue;
    EXPECT_EQ(run_and_check(make_call(c.workload, c.config, kept, layout), 78), "");
    ++ran;
  }
  EXPECT_GT(ran, 0) << "no case of " << report;
}

TEST(Ledger, apex_411_more_rows_than_a_grid_dimension) { check("apex_411", {Values::normal}); }

TEST(Ledger, flashinfer_634_warps_not_a_multiple_of_four) { check("flashinfer_634", {Values::normal}); }

TEST(Ledger, flashinfer_718_more_shared_memory_than_48_KB) { check("flashinfer_718", {Values::normal}); }

TEST(Ledger, TransformerEngine_490_tensors_one_element_past_an_aligned_address) {
  check("TransformerEngine_490", {Values::normal});
  // And the weights somewhere else than the rows.
  check("TransformerEngine_490", {Values::normal}, {.weight_offset_elements = 3});
}

/// A launch must take accesses as narrow as all pointers and strides together ask for: kernels of single elements take
/// any tensors; wider ones want all tensors at one distance from an aligned address, as the launcher of a dispatch
/// table makes sure of (rowtune/dispatch), and the emulator would tell if it did not.
TEST(Ledger, TransformerEngine_490_every_tensor_at_an_offset_of_its_own) {
  int narrow = 0, wide = 0;
  for (const SampledCase& c : ledger_cases_of("TransformerEngine_490_each"))
    for (const bool in_place : {false, true}) {
      Workload w = c.workload;
      w.options.in_place = in_place;
      const bool one = c.config.vector_width() == 1;
      const Layout alike{.weight_offset_elements = 3, .apart = 8}, apart{.weight_offset_elements = 2, .apart = 1};
      EXPECT_EQ(run_and_check(make_call(w, c.config, {Values::normal}, alike), 79), "");
      if (one) {
        EXPECT_EQ(run_and_check(make_call(w, c.config, {Values::normal}, apart), 80), "");
      } else if (runner().name() == "emulator" && !(in_place && w.op == Operation::layernorm)) {
        const std::string said = run_and_check(make_call(w, c.config, {Values::normal}, apart), 81);
        EXPECT_NE(said.find("past a multiple of 16"), std::string::npos) << to_string(w) << said;
      }
      ++(one ? narrow : wide);
    }
  EXPECT_GE(narrow, 16);
  EXPECT_GE(wide, 4);
}

TEST(Ledger, aiter_5044_does_not_overwrite_the_next_row) { check("aiter_5044", {Values::normal, Values::wide}); }

TEST(Ledger, triton_9838_padded_lanes_enter_no_mean_and_no_variance) {
  check("triton_9838", {Values::normal, Values::far_from_zero, Values::constant});
}

TEST(Ledger, quack_layernorm_far_from_zero) {
  check(
      "quack_far_from_zero", [](auto r, auto c) { return 1000 + normal(r, c); }, {}, Values::far_from_zero);
}

TEST(Ledger, quack_configs_wider_than_the_row) {
  check("quack_cluster", {Values::normal, Values::far_from_zero});
  check("quack_degenerate", {Values::normal, Values::descending});
}

TEST(Ledger, llm_c_821_rows_not_a_multiple_of_rows_per_block) { check("llm_c_821", {Values::normal}); }

TEST(Ledger, vllm_28103_columns_of_a_wider_matrix) {
  check("vllm_28103", {Values::normal});
  check("vllm_28103", {Values::normal}, {.shared_matrix = true});
}

TEST(Ledger, apex_1184_same_bits_whatever_the_order) {
  const std::uint64_t times = runner().name() == "emulator" ? 10 : 1000;
  for (const SampledCase& c : ledger_cases_of("apex_1184")) {
    const Call call = make_call(c.workload, c.config, {Values::normal, Values::wide});
    Call first = call;
    runner().run(first, 1);
    for (std::uint64_t order = 2; order < 2 + times; ++order) EXPECT_EQ(run_and_check(call, order * 10), "");
    Call last = call;
    runner().run(last, 100'000);
    EXPECT_EQ(output_of(first), output_of(last));
  }
}

TEST(Ledger, ggml_1491_out_aliases_in) { check("ggml_1491", {Values::normal, Values::ascending}); }

TEST(Ledger, pytorch_75493_row_of_only_minus_infinity) {
  check("pytorch_75493", {Values::all_minus_inf, Values::normal, Values::all_minus_inf, Values::one_finite});
}

TEST(Ledger, flashinfer_1178_one_slice_minus_infinity_every_slice_in_turn) {
  for (const int slices : {2, 8}) {
    check(
        "flashinfer_1178",
        [&](auto r, auto c) {
          const std::int64_t cols = slices == 2 ? 33 : 4096;
          return c * slices / cols == r % slices ? -inf : normal(r, c);
        },
        {}, Values::minus_inf_head);
  }
  check("flashinfer_1178_long", {Values::minus_inf_head, Values::minus_inf_tail});
}

TEST(Ledger, torch_mojo_319_rows_shorter_than_one_pass_of_the_block) {
  check("torch_mojo_319", {Values::normal, Values::constant});
}

TEST(Ledger, pytorch_6864_one_infinity_or_nan_gives_a_nan_row) {
  check("pytorch_6864",
        {Values::one_plus_inf, Values::normal, Values::nan_among_minus_inf, Values::one_nan, Values::normal});
}

TEST(Ledger, flashinfer_4401_no_finite_number_stands_for_minus_infinity) {
  for (const SampledCase& c : ledger_cases_of("flashinfer_4401")) {
    if (!promised(c.workload, c.config, Values::wide)) continue;
    const double low = c.workload.dtype == Dtype::f16 ? -6e4 : -1e30;
    const Call call = make_call(c.workload, c.config, [&](auto, auto) { return low; });
    EXPECT_EQ(run_and_check(call, 5), "");
    // And with -inf beside it: 1 / (number of finite elements).
    const Call half = make_call(c.workload, c.config, [&](auto, auto col) { return col % 2 ? low : -inf; });
    EXPECT_EQ(run_and_check(half, 5), "");
  }
}

TEST(Ledger, pytorch_38839_log_softmax_far_from_zero) {
  check(
      "pytorch_38839", [](auto r, auto c) { return normal(r, c) / 8 - 1e7; }, {}, Values::far_from_zero);
  check(
      "pytorch_38839", [](auto, auto c) { return 40000.0 + static_cast<double>(c % 4); }, {}, Values::far_from_zero);
}

TEST(Ledger, pytorch_51102_layernorm_of_a_large_mean) {
  check(
      "pytorch_51102", [](auto r, auto c) { return normal(r, c) + 2000; }, {}, Values::far_from_zero);
  check(
      "pytorch_51102", [](auto r, auto c) { return normal(r, c) * 0.01 + 100; }, {}, Values::far_from_zero);
  check(
      "pytorch_40308", [](auto r, auto c) { return normal(r, c) * 0.01 + 100; }, {}, Values::far_from_zero);
}

TEST(Ledger, onnxruntime_29034_squares_beyond_f16) {
  check("onnxruntime_29034", [](auto, auto c) { return c % 2 ? 60000.0 : -60000.0; });
  check("onnxruntime_29034", [](auto r, auto c) { return std::fmod(normal(r, c) * 20000, 60000); });
}

TEST(Ledger, pytorch_41527_zeros_and_a_tiny_eps) { check("pytorch_41527", {Values::zeros}); }

TEST(Ledger, pytorch_17256_no_rows_or_no_columns) { check("pytorch_17256", {Values::normal}); }

TEST(Ledger, apex_403_weight_and_bias_are_optional) {
  for (const char* report : {"apex_403_none", "apex_403_weight", "apex_403_bias"}) check(report, {Values::normal});
}

/// The case of every NaN of a merge: a part that is only -inf, a part with the NaN, a part with numbers, in every
/// order.
TEST(Ledger, a_nan_survives_every_merge) {
  for (const char* report : {"pytorch_6864", "flashinfer_1178"}) {
    check(
        report, [](auto r, auto c) { return c == (r * 43) % 33 ? nan
                                            : c % 3 == 0       ? -inf
                                                               : normal(r, c); }, {},
        Values::one_nan);
  }
}

}  // namespace
}  // namespace rowtune::spec
