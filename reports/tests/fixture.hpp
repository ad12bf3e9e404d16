#pragma once
// A database with a bit of everything, for the tests of reports and for looking at a page.

#include <fmt/format.h>

#include "db/tests/fixture.hpp"

namespace rowtune::reports::test {

using db::test::base;
using db::test::failed;
using db::test::ineligible;
using db::test::measured;

/// Two operations and the copy over a grid of shapes on `model`; names, times and failures vary by a fixed formula.
inline std::vector<db::Measurement> grid(const std::string& model, Regime regime = Regime::cold) {
  std::vector<db::Measurement> all;
  int i = 0;
  for (const auto op : {Operation::copy, Operation::softmax, Operation::layernorm, Operation::fused_add_rmsnorm})
    for (const auto dtype : {Dtype::f32, Dtype::bf16})
      for (const std::int64_t rows : {16, 512, 8192})
        for (const std::int64_t cols : {128, 1024, 4096, 16384, 131072}) {
          const auto w = Workload::of(op, dtype, Shape::of(rows * (op == Operation::copy ? 1 : 1), cols), regime);
          const double floor_us = 1.5 + double(bytes_moved(w)) / 4e6;  // 4 TB/s and a launch
          for (const auto& [config, factor] :
               {std::pair("block.b256.r1.v8.s1", 1.35), std::pair("block.b512.r1.v8.s1", 1.2),
                std::pair("warp.b128.r1.v8.s1", cols <= 1024 ? 1.05 : 2.5), std::pair("warp.b128.r4.v8.s1", 1.3),
                std::pair("split.b512.r1.v8.s8", rows <= 16 && cols >= 16384 ? 1.08 : 3.0)}) {
            ++i;
            const double wiggle = 1 + 0.01 * (i * 37 % 11);
            auto m = measured(w, config, floor_us * wiggle * (op == Operation::copy ? (factor + 1) / 2 : factor));
            m.key.device_model = model;
            m.max_error_ulp = 0.5 + 0.02 * (i * 13 % 17);
            if (m.key.config == "block.b256.r1.v8.s1") m = base(m);
            if (m.key.config == "warp.b128.r4.v8.s1" && cols == 131072)
              m = [&] {
                auto f = failed(w, config, Outcome::launch_error,
                                fmt::format("needs {} registers of 255\nand more text", 200 + i));
                f.key.device_model = model;
                return f;
              }();
            all.push_back(m);
          }
          if (op == Operation::softmax) {
            auto unsafe = ineligible(measured(w, "unsafe.b256.r1.v8.s1", floor_us));
            unsafe.key.device_model = model;
            all.push_back(unsafe);
          }
        }
  return all;
}

}  // namespace rowtune::reports::test
