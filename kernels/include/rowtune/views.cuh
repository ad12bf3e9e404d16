#pragma once
// Views: where a thread's part of a row is kept between the reduction and the output. In registers (packed in its
// dtype, or as floats), in shared memory, or nowhere: read again from the L2.
//
// Every view offers `count()`: the elements that this thread's lanes hold together; `each(f)`: f(values, place) for
// each of the thread's vectors and edges, absent vectors neutral; `max()`: the largest of the thread's elements, NaN
// ignored; and `write(f)`: f(values, place, n) turns the thread's n-th vector, or n-th edge (rows.cuh), into outputs,
// which are stored. `values` is an array of K::vector floats, or, of an edge, of one; n is 0 where the row is read
// again. `tie(zero)`: the thread's part of the row is not there before `zero` is. Where `keeps_values`, what `each`
// makes of them is what later looks are given.

#include "rowtune/rows.cuh"

namespace rowtune {

/// Sum of a small array as a tree: shorter chains and a smaller error than one after the other.
template <int V>
ROWTUNE_DEVICE float tree_sum(const float (&x)[V]) {
  float t[V];
#pragma unroll
  for (int j = 0; j < V; ++j) t[j] = x[j];
#pragma unroll
  for (int d = V / 2; d > 0; d /= 2) {
#pragma unroll
    for (int j = 0; j < d; ++j) t[j] += t[j + d];
  }
  return t[0];
}
template <int V>
ROWTUNE_DEVICE float tree_max(const float (&x)[V]) {
  float t[V];
#pragma unroll
  for (int j = 0; j < V; ++j) t[j] = x[j];
#pragma unroll
  for (int d = V / 2; d > 0; d /= 2) {
#pragma unroll
    for (int j = 0; j < d; ++j) t[j] = larger(t[j], t[j + d]);
  }
  return t[0];
}

/// Sums over many vectors without an addition for each product: a few running sums, added up as a tree.
template <int V>
struct SquareSum {
  static constexpr int count = V < 4 ? V : 4;
  float sums[count];
  ROWTUNE_DEVICE SquareSum() {
#pragma unroll
    for (int j = 0; j < count; ++j) sums[j] = 0.0f;
  }
  template <int N>
  ROWTUNE_DEVICE void add(const float (&x)[N]) {
#pragma unroll
    for (int j = 0; j < N; ++j) sums[j % count] = multiply_add(x[j], x[j], sums[j % count]);
  }
  ROWTUNE_DEVICE float total() const { return tree_sum(sums); }
};

/// A thread's part of a row, asked for and not yet looked at. K::ahead: that of the team's next row, while this one is
/// reduced and written; the memory is never idle behind a barrier.
template <class K, class Team, Fill F>
struct FetchedRow {
  using Row = RowData<K, F, int>;
  static constexpr int edge_count = edges_per_thread<K>(Team::size);
  typename Row::template Fetched<K::vector> vectors[K::vectors];
  typename Row::template Fetched<1> edges[edge_count > 0 ? edge_count : 1];

  ROWTUNE_DEVICE void fetch(const Row& row, int rank) {
#pragma unroll
    for (int n = 0; n < K::vectors; ++n)
      vectors[n] = row.template fetch<K::vector>(row.geometry.vector(n * Team::size + rank));
    fetch_edges(row, rank);
  }
  ROWTUNE_DEVICE void fetch_edges(const Row& row, int rank) {
#pragma unroll
    for (int n = 0; n < edge_count; ++n) edges[n] = row.template fetch<1>(row.geometry.edge(n * Team::size + rank));
  }
};
template <class K, class Team, Fill F, bool Ahead = K::ahead>
struct NextRow {
  ROWTUNE_DEVICE void ask(const RowArgs&, i64, const Team&) {}
};
template <class K, class Team, Fill F>
struct NextRow<K, Team, F, true> : FetchedRow<K, Team, F> {
  ROWTUNE_DEVICE void ask(const RowArgs& a, i64 row, const Team& team) {
    if (row < a.rows) this->fetch(RowData<K, F, int>(a, row), team.rank());
  }
};
/// What a view settles: the row that was asked for before, or one fetched now.
template <class K, class Team, Fill F>
ROWTUNE_DEVICE const FetchedRow<K, Team, F>& fetched_row(const RowData<K, F, int>&, int,
                                                         const FetchedRow<K, Team, F>& asked) {
  return asked;
}
template <class K, class Team, Fill F>
ROWTUNE_DEVICE FetchedRow<K, Team, F> fetched_row(const RowData<K, F, int>& row, int rank,
                                                  const NextRow<K, Team, F, false>&) {
  FetchedRow<K, Team, F> now;
  now.fetch(row, rank);
  return now;
}

/// The thread's edges, as floats in every view: `each` may replace the values it is given.
template <class K, class Team, Fill F>
struct Edges {
  using Row = RowData<K, F, int>;
  static constexpr int count = edges_per_thread<K>(Team::size);
  float data[count > 0 ? count : 1][1];

