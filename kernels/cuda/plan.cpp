#include "kernels/cuda/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "kernels/include/rowtune/dispatch/geometry.cuh"

namespace rowtune::cuda {
namespace {

using dispatch::ceil_div;
using dispatch::grid_limit;

/// How an algorithm is spelled in kernels.cuh: function, view, softmax method.
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

std::string traits_of(const Workload& w, const dispatch::Kernel& kernel, bool loop) {
  std::string k = "struct K : rowtune::KernelTraits {\n";
  const auto number = [&](const char* name, std::int64_t value) {
    k += fmt::format("  static constexpr int {} = {};\n", name, value);
  };
  const auto flag = [&](const char* name, bool value) {
    k += fmt::format("  static constexpr bool {} = {};\n", name, value);
  };
  k += fmt::format("  using Element = rowtune::{};\n", to_string(w.dtype));
  number("block", kernel.block);
  number("vector", kernel.vector);
  if (kernel.vectors > 0) number("vectors", kernel.vectors);
  number("rows_per_warp", kernel.rows_per_warp);
  number("split", kernel.split);
  number("batch", kernel.batch);
  flag("ragged", kernel.ragged);
  flag("packed", kernel.packed);
  flag("loop", loop);
  flag("early", kernel.early);
  if (kernel.ahead) flag("ahead", true);
  if (kernel.shared_weights > 0) flag("shared_weights", true);
  flag("async", kernel.async);
  number("load_hint", dispatch::load_hint_of(kernel));
  number("again_hint", dispatch::later_hint_of(kernel));
  number("store_hint", dispatch::later_hint_of(kernel));
  number("exp", kernel.exp);
  number("variance", kernel.variance);
  flag("weight", w.options.weight);
  flag("bias", w.options.bias);
  flag("adds_residual", w.op == Operation::fused_add_rmsnorm);
  return k + "};\n";
}

/// __launch_bounds__ with the floor on blocks per multiprocessor that keeps the registers few.
std::string entry(const dispatch::Kernel& kernel, const std::string& name, const std::string& call) {
  const int floor = dispatch::bound_of(kernel);
  const std::string bounds = floor > 0 ? fmt::format("{}, {}", kernel.block, floor) : fmt::format("{}", kernel.block);
  return fmt::format(
      "extern \"C\" __global__ void __launch_bounds__({}) {}(const rowtune::RowArgs args) {{\n  {}(args);\n}}\n",
      bounds, name, call);
}

/// The axes of a config, without what the shape adds. Algorithms that no table has (two_launches, unsafe, copy) are
/// described as the block kernels that they launch like.
dispatch::Kernel axes_of(const Config& config) {
  dispatch::Kernel k{};
  k.family = family_of(config.algorithm).value_or(dispatch::Family::reread);
  k.block = config.block_size();
  k.rows_per_warp = config.rows_per_warp();
  k.vector = config.vector_width();
  k.split = config.split_count();
  k.packed = config.get('p', 0) == 1;
  k.async = config.get('a', 0) == 1;
  k.batch = config.get('u', 4);
  k.hint = config.get('h', 0);
  k.exp = config.get('x', 1);
  k.variance = config.get('w', 3);
  k.min_blocks = config.get('m', 0);
  k.resident_blocks = config.get('g', 0);
  k.early = config.get('e', 0) >= 1;
  k.ahead = config.get('l', 0) == 1;
  return k;
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
  layout.vectors = w.shape.cols / vector;
  return layout;
}

int threads_per_row(const Config& config) { return dispatch::threads_per_row(axes_of(config)); }

std::int64_t vectors_per_thread(const Workload& w, const Config& config) {
  return ceil_div(row_layout(w, config.vector_width()).vectors, threads_per_row(config));
}

std::optional<dispatch::Family> family_of(const std::string& algorithm) {
  using dispatch::Family;
  constexpr std::pair<const char*, Family> families[] = {
      {"lanes", Family::lanes},
      {"block", Family::block},
      {"shared", Family::shared},
      {"cluster", Family::cluster},
      {"cluster_shared", Family::cluster_shared},
      {"split", Family::split},
      {"split_reread", Family::split_reread},
      {"reread", Family::reread},
      {"threepass", Family::threepass},
  };
  for (const auto& [name, family] : families)
    if (algorithm == name) return family;
  return std::nullopt;
}

dispatch::Kernel kernel_for(const Workload& w, const Config& config) {
  dispatch::Kernel k = axes_of(config);
  k.ragged = row_layout(w, k.vector).ragged;
  k.shared_weights = config.get('e', 0) == 2 ? (w.options.weight ? 1 : 0) + (w.options.bias ? 1 : 0) : 0;
  k.vectors = rereads(config) ? 0 : static_cast<int>(std::max<std::int64_t>(1, vectors_per_thread(w, config)));
  return k;
}

Plan plan_kernel(const Workload& w, const Config& config) {
  const Spelling& how = spelling_of(config);
  Plan plan;
  plan.block = config.block_size();
  plan.split = config.split_count();
  const std::int64_t rows = w.shape.rows;
  const std::int64_t per_thread = vectors_per_thread(w, config);
  plan.depth = static_cast<double>(per_thread) + std::bit_width(static_cast<unsigned>(config.vector_width())) +
               std::bit_width(static_cast<unsigned>(threads_per_row(config))) + 1 +
               (row_layout(w, config.vector_width()).ragged ? 1 : 0);

  if (config.algorithm == "copy") {
    // A contiguous matrix is one row of all its elements.
    Workload flat = w;
    if (w.shape.contiguous()) flat.shape = {1, rows * w.shape.cols, rows * w.shape.cols, w.shape.off};
    dispatch::Kernel kernel = kernel_for(flat, config);
    kernel.vectors = config.get('u', 1);
    const std::int64_t step = static_cast<std::int64_t>(kernel.block) * kernel.vectors;
    const std::int64_t blocks = w.shape.contiguous() ? ceil_div(row_layout(flat, kernel.vector).vectors, step) : rows;
    plan.source =
        includes_of(w.op) + traits_of(w, kernel, true) + entry(kernel, "rowtune_kernel", "rowtune::copy_kernel<K>");
    plan.launches = {{"rowtune_kernel", std::clamp<std::int64_t>(blocks, 1, grid_limit), false, 0, 1, 0}};
    plan.depth = 0;
    return plan;
  }

  const dispatch::Kernel kernel = kernel_for(w, config);
  const dispatch::Grid grid = dispatch::grid_of(kernel, rows);
  const std::string operation = operation_of(w, config);
  const std::string view = *how.view != 0 ? how.view : kernel.packed ? "PackedView" : "FloatView";
  plan.workspace_bytes = dispatch::workspace_of(kernel, rows);
  plan.source = includes_of(w.op) + traits_of(w, kernel, grid.loop) + fmt::format("using Op = {};\n", operation);
  const auto add_launch = [&](const std::string& name, const std::string& call) {
    plan.source += entry(kernel, name, call);
    plan.launches.push_back(
        {name, grid.blocks, grid.resident, grid.blocks_per_unit, grid.cluster, grid.dynamic_shared});
  };
  if (config.algorithm == "two_launches") {
    // Rows times parts must fit one grid: no loop, `must` constraint `grid`.
    add_launch("rowtune_first", "rowtune::two_launches_first<K, Op>");
    add_launch("rowtune_second", "rowtune::two_launches_second<K, Op>");
    plan.workspace_bytes = rows * plan.split * exchange_words * 4;
  } else if (config.algorithm == "unfused") {
    add_launch("rowtune_add", "rowtune::unfused_add<K>");
    add_launch("rowtune_norm", "rowtune::unfused_norm<K, rowtune::RmsNormOperation>");
  } else {
    add_launch("rowtune_kernel", fmt::format("rowtune::{}<K, Op, rowtune::{}>", how.function, view));
  }
  return plan;
}

}  // namespace rowtune::cuda
