#include "kernels/cuda/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "kernels/include/rowtune/exchange_layout.cuh"

namespace rowtune::cuda {
namespace {

constexpr std::int64_t grid_limit = 2147483647;

/// How an algorithm is spelled in kernels.cuh: function, view, softmax method, and whether it takes fewer blocks than
/// rows.
struct Spelling {
  const char* algorithm;
  const char* function;
  const char* view;
  const char* method;
};

constexpr Spelling spellings[] = {
    {"lanes", "lanes_kernel", "", "softmax_folded"},
    {"block", "block_kernel", "", "softmax_folded"},
    {"shared", "block_kernel", "SharedView", "softmax_folded"},
    {"cluster", "cluster_kernel", "", "softmax_folded"},
    {"cluster_shared", "cluster_kernel", "SharedView", "softmax_folded"},
    {"split", "split_kernel", "", "softmax_folded"},
    {"split_reread", "split_kernel", "RereadView", "softmax_online"},
    {"reread", "block_kernel", "RereadView", "softmax_online"},
    {"threepass", "block_kernel", "RereadView", "softmax_threepass"},
    {"unsafe", "block_kernel", "RereadView", "softmax_unsafe"},
    {"two_launches", "", "RereadView", "softmax_online"},
    {"unfused", "", "RereadView", ""},
    {"copy", "copy_kernel", "", ""},
};

const Spelling& spelling_of(const Config& config) {
  for (const auto& s : spellings)
    if (config.algorithm == s.algorithm) return s;
  throw UsageError(fmt::format("no CUDA kernel is known for algorithm '{}'", config.algorithm));
}

bool rereads(const Config& config) { return std::string_view(spelling_of(config).view) == "RereadView"; }

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::string operation_of(const Workload& w, const Config& config) {
  switch (w.op) {
    case Operation::softmax:
      return fmt::format("rowtune::SoftmaxOperation<K, rowtune::{}, false>", spelling_of(config).method);
    case Operation::log_softmax:
      return fmt::format("rowtune::SoftmaxOperation<K, rowtune::{}, true>", spelling_of(config).method);
    case Operation::layernorm:
      return "rowtune::LayerNormOperation<K>";
    case Operation::argmax_logsumexp:
      return fmt::format("rowtune::ArgmaxLogSumExpOperation<K, {}>", rereads(config));
    default:
      return "rowtune::RmsNormOperation<K>";
  }
}

/// Only what the operation is made of, so that a change to one operation leaves the others' measurements valid.
std::string includes_of(Operation op) {
  std::string text = "#include \"rowtune/kernels.cuh\"\n";
  for (const auto& header : operation_headers(op)) text += fmt::format("#include \"rowtune/{}\"\n", header);
  return text;
}

std::string traits_of(const Workload& w, const Config& config, const RowLayout& layout, bool loop) {
  std::string k = "struct K : rowtune::KernelTraits {\n";
  const auto number = [&](const char* name, std::int64_t value) {
    k += fmt::format("  static constexpr int {} = {};\n", name, value);
  };
  const auto flag = [&](const char* name, bool value) {
    k += fmt::format("  static constexpr bool {} = {};\n", name, value);
  };
  k += fmt::format("  using Element = rowtune::{};\n", to_string(w.dtype));
  number("block", config.block_size());
  number("vector", layout.vector);
  if (config.algorithm == "copy")
    number("vectors", config.get('u', 1));
  else if (!rereads(config))
    number("vectors", std::max<std::int64_t>(1, vectors_per_thread(w, config)));
  number("rows_per_warp", config.rows_per_warp());
  number("split", config.split_count());
  number("batch", config.get('u', 4));
  flag("ragged", layout.ragged);
  flag("packed", config.get('p', 0) == 1);
  flag("loop", loop);
  flag("early", config.get('e', 0) == 1);
  flag("async", config.get('a', 0) == 1);
  number("load_hint", config.get('h', 0));
  number("store_hint", config.get('h', 0));
  number("exp", config.get('x', 1));
  number("variance", config.get('w', 3));
  flag("weight", w.options.weight);
  flag("bias", w.options.bias);
  flag("adds_residual", w.op == Operation::fused_add_rmsnorm);
  return k + "};\n";
}

/// __launch_bounds__ with the floor on blocks per multiprocessor that keeps the registers few.
std::string entry(const Config& config, const std::string& name, const std::string& call) {
  // Without a floor ptxas may settle for 32 registers and spill (seen in the split kernels on sm_90).
  const int floor = config.algorithm == "split" || config.algorithm == "split_reread" ? 1 : config.get('m', 0);
  const std::string bounds =
      floor > 0 ? fmt::format("{}, {}", config.block_size(), floor) : fmt::format("{}", config.block_size());
  return fmt::format(
      "extern \"C\" __global__ void __launch_bounds__({}) {}(const rowtune::RowArgs args) {{\n  {}(args);\n}}\n",
      bounds, name, call);
}

}  // namespace

std::vector<std::string> operation_headers(Operation op) {
  switch (op) {
    case Operation::copy:
      return {};
    case Operation::softmax:
    case Operation::log_softmax:
      return {"softmax.cuh"};
    case Operation::layernorm:
      return {"layernorm.cuh"};
    case Operation::argmax_logsumexp:
      return {"argmax_logsumexp.cuh"};
    default:
      return {"rmsnorm.cuh"};
  }
}

int widest_vector(Dtype dtype) { return 16 / size_of(dtype); }

RowLayout row_layout(const Workload& w, int vector) {
  // Buffers start at 256-byte boundaries, the first element `off` behind that; all tensors of a workload alike.
  RowLayout layout;
  layout.vector = vector;
  const bool rows_aligned = w.shape.off % vector == 0 && (w.shape.ld % vector == 0 || w.shape.rows <= 1);
  layout.ragged = !rows_aligned || w.shape.cols % vector != 0;
  const std::int64_t worst_head = rows_aligned ? 0 : vector - 1;
  layout.vectors = ceil_div(w.shape.cols + worst_head, vector);
  return layout;
}

int threads_per_row(const Config& config) {
  if (config.algorithm == "lanes") return 32 / config.rows_per_warp();
  return config.block_size() * config.split_count();
}

std::int64_t vectors_per_thread(const Workload& w, const Config& config) {
  return ceil_div(row_layout(w, config.vector_width()).vectors, threads_per_row(config));
}

Plan plan_kernel(const Workload& w, const Config& config) {
  const Spelling& how = spelling_of(config);
  Plan plan;
  plan.block = config.block_size();
  plan.split = config.split_count();
  const std::int64_t rows = w.shape.rows;
  const std::int64_t per_thread = vectors_per_thread(w, config);
  plan.depth = static_cast<double>(per_thread) + std::bit_width(static_cast<unsigned>(config.vector_width())) +
               std::bit_width(static_cast<unsigned>(threads_per_row(config))) + 1;

  if (config.algorithm == "copy") {
    // A contiguous matrix is one row of all its elements.
    Workload flat = w;
    if (w.shape.contiguous()) flat.shape = {1, rows * w.shape.cols, rows * w.shape.cols, w.shape.off};
    const RowLayout layout = row_layout(flat, config.vector_width());
    const std::int64_t step = static_cast<std::int64_t>(config.block_size()) * config.get('u', 1);
    const std::int64_t blocks = w.shape.contiguous() ? ceil_div(layout.vectors, step) : rows;
    plan.source = includes_of(w.op) + traits_of(w, config, layout, true) +
                  entry(config, "rowtune_kernel", "rowtune::copy_kernel<K>");
    plan.launches = {{"rowtune_kernel", std::clamp<std::int64_t>(blocks, 1, grid_limit), false, 0, false, 1, 0}};
    plan.depth = 0;
    return plan;
  }

  const RowLayout layout = row_layout(w, config.vector_width());
  const std::string operation = operation_of(w, config);
  const std::string view = *how.view != 0 ? how.view : config.get('p', 0) == 1 ? "PackedView" : "FloatView";
  const std::int64_t rows_per_block =
      config.algorithm == "lanes" ? config.block_size() / 32 * config.rows_per_warp() : 1;
  Launch launch{"rowtune_kernel", 0, false, 0, false, 1, 0};
  const std::int64_t wanted = std::max<std::int64_t>(1, ceil_div(rows, rows_per_block)) * plan.split;
  launch.blocks = std::min(wanted, grid_limit / plan.split * plan.split);
  bool loop = launch.blocks < wanted;

  if (config.algorithm == "split" || config.algorithm == "split_reread") {
    // Resident together by the bound on the grid. A cooperative launch would say so to the driver too, but costs about
    // a microsecond of each launch in a graph (softmax bf16 1x152064 on an H200: 4.96 us with it).
    launch.resident = loop = true;
    plan.workspace_bytes = exchange_bytes(rows, plan.split);
  }
  if (config.get('g', 0) > 0) {  // persistent: g blocks on each multiprocessor
    launch.resident = loop = true;
    launch.blocks_per_unit = config.get('g', 0);
  }
  if (config.algorithm == "cluster" || config.algorithm == "cluster_shared") launch.cluster = plan.split;
  if (config.algorithm == "shared" || config.algorithm == "cluster_shared")
    launch.dynamic_shared = static_cast<int>(std::max<std::int64_t>(1, per_thread) * config.block_size() * 16);

  plan.source = includes_of(w.op) + traits_of(w, config, layout, loop) + fmt::format("using Op = {};\n", operation);
  if (config.algorithm == "two_launches") {
    // Rows times parts must fit one grid: no loop, `must` constraint `grid`.
    plan.source += entry(config, "rowtune_first", "rowtune::two_launches_first<K, Op>") +
                   entry(config, "rowtune_second", "rowtune::two_launches_second<K, Op>");
    Launch second = launch;
    launch.function = "rowtune_first";
    second.function = "rowtune_second";
    plan.launches = {launch, second};
    plan.workspace_bytes = rows * plan.split * exchange_words * 4;
  } else if (config.algorithm == "unfused") {
    plan.source += entry(config, "rowtune_add", "rowtune::unfused_add<K>") +
                   entry(config, "rowtune_norm", "rowtune::unfused_norm<K, rowtune::RmsNormOperation>");
    Launch second = launch;
    launch.function = "rowtune_add";
    second.function = "rowtune_norm";
    plan.launches = {launch, second};
  } else {
    plan.source += entry(config, "rowtune_kernel", fmt::format("rowtune::{}<K, Op, rowtune::{}>", how.function, view));
    plan.launches = {launch};
  }
  return plan;
}

}  // namespace rowtune::cuda