  ROWTUNE_DEVICE void settle(const Row& row, int rank, const FetchedRow<K, Team, F>& fetched) {
#pragma unroll
    for (int n = 0; n < count; ++n)
      row.template settle<1>(fetched.edges[n], row.geometry.edge(n * Team::size + rank)).unpack(data[n]);
  }
  template <class Each>
  ROWTUNE_DEVICE void each(const Row& row, int rank, Each& f) {
#pragma unroll
    for (int n = 0; n < count; ++n) {
      const auto at = row.geometry.edge(n * Team::size + rank);
      if (at.exists) f(data[n], at);
    }
  }
  ROWTUNE_DEVICE float larger_than(float m) const {
#pragma unroll
    for (int n = 0; n < count; ++n) m = larger(m, data[n][0]);
    return m;
  }
  template <class Output>
  ROWTUNE_DEVICE void write(const Row& row, int rank, Output& f) {
#pragma unroll
    for (int n = 0; n < count; ++n) {
      const auto at = row.geometry.edge(n * Team::size + rank);
      if (!at.exists) continue;
      f(data[n], at, n);
      row.template write<1>(at, data[n]);
    }
  }
};

/// A thread's vectors are rank, rank + size, ...: neighbours in a team access neighbouring vectors.
template <class K, class Team, Fill F>
struct PackedView {
  static constexpr int V = K::vector;
  static constexpr bool keeps_values = false;
  using Row = RowData<K, F, int>;
  Row row;
  int rank;
  unsigned opaque;
  Vec<typename K::Element, V> data[K::vectors];
  Edges<K, Team, F> edges;

  template <class Asked = NextRow<K, Team, F, false>>
  ROWTUNE_DEVICE PackedView(const RowArgs& a, i64 r, const Team& team, const Asked& asked = {})
      : row(a, r), rank(team.rank()), opaque(a.opaque) {
    const auto fetched = fetched_row(row, rank, asked);
#pragma unroll
    for (int n = 0; n < K::vectors; ++n) data[n] = row.template settle<V>(fetched.vectors[n], place(n));
    edges.settle(row, rank, fetched);
  }
  ROWTUNE_DEVICE void tie(unsigned zero) { set_word(data[0].words, 0, word_of(data[0].words, 0) ^ zero); }
  ROWTUNE_DEVICE Place<int> place(int n) const { return row.geometry.vector(n * Team::size + rank); }
  ROWTUNE_DEVICE int count() const {
    return row.geometry.count(rank / Team::lanes * Team::lanes, Team::lanes, Team::size);
  }
  template <class Each>
  ROWTUNE_DEVICE void each(Each f) {
#pragma unroll
    for (int n = 0; n < K::vectors; ++n) {
      float x[V];
      data[n].unpack(x);
      f(x, place(n));
    }
    edges.each(row, rank, f);
  }
  /// Without unpacking: two elements a step.
  ROWTUNE_DEVICE float max() {
    if constexpr (V == 1 || K::Element::bytes == 4) {
      float m = -infinity();
      each([&](const auto& x, const auto&) { m = larger(m, tree_max(x)); });
      return m;
    } else {
      using C = Codec<typename K::Element>;
      unsigned w = word_of(data[0].words, 0);
#pragma unroll
      for (int n = 0; n < K::vectors; ++n) {
#pragma unroll
        for (int i = n == 0 ? 1 : 0; i < V / 2; ++i) w = C::larger(w, word_of(data[n].words, i));
      }
      return edges.larger_than(larger(larger(C::low(w), C::high(w)), -infinity()));
    }
  }
  template <class Output>
  ROWTUNE_DEVICE void write(Output f) {
#pragma unroll
    for (int n = 0; n < K::vectors; ++n) {
      float x[V];
      forget_unpacked(data[n], opaque).unpack(x);
      f(x, place(n), n);
      row.template write<V>(place(n), x);
    }
    edges.write(row, rank, f);
  }
};

/// As floats.
template <class K, class Team, Fill F>
struct FloatView {
  static constexpr int V = K::vector;
  static constexpr bool keeps_values = true;
  using Row = RowData<K, F, int>;
  Row row;
  int rank;
  float data[K::vectors][V];
  Edges<K, Team, F> edges;

