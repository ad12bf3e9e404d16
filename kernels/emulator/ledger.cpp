#include "kernels/emulator/ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "kernels/cuda/known_devices.hpp"
#include "kernels/space.hpp"

namespace rowtune::emulator {
namespace {

using Op = Operation;

struct Report {
  const char* name;
  std::vector<Operation> ops;
  std::vector<Dtype> dtypes;
  std::vector<const char*> shapes;
  std::vector<const char*> configs;  ///< names without the axes x and w; empty: one of every algorithm
  const char* options = nullptr;     ///< null: the operation's own
};

const std::vector<Op> softmaxes{Op::softmax, Op::log_softmax};
const std::vector<Op> fused{Op::fused_add_rmsnorm};
const std::vector<Op> layernorm{Op::layernorm};

const std::vector<Report>& reports() {
  static const std::vector<Report> all{
      // Any row count: no limit of a grid dimension.
      {"apex_411", layernorm, {Dtype::f32}, {"65537x3"}, {"lanes.b256.r32.v4.s1.p0.h0"}},
      // Warps not a multiple of four.
      {"flashinfer_634",
       fused,
       {Dtype::f16},
       {"3x3584"},
       {"block.b96.r1.v8.s1.p1.m0.h0", "block.b160.r1.v8.s1.p0.m0.h0", "cluster.b224.r1.v8.s2.p0.m0.h0",
        "split.b96.r1.v8.s3.p1.h0", "shared.b96.r1.v8.s1.a0.h0", "reread.b224.r1.v8.s1.u4.g0.h0"}},
      // More than 48 KB of shared memory.
      {"flashinfer_718",
       fused,
       {Dtype::f32, Dtype::bf16},
       {"2x16384"},
       {"shared.b512.r1.v4.s1.a0.h0", "shared.b512.r1.v8.s1.a0.h0", "reread.b256.r1.v4.s1.u4.g0.h0",
        "reread.b256.r1.v8.s1.u4.g0.h0"}},
      // Elements that start one behind an aligned address.
      {"TransformerEngine_490", {Op::layernorm, Op::fused_add_rmsnorm}, {Dtype::f16}, {"3x1024:off=1"}, {}},
      // Every tensor at an offset of its own: single elements are all that is aligned in all of them.
      {"TransformerEngine_490_each",
       {Op::layernorm, Op::fused_add_rmsnorm},
       {Dtype::f16},
       {"3x1024:off=1"},
       {"lanes.b128.r1.v1.s1", "block.b256.r1.v1.s1", "cluster.b128.r1.v1.s2", "split.b128.r1.v1.s2",
        "reread.b128.r1.v1.s1", "block.b128.r1.v8.s1"},
       "weight,bias,eps=1e-05"},
      {"aiter_5044", {Op::softmax, Op::layernorm, Op::fused_add_rmsnorm}, {Dtype::f16}, {"7x769"}, {}},
      {"triton_9838", layernorm, {Dtype::f32}, {"3x3", "3x17", "2x1023", "2x1536"}, {}},
      {"quack_far_from_zero", layernorm, {Dtype::f32}, {"3x769"}, {}},
      // Configs wider than the row.
      {"quack_cluster",
       {Op::softmax, Op::rmsnorm},
       {Dtype::bf16},
       {"256x256"},
       {"cluster.b128.r1.v8.s2.p1.m0.h0", "cluster.b256.r1.v8.s4.p0.m0.h0", "cluster.b32.r1.v1.s16.p1.m0.h0"}},
      {"quack_degenerate", {Op::log_softmax, Op::layernorm}, {Dtype::bf16}, {"5x2", "5x33"}, {}},
      // Rows not a multiple of the rows of a block.
      {"llm_c_821",
       {Op::softmax, Op::layernorm},
       {Dtype::f32},
       {"37x31"},
       {"lanes.b128.r8.v1.s1.p0.h0", "lanes.b256.r4.v4.s1.p0.h1", "lanes.b32.r2.v2.s1.p0.h0"}},
      // Columns of a wider matrix.
      {"vllm_28103", {Op::rmsnorm, Op::fused_add_rmsnorm}, {Dtype::f16}, {"4x500:ld=1000:off=3"}, {}},
      // Blocks that take several rows: shared memory is used again.
      {"apex_1184",
       {Op::layernorm, Op::softmax},
       {Dtype::f16},
       {"60x520"},
       {"reread.b128.r1.v8.s1.u1.g1.h1", "reread.b64.r1.v8.s1.u1.g2.h0", "split.b64.r1.v8.s2.p1.h0",
        "split.b32.r1.v8.s3.p0.h0", "split_reread.b64.r1.v8.s2.u4.h0"}},
      {"ggml_1491", {Op::softmax, Op::rmsnorm}, {Dtype::f32}, {"3x1025"}, {}, "weight,in_place,eps=1e-06"},
      {"pytorch_75493", softmaxes, {Dtype::f16}, {"4x129"}, {}},
      // One slice of a row is -inf, every slice in turn.
      {"flashinfer_1178", softmaxes, {Dtype::f32}, {"8x33", "8x4096"}, {}},
      {"flashinfer_1178_long", {Op::softmax}, {Dtype::f32}, {"2x262144"}, {"split_reread.b256.r1.v4.s8.u4.h0"}},
      {"torch_mojo_319", {Op::softmax, Op::layernorm, Op::rmsnorm}, {Dtype::f32}, {"3x5"}, {}},
      {"pytorch_6864", softmaxes, {Dtype::f32}, {"6x257"}, {}},
      {"flashinfer_4401", softmaxes, tensor_dtypes(), {"3x1000"}, {}},
      {"pytorch_38839", {Op::log_softmax}, {Dtype::f32}, {"3x4", "3x1000"}, {}},
      {"pytorch_51102", layernorm, {Dtype::f32}, {"2x1024", "2x8192"}, {}},
      {"pytorch_40308", layernorm, {Dtype::f32}, {"2x32768"}, {"reread.b256.r1.v4.s1", "block.b1024.r1.v4.s1"}},
      {"onnxruntime_29034", {Op::rmsnorm, Op::fused_add_rmsnorm}, {Dtype::f16}, {"3x1024"}, {}},
      {"pytorch_41527", layernorm, {Dtype::f16}, {"3x128"}, {}, "weight,bias,eps=1e-12"},
      {"pytorch_17256", {Op::softmax, Op::fused_add_rmsnorm}, {Dtype::f32}, {"0x100", "100x0"}, {}},
      {"apex_403_none", {Op::layernorm, Op::rmsnorm}, {Dtype::f32}, {"3x100"}, {}, "eps=1e-05"},
      {"apex_403_weight", layernorm, {Dtype::f32}, {"3x100"}, {}, "weight,eps=1e-05"},
      {"apex_403_bias", layernorm, {Dtype::f32}, {"3x100"}, {}, "bias,eps=1e-05"},
      // Offsets beyond 2^31 and 2^32 elements, by a row stride: every algorithm.
      {"huge_stride",
       {Op::softmax, Op::layernorm, Op::fused_add_rmsnorm, Op::copy},
       {Dtype::f16},
       {"5x300:ld=2147483647", "5x304:ld=2147483640"},
       {}},
      // Offsets beyond 2^32 elements by many rows: the last blocks of a virtual launch.
      {"pytorch_84144",
       softmaxes,
       {Dtype::f32},
       {"85632x50259"},
       {"reread.b256.r1.v4.s1.u4.g0.h0", "block.b1024.r1.v4.s1.p0.m0.h0", "two_launches.b256.r1.v4.s8.u4",
        "cluster.b512.r1.v4.s4.p0.m0.h0"}},
      {"pytorch_181555",
       layernorm,
       {Dtype::f16},
       {"1048577x4096"},
       {"reread.b256.r1.v8.s1.u4.g0.h0", "block.b256.r1.v8.s1.p1.m0.h0", "lanes.b128.r1.v8.s1.p1.h0"}},
      {"vllm_42862",
       {Op::rmsnorm, Op::fused_add_rmsnorm},
       {Dtype::f16},
       {"1048641x4096"},
       {"reread.b256.r1.v8.s1.u4.g0.h0", "block.b256.r1.v8.s1.p1.m0.h0", "lanes.b128.r1.v8.s1.p1.h0",
        "shared.b256.r1.v8.s1.a0.h0"}},
      // One row of nearly 2^31 columns.
      {"pytorch_191565", {Op::rmsnorm}, {Dtype::f16}, {"1x2147483647"}, {"reread.b1024.r1.v8.s1"}, "eps=1e-06"},
      {"copy_2_32", {Op::copy}, {Dtype::f32}, {"85632x50259"}, {"copy.b256.r1.v4.s1.u2.h0"}},
  };
  return all;
}

/// The axes of the operation are appended with their first values where a name leaves them out.
Config complete(const char* name, const Workload& w, const DeviceInfo& device) {
  Config config = split_config_name(name);
  for (const Axis& axis : algorithm_named(DeviceKind::cuda, config.algorithm).axes(w, device))
    if (config.get(axis.letter, -1) == -1) config.axes.push_back({axis.letter, axis.values.front()});
  return config;
}

bool serves(const Config& config, Operation op) {
  for (const Operation o : algorithm_named(DeviceKind::cuda, config.algorithm).operations)
    if (o == op) return true;
  return false;
}

/// `turn`: the how manieth of `turns` workloads of the report, which deal the algorithms out among them.
void add(std::vector<LedgerCase>& cases, const Report& report, const Workload& w, const DeviceInfo& device,
         std::size_t turn, std::size_t turns) {
  if (report.configs.empty()) {
    const auto all = legal_cases(w, device, 1);
    for (std::size_t i = 0; i < all.size(); ++i)
      if (i % std::min<std::size_t>(3, turns) == turn % std::min<std::size_t>(3, turns))
        cases.push_back({report.name, all[i]});
    return;
  }
  for (const char* name : report.configs) {
    const Config config = complete(name, w, device);
    // A name may be meant for one dtype of the report (its widest access).
    if (serves(config, w.op) && is_legal(w, device, config)) cases.push_back({report.name, {w, config}});
  }
}

}  // namespace

const std::vector<LedgerCase>& ledger_cases() {
  static const std::vector<LedgerCase> all = [] {
    const DeviceInfo device = cuda::known_device(90);
    std::vector<LedgerCase> cases;
    for (const Report& report : reports()) {
      const std::size_t before = cases.size();
      const std::size_t turns = report.ops.size() * report.dtypes.size() * report.shapes.size();
      std::size_t turn = 0;
      for (const Operation op : report.ops)
        for (const Dtype dtype : report.dtypes)
          for (const char* shape : report.shapes) {
            Workload w = Workload::of(op, dtype, parse_shape(shape));
            if (report.options) w.options = parse_options(report.options);
            if (!is_norm(op)) w.options.weight = w.options.bias = false, w.options.eps = 0;
            add(cases, report, w, device, turn++, turns);
          }
      if (cases.size() == before)
        throw std::logic_error(fmt::format("report {}: no config of it is legal", report.name));
    }
    return cases;
  }();
  return all;
}

std::vector<SampledCase> ledger_cases_of(const std::string& report) {
  std::vector<SampledCase> cases;
  for (const LedgerCase& c : ledger_cases())
    if (c.report == report) cases.push_back(c.at);
  return cases;
}

}  // namespace rowtune::emulator
