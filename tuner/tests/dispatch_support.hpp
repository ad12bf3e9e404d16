#pragma once
// Rows of a leaderboard for the tests of dispatch tables: of a device that no kernel is known for, and of an H200.

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "db/database.hpp"

namespace rowtune {

inline db::BestRow row(std::int64_t rows, std::int64_t cols, const std::string& config, double time_us = 5) {
  db::BestRow r;
  r.device = "cuda:0", r.device_model = "Test GPU", r.device_limits = "units=1";
  r.op = "softmax", r.dtype = "bf16", r.regime = "cold", r.options = "-";
  r.rows = rows, r.cols = cols, r.ld = cols;
  r.config = config, r.status = "ok", r.rank = 1;
  r.time_us = time_us, r.time_lo_us = 0.99 * time_us, r.time_hi_us = 1.01 * time_us;
  r.ceiling_fraction = 0.9, r.base_config = "block.b256", r.base_time_us = 10, r.gain_over_base = 10 / time_us;
  r.ties = 2, r.max_error_ulp = 0.5;
  r.toolchain = "NVRTC 13.0", r.source_fingerprint = "abc", r.protocol = 1;
  return r;
}

/// The same config for several shapes of a workload that was measured in full: the winner and the others.
inline std::vector<db::BestRow> sweep(std::int64_t rows, std::int64_t cols,
                                      const std::vector<std::pair<std::string, double>>& times) {
  std::vector<db::BestRow> all;
  const double base = times.back().second;  // the last is the base
  for (const auto& [config, time] : times) {
    auto r = row(rows, cols, config, time);
    r.rank = static_cast<int>(all.size()) + 1;
    r.base_config = times.back().first, r.base_time_us = base, r.gain_over_base = base / time;
    all.push_back(r);
  }
  return all;
}

constexpr const char* h200 =
    "sm_90 units=132 threads=1024/2048 registers=65536 shared=232448/233472 cluster=16 l2=62914560";
constexpr const char* base_of_long_rows = "reread.b256.r1.v8.s1.u4.g0.h0.x1";

inline std::vector<db::BestRow> on_h200(std::int64_t rows, std::int64_t cols,
                                        const std::vector<std::pair<std::string, double>>& times) {
  auto all = sweep(rows, cols, times);
  for (auto& r : all) r.device_model = "NVIDIA H200", r.device_limits = h200;
  return all;
}

inline std::string block(int threads) { return fmt::format("block.b{}.r1.v8.s1.p1.m0.g0.h1.x1", threads); }

/// 8192 columns with three numbers of rows; block(512) is within 2 % of every winner, block(256) of two.
inline std::vector<db::BestRow> three_workloads() {
  std::vector<db::BestRow> all;
  for (const auto& one :
       {on_h200(64, 8192, {{block(256), 10.0}, {block(512), 10.15}, {block(1024), 12}, {base_of_long_rows, 20}}),
        on_h200(512, 8192, {{block(1024), 20.0}, {block(512), 20.2}, {block(256), 22}, {base_of_long_rows, 40}}),
        on_h200(4096, 8192, {{block(512), 30.0}, {block(256), 30.1}, {block(1024), 33}, {base_of_long_rows, 60}})})
    all.insert(all.end(), one.begin(), one.end());
  return all;
}

}  // namespace rowtune