  template <class Asked = NextRow<K, Team, F, false>>
  ROWTUNE_DEVICE FloatView(const RowArgs& a, i64 r, const Team& team, const Asked& asked = {})
      : row(a, r), rank(team.rank()) {
    const auto fetched = fetched_row(row, rank, asked);
#pragma unroll
    for (int n = 0; n < K::vectors; ++n) row.template settle<V>(fetched.vectors[n], place(n)).unpack(data[n]);
    edges.settle(row, rank, fetched);
  }
  ROWTUNE_DEVICE void tie(unsigned zero) { data[0][0] = float_of(bits_of(data[0][0]) ^ zero); }
  ROWTUNE_DEVICE Place<int> place(int n) const { return row.geometry.vector(n * Team::size + rank); }
  ROWTUNE_DEVICE int count() const {
    return row.geometry.count(rank / Team::lanes * Team::lanes, Team::lanes, Team::size);
  }
  template <class Each>
  ROWTUNE_DEVICE void each(Each f) {
#pragma unroll
    for (int n = 0; n < K::vectors; ++n) f(data[n], place(n));
    edges.each(row, rank, f);
  }
  ROWTUNE_DEVICE float max() {
    float m = -infinity();
    each([&](const auto& x, const auto&) { m = larger(m, tree_max(x)); });
    return m;
  }
  template <class Output>
  ROWTUNE_DEVICE void write(Output f) {
#pragma unroll
    for (int n = 0; n < K::vectors; ++n) {
      f(data[n], place(n), n);
      row.template write<V>(place(n), data[n]);
    }
    edges.write(row, rank, f);
  }
};

/// In the block's dynamic shared memory: 16 bytes a vector, each thread reads back only what it stored itself. Edges
/// wait in registers.
template <class K, class Team, Fill F>
struct SharedView {
  static constexpr int V = K::vector;
  static constexpr bool keeps_values = false;
  static_assert(V * K::Element::bytes == 16, "a vector is one 16-byte slot");
  using Row = RowData<K, F, int>;
  Row row;
  int rank;
  Words4* slots;
  Edges<K, Team, F> edges;

