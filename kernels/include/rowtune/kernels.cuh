#pragma once
// The kernels: one function for each way to lay rows over threads. K is a KernelTraits, Op an operation (softmax.cuh,
// layernorm.cuh, rmsnorm.cuh).
// Any number of rows; every function returns early for what it has no row for, after every barrier it owes.

#include "rowtune/teams.cuh"
#include "rowtune/views.cuh"
#include "rowtune/weights.cuh"

namespace rowtune {

/// Whether an operation gives results of a row, by `store`, instead of a tensor like its input, by `apply`.
template <class Op>
struct GivesRowResults {
  static constexpr bool value = false;
};

/// Every element of the row becomes an output; or one thread of the team stores what the row gives.
template <class Op, class View, class Team, class Known, class Weights>
ROWTUNE_DEVICE void write_row(const RowArgs& a, i64 row, View& view, const Team& team, const Known& known,
                              const Weights& weights) {
  weights.arrive();
  if constexpr (GivesRowResults<Op>::value) {
    if (team.rank() == 0 && a.cols > 0) Op::store(a, row, known);
  } else {
    view.write([&](auto& x, const auto& at, int n) { Op::template apply<View>(a, known, weights, n, at, x); });
  }
}

/// Very short to medium rows: 32 / rows_per_warp lanes a row, K::vectors vectors a lane.
template <class K, class Op, template <class, class, Fill> class ViewOf>
ROWTUNE_DEVICE void lanes_kernel(const RowArgs& a) {
  using Team = LanesTeam<K>;
  using View = ViewOf<K, Team, Op::fill>;
  constexpr int rows_per_block = K::block / 32 * K::rows_per_warp;
  Team team;
  for (i64 first = static_cast<i64>(block_index()) * rows_per_block; first < a.rows;
       first += static_cast<i64>(grid_blocks()) * rows_per_block) {
    const i64 row = first + thread_index() / Team::lanes;
    // Lanes past the last row take part in the shuffles, with an empty row.
    RowArgs mine = a;
    if (row >= a.rows) mine.cols = 0;
    const i64 place = row < a.rows ? row : 0;
    if constexpr (K::ragged && K::early && (K::weight || K::bias)) {
      SharedWeights<K, Team> weights;
      FetchedRow<K, Team, Op::fill> fetched;
      weights.fetch(a, place, team);
      fetched.fetch(typename View::Row(mine, place), team.rank());
      weights.settle();
      View view(mine, place, team, fetched);
      write_row<Op>(mine, row, view, team, Op::reduce(mine, view, team), weights);
      if constexpr (K::loop) block_barrier();  // before the next round stores the weights again
    } else {
      Weights<K, Team> weights;
      weights.prepare(a, place, team);
      View view(mine, place, team);
      weights.arrive_with(a, view);
      write_row<Op>(mine, row, view, team, Op::reduce(mine, view, team), weights);
    }
    if constexpr (!K::loop) break;
  }
}

/// One block per row: the row in registers, in shared memory, or read again.
template <class K, class Op, template <class, class, Fill> class ViewOf>
ROWTUNE_DEVICE void block_kernel(const RowArgs& a) {
  using Team = BlockTeam<K>;
  Team team;
  Weights<K, Team> weights;
  NextRow<K, Team, Op::fill> next;
  next.ask(a, block_index(), team);
  for (i64 row = block_index(); row < a.rows; row += grid_blocks()) {
    weights.prepare(a, row, team);
    ViewOf<K, Team, Op::fill> view(a, row, team, next);
    weights.arrive_with(a, view);
    next.ask(a, row + grid_blocks(), team);
    write_row<Op>(a, row, view, team, Op::reduce(a, view, team), weights);
    if constexpr (!K::loop) break;
  }
}

/// A cluster of K::split blocks per row.
template <class K, class Op, template <class, class, Fill> class ViewOf>
ROWTUNE_DEVICE void cluster_kernel(const RowArgs& a) {
  using Team = ClusterTeam<K>;
  Team team;
  Weights<K, Team> weights;
  for (i64 row = block_index() / K::split; row < a.rows; row += grid_blocks() / K::split) {
    weights.prepare(a, row, team);
    ViewOf<K, Team, Op::fill> view(a, row, team);
    weights.arrive_with(a, view);
    write_row<Op>(a, row, view, team, Op::reduce(a, view, team), weights);
    if constexpr (!K::loop) break;
  }
  team.leave();
}

/// K::split blocks per row in one launch; the grid is a multiple of K::split and wholly resident.
template <class K, class Op, template <class, class, Fill> class ViewOf>
ROWTUNE_DEVICE void split_kernel(const RowArgs& a) {
  using Team = SplitTeam<K>;
  Team team(a.workspace, a.rows);
  Weights<K, Team> weights;
  for (i64 row = block_index() / K::split; row < a.rows; row += grid_blocks() / K::split) {
    team.begin(row);
    weights.prepare(a, row, team);
    ViewOf<K, Team, Op::fill> view(a, row, team);
    weights.arrive_with(a, view);
    const auto known = Op::reduce(a, view, team);
    const bool last = !K::loop || row + grid_blocks() / K::split >= a.rows;
    if (last && thread_index() == 0) team.exchange.leave();
    write_row<Op>(a, row, view, team, known, weights);
    if (last) return;
  }
  if (thread_index() == 0) team.exchange.leave();  // never had a row
}

/// A team whose parts are merged by a second launch.
template <class K>
struct TwoLaunchTeam {
  static constexpr int lanes = 32;
  static constexpr int size = K::block * K::split;
  BlockTeam<K> block;
  ROWTUNE_DEVICE int part() const { return static_cast<int>(block_index() % K::split); }
  ROWTUNE_DEVICE int rank() const { return part() * K::block + thread_index(); }
};

/// First of two launches: the partial result of each block to the workspace.
template <class K, class Op>
ROWTUNE_DEVICE void two_launches_first(const RowArgs& a) {
  using Team = TwoLaunchTeam<K>;
  using State = typename Op::State;
  const i64 row = block_index() / K::split;
  if (row >= a.rows) return;
  Team team;
  RereadView<K, Team, Op::fill> view(a, row, team);
  const State mine = team.block.across(Op::partial(a, view, team));
  if (thread_index() < State::words)
    global_store<keep>(
        static_cast<unsigned*>(a.workspace) + (row * K::split + team.part()) * State::words + thread_index(),
        mine.word(thread_index()));
}

/// Second launch: every block merges the parts of its row in the same order and writes its own part.
template <class K, class Op>
ROWTUNE_DEVICE void two_launches_second(const RowArgs& a) {
  using Team = TwoLaunchTeam<K>;
  using State = typename Op::State;
  const i64 row = block_index() / K::split;
  if (row >= a.rows) return;
  Team team;
  State whole = State::empty();
  for (int part = thread_index() % 32; part < K::split; part += 32) {
    unsigned w[State::words];
#pragma unroll
    for (int i = 0; i < State::words; ++i)
      w[i] = global_load<keep>(static_cast<const unsigned*>(a.workspace) + (row * K::split + part) * State::words + i);
    whole = State::merge(whole, State::of(w));
  }
  const auto known = Op::known_of(a, whole.template over_lanes<32>());
  RereadView<K, Team, Op::fill> view(a, row, team);
  Weights<K, Team> weights;
  weights.prepare(a, row, team);
  write_row<Op>(a, row, view, team, known, weights);
}

/// fused_add_rmsnorm, unfused, first of two launches: the new residual of the whole tensor.
template <class K>
ROWTUNE_DEVICE void unfused_add(const RowArgs& a) {
  BlockTeam<K> team;
  for (i64 row = block_index(); row < a.rows; row += grid_blocks()) {
    RereadView<K, BlockTeam<K>, fill_zero> view(a, row, team);
    view.each([](const auto&, const auto&) {});  // the first look at a row stores it
  }
}
template <class K>
struct WithoutResidual : K {
  static constexpr bool adds_residual = false;
};
/// Second launch: rmsnorm of the new residual, which is read back from memory.
template <class K, template <class> class RmsNorm>
ROWTUNE_DEVICE void unfused_norm(const RowArgs& a) {
  using Plain = WithoutResidual<K>;
  RowArgs sums = a;
  sums.input = a.residual_out;
  sums.input_stride = a.residual_out_stride;
  block_kernel<Plain, RmsNorm<Plain>, RereadView>(sums);
}

/// copy: a contiguous matrix is one long row that all blocks share; otherwise each block copies rows of its own.
template <class K>
ROWTUNE_DEVICE void copy_kernel(const RowArgs& a) {
  constexpr i64 step = static_cast<i64>(K::block) * K::vectors;
  const bool one_row = a.rows == 1;
  for (i64 row = one_row ? 0 : block_index(); row < a.rows; row += one_row ? 1 : grid_blocks()) {
    const RowData<K, fill_zero, i64> data(a, row);
    const auto place = [&](i64 first, int n) { return data.geometry.vector(first + n * K::block + thread_index()); };
    for (i64 first = one_row ? block_index() * step : 0; first < data.geometry.vectors;
         first += one_row ? grid_blocks() * step : step) {
      Vec<typename K::Element, K::vector> fetched[K::vectors];
#pragma unroll
      for (int n = 0; n < K::vectors; ++n)
        fetched[n] = read_at<K, fill_zero, K::load_hint, K::vector>(data.input, place(first, n));
#pragma unroll
      for (int n = 0; n < K::vectors; ++n)
        write_at<K, K::store_hint, K::vector>(data.output, place(first, n), fetched[n]);
    }
    if constexpr (K::ragged) {
      if (one_row && block_index() != 0) continue;
      for (int i = thread_index(); i < data.geometry.edges(); i += K::block) {
        const auto at = data.geometry.edge(i);
        write_at<K, K::store_hint, 1>(data.output, at, read_at<K, fill_zero, K::load_hint, 1>(data.input, at));
      }
    }
  }
}

}  // namespace rowtune
