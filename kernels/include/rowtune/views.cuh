#pragma once
// Views: where a thread's part of a row is kept between the reduction and the output. In registers (packed in its
// dtype, or as floats), in shared memory, or nowhere: read again from the L2.
//
// Every view offers `count()`: the elements that this thread's lanes hold together; `each(f)`: f(values, mask) for each
// of the thread's vectors, absent elements neutral; `max()`: the largest of the thread's elements, NaN ignored; and
// `write(f)`: f(values, mask, n) turns the thread's n-th vector (0 where the row is read again) into outputs, which are
// stored.

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
  ROWTUNE_DEVICE void add(const float (&x)[V]) {
#pragma unroll
    for (int j = 0; j < V; ++j) sums[j % count] = multiply_add(x[j], x[j], sums[j % count]);
  }
  ROWTUNE_DEVICE float total() const { return tree_sum(sums); }
};

/// A thread's part of a row, asked for and not yet looked at. K::ahead: that of the team's next row, while this one is
/// reduced and written; the memory is never idle behind a barrier.
template <class K, class Team, Fill F>
struct FetchedRow {
  using Row = RowData<K, F, int>;
  typename Row::Fetched vectors[K::vectors];

  ROWTUNE_DEVICE void fetch(const Row& row, int rank) {
#pragma unroll
    for (int n = 0; n < K::vectors; ++n) vectors[n] = row.fetch(n * Team::size + rank);
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

/// A thread's vectors are rank, rank + size, ...: neighbours in a team access neighbouring vectors.
template <class K, class Team, Fill F>
struct PackedView {
  static constexpr int V = K::vector;
  using Row = RowData<K, F, int>;
  Row row;
  int rank;
  unsigned opaque;
  Vec<typename K::Element, V> data[K::vectors];

  template <class Asked = NextRow<K, Team, F, false>>
  ROWTUNE_DEVICE PackedView(const RowArgs& a, i64 r, const Team& team, const Asked& asked = {})
      : row(a, r), rank(team.rank()), opaque(a.opaque) {
    const auto fetched = fetched_row(row, rank, asked);
#pragma unroll
    for (int n = 0; n < K::vectors; ++n) data[n] = row.settle(fetched.vectors[n], n * Team::size + rank);
  }
  ROWTUNE_DEVICE int count() const {
    return row.geometry.count(rank / Team::lanes * Team::lanes, Team::lanes, Team::size);
  }
  template <class Each>
  ROWTUNE_DEVICE void each(Each f) {
#pragma unroll
    for (int n = 0; n < K::vectors; ++n) {
      float x[V];
      data[n].unpack(x);
      f(x, row.geometry.mask(n * Team::size + rank));
    }
  }
  /// Without unpacking: two elements a step.
  ROWTUNE_DEVICE float max() {
    if constexpr (V == 1 || K::Element::bytes == 4) {
      float m = -infinity();
      each([&](const float(&x)[V], const auto&) { m = larger(m, tree_max(x)); });
      return m;
    } else {
      using C = Codec<typename K::Element>;
      unsigned w = word_of(data[0].words, 0);
#pragma unroll
      for (int n = 0; n < K::vectors; ++n) {
#pragma unroll
        for (int i = n == 0 ? 1 : 0; i < V / 2; ++i) w = C::larger(w, word_of(data[n].words, i));
      }
      return larger(larger(C::low(w), C::high(w)), -infinity());
    }
  }
  template <class Output>
  ROWTUNE_DEVICE void write(Output f) {
#pragma unroll
    for (int n = 0; n < K::vectors; ++n) {
      float x[V];
      forget_unpacked(data[n], opaque).unpack(x);
      f(x, row.geometry.mask(n * Team::size + rank), n);
      row.write(n * Team::size + rank, x);
    }
  }
};

/// As floats: `each` may replace the values it is given.
template <class K, class Team, Fill F>
struct FloatView {
  static constexpr int V = K::vector;
  using Row = RowData<K, F, int>;
  Row row;
  int rank;
  float data[K::vectors][V];

  template <class Asked = NextRow<K, Team, F, false>>
  ROWTUNE_DEVICE FloatView(const RowArgs& a, i64 r, const Team& team, const Asked& asked = {})
      : row(a, r), rank(team.rank()) {
    const auto fetched = fetched_row(row, rank, asked);
#pragma unroll
    for (int n = 0; n < K::vectors; ++n) row.settle(fetched.vectors[n], n * Team::size + rank).unpack(data[n]);
  }
  ROWTUNE_DEVICE int count() const {
    return row.geometry.count(rank / Team::lanes * Team::lanes, Team::lanes, Team::size);
  }
  template <class Each>
  ROWTUNE_DEVICE void each(Each f) {
#pragma unroll
    for (int n = 0; n < K::vectors; ++n) f(data[n], row.geometry.mask(n * Team::size + rank));
  }
  ROWTUNE_DEVICE float max() {
    float m = -infinity();
    each([&](const float(&x)[V], const auto&) { m = larger(m, tree_max(x)); });
    return m;
  }
  template <class Output>
  ROWTUNE_DEVICE void write(Output f) {
#pragma unroll
    for (int n = 0; n < K::vectors; ++n) {
      f(data[n], row.geometry.mask(n * Team::size + rank), n);
      row.write(n * Team::size + rank, data[n]);
    }
  }
};

/// In the block's dynamic shared memory: 16 bytes a vector, each thread reads back only what it stored itself.
template <class K, class Team, Fill F>
struct SharedView {
  static constexpr int V = K::vector;
  static_assert(V * K::Element::bytes == 16, "a vector is one 16-byte slot");
  using Row = RowData<K, F, int>;
  Row row;
  int rank;
  Words4* slots;

  ROWTUNE_DEVICE SharedView(const RowArgs& a, i64 r, const Team& team, const NextRow<K, Team, F>& = {})
      : row(a, r), rank(team.rank()), slots(shared_dynamic() + thread_index()) {
    constexpr int batch = K::vectors < 8 ? K::vectors : 8;  // loads in flight that pass through registers
    for (int first = 0; first < K::vectors; first += batch) {
      typename Row::Fetched fetched[batch];
#pragma unroll
      for (int n = 0; n < batch; ++n) {
        const int i = (first + n) * Team::size + rank;
        if (first + n >= K::vectors) break;
        if (copied_asynchronously(i))
          async_copy16(slots + (first + n) * K::block,
                       reinterpret_cast<const Words4*>(row.input + static_cast<i64>(row.geometry.mask(i).first) *
                                                                       K::Element::bytes));
        else
          fetched[n] = row.fetch(i);
      }
#pragma unroll
      for (int n = 0; n < batch; ++n) {
        const int i = (first + n) * Team::size + rank;
        if (first + n >= K::vectors) break;
        if (!copied_asynchronously(i)) shared_store(slots + (first + n) * K::block, row.settle(fetched[n], i).words);
      }
    }
    if constexpr (K::async) async_wait();
  }
  ROWTUNE_DEVICE bool copied_asynchronously(int i) const {
    return K::async && !K::adds_residual && row.geometry.mask(i).whole;
  }
  ROWTUNE_DEVICE int count() const {
    return row.geometry.count(rank / Team::lanes * Team::lanes, Team::lanes, Team::size);
  }
  template <class Each>
  ROWTUNE_DEVICE void each(Each f) {
#pragma unroll
    for (int n = 0; n < K::vectors; ++n) {
      float x[V];
      Vec<typename K::Element, V>{shared_load(slots + n * K::block)}.unpack(x);
      f(x, row.geometry.mask(n * Team::size + rank));
    }
  }
  ROWTUNE_DEVICE float max() {
    float m = -infinity();
    each([&](const float(&x)[V], const auto&) { m = larger(m, tree_max(x)); });
    return m;
  }
  template <class Output>
  ROWTUNE_DEVICE void write(Output f) {
#pragma unroll
    for (int n = 0; n < K::vectors; ++n) {
      float x[V];
      Vec<typename K::Element, V>{shared_load(slots + n * K::block)}.unpack(x);
      f(x, row.geometry.mask(n * Team::size + rank), n);
      row.write(n * Team::size + rank, x);
    }
  }
};

/// Nowhere: any row length, each look reads the row again (from the L2, while few rows are in flight).
/// K::batch loads are in flight at once.
template <class K, class Team, Fill F>
struct RereadView {
  static constexpr int V = K::vector;
  using Row = RowData<K, F, i64>;
  Row row;
  int rank;

  ROWTUNE_DEVICE RereadView(const RowArgs& a, i64 r, const Team& team, const NextRow<K, Team, F>& = {})
      : row(a, r), rank(team.rank()) {}

  template <bool Again, class Visit>
  ROWTUNE_DEVICE void walk(Visit visit) {
    for (i64 first = rank; first < row.geometry.vectors; first += static_cast<i64>(Team::size) * K::batch) {
      typename Row::Fetched fetched[K::batch];
#pragma unroll
      for (int n = 0; n < K::batch; ++n) {
        const i64 i = first + static_cast<i64>(n) * Team::size;
        fetched[n] = Again ? row.fetch_again(i) : row.fetch(i);
      }
#pragma unroll
      for (int n = 0; n < K::batch; ++n) {
        const i64 i = first + static_cast<i64>(n) * Team::size;
        float x[V];
        (Again ? row.settle_again(fetched[n], i) : row.settle(fetched[n], i)).unpack(x);
        visit(x, i);
      }
    }
  }
  ROWTUNE_DEVICE int count() const {
    return row.geometry.count(rank / Team::lanes * Team::lanes, Team::lanes, Team::size);
  }
  /// Once at most where the residual is added: it stores the sums, which `write` reads back.
  template <class Each>
  ROWTUNE_DEVICE void each(Each f) {
    walk<false>([&](float(&x)[V], i64 i) { f(x, row.geometry.mask(i)); });
  }
  ROWTUNE_DEVICE float max() {
    float m = -infinity();
    each([&](const float(&x)[V], const auto&) { m = larger(m, tree_max(x)); });
    return m;
  }
  template <class Output>
  ROWTUNE_DEVICE void write(Output f) {
    walk<true>([&](float(&x)[V], i64 i) {
      f(x, row.geometry.mask(i), 0);
      row.write(i, x);
    });
  }
};

}  // namespace rowtune