  ROWTUNE_DEVICE SharedView(const RowArgs& a, i64 r, const Team& team, const NextRow<K, Team, F>& = {})
      : row(a, r), rank(team.rank()), slots(shared_dynamic() + thread_index()) {
    constexpr int batch = K::vectors < 8 ? K::vectors : 8;  // loads in flight that pass through registers
    FetchedRow<K, Team, F> ends;
    ends.fetch_edges(row, rank);
    for (int first = 0; first < K::vectors; first += batch) {
      typename Row::template Fetched<V> fetched[batch];
#pragma unroll
      for (int n = 0; n < batch; ++n) {
        if (first + n >= K::vectors) break;
        const auto at = place(first + n);
        if (copied_asynchronously(at))
          async_copy16(slots + (first + n) * K::block,
                       reinterpret_cast<const Words4*>(row.input + static_cast<i64>(at.first) * K::Element::bytes));
        else
          fetched[n] = row.template fetch<V>(at);
      }
#pragma unroll
      for (int n = 0; n < batch; ++n) {
        if (first + n >= K::vectors) break;
        const auto at = place(first + n);
        if (!copied_asynchronously(at))
          shared_store(slots + (first + n) * K::block, row.template settle<V>(fetched[n], at).words);
      }
    }
    edges.settle(row, rank, ends);
    if constexpr (K::async) async_wait();
  }
  static ROWTUNE_DEVICE bool copied_asynchronously(const Place<int>& at) {
    return K::async && !K::adds_residual && at.exists;
  }
  ROWTUNE_DEVICE Place<int> place(int n) const { return row.geometry.vector(n * Team::size + rank); }
  ROWTUNE_DEVICE int count() const {
    return row.geometry.count(rank / Team::lanes * Team::lanes, Team::lanes, Team::size);
  }
  template <class Each>
  ROWTUNE_DEVICE void each(Each f) {
#pragma unroll
    for (int n = 0; n < K::vectors; ++n) {
      float x[V];
      Vec<typename K::Element, V>{shared_load(slots + n * K::block)}.unpack(x);
      f(x, place(n));
    }
    edges.each(row, rank, f);
  }
  ROWTUNE_DEVICE float max() {
    float m = -infinity();
    each([&](const auto& x, const auto&) { m = larger(m, tree_max(x)); });
    return m;
  }
  template <class Output>
  ROWTUNE_DEVICE void write(Output f) {
#pragma unroll
    for (int n = 0; n < K::vectors; ++n) {
      float x[V];
      Vec<typename K::Element, V>{shared_load(slots + n * K::block)}.unpack(x);
      f(x, place(n), n);
      row.template write<V>(place(n), x);
    }
    edges.write(row, rank, f);
  }
};

/// Nowhere: any row length, each look reads the row again (from the L2, while few rows are in flight).
/// K::batch loads are in flight at once.
template <class K, class Team, Fill F>
struct RereadView {
  static constexpr int V = K::vector;
  static constexpr bool keeps_values = false;
  using Row = RowData<K, F, i64>;
  Row row;
  int rank;

  ROWTUNE_DEVICE RereadView(const RowArgs& a, i64 r, const Team& team, const NextRow<K, Team, F>& = {})
      : row(a, r), rank(team.rank()) {}

  template <bool Again, class Visit>
  ROWTUNE_DEVICE void walk(Visit visit) {
    constexpr int edge_count = edges_per_thread<K>(Team::size);
#pragma unroll
    for (int n = 0; n < edge_count; ++n) {
      const auto at = row.geometry.edge(n * Team::size + rank);
      if (!at.exists) continue;
      float x[1];
      (Again ? row.template fetch_again<1>(at).x : row.template settle<1>(row.template fetch<1>(at), at)).unpack(x);
      visit(x, at);
    }
    for (i64 first = rank; first < row.geometry.vectors; first += static_cast<i64>(Team::size) * K::batch) {
      typename Row::template Fetched<V> fetched[K::batch];
#pragma unroll
      for (int n = 0; n < K::batch; ++n) {
        const auto at = row.geometry.vector(first + static_cast<i64>(n) * Team::size);
        fetched[n] = Again ? row.template fetch_again<V>(at) : row.template fetch<V>(at);
      }
#pragma unroll
      for (int n = 0; n < K::batch; ++n) {
        const auto at = row.geometry.vector(first + static_cast<i64>(n) * Team::size);
        float x[V];
        (Again ? fetched[n].x : row.template settle<V>(fetched[n], at)).unpack(x);
        visit(x, at);
      }
    }
  }
  ROWTUNE_DEVICE int count() const {
    return row.geometry.count(rank / Team::lanes * Team::lanes, Team::lanes, Team::size);
  }
  /// Once at most where the residual is added: it stores the sums, which `write` reads back.
  template <class Each>
  ROWTUNE_DEVICE void each(Each f) {
    walk<false>(f);
  }
  ROWTUNE_DEVICE float max() {
    float m = -infinity();
    each([&](const auto& x, const auto&) { m = larger(m, tree_max(x)); });
    return m;
  }
  template <class Output>
  ROWTUNE_DEVICE void write(Output f) {
    walk<true>([&](auto& x, const auto& at) {
      f(x, at, 0);
      row.write(at, x);
    });
  }
};

}  // namespace rowtune
