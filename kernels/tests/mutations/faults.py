"""Classic faults of row-reduction kernels, each as one change of a kernel header.

A fault: what it is, the header, the text that stands there, the text to plant. The old text must occur exactly
`times` times, so that a header that changes makes the script fail instead of planting nothing.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    what: str
    header: str
    old: str
    new: str
    times: int = 1


FAULTS = [
    # Barriers and shared memory.
    Fault("no barrier between the warps' stores and the merge", "teams.cuh",
          "    block_barrier();\n    return merge_shared<State, warps>(words);",
          "    return merge_shared<State, warps>(words);"),
    Fault("one buffer instead of two: the next merge overwrites what is still read", "teams.cuh",
          "(round & 1) * warps * exchange_words;", "0 * warps * exchange_words;"),
    Fault("cluster: one buffer instead of two", "teams.cuh",
          "(round & 1) * K::split * exchange_words;", "0 * K::split * exchange_words;"),
    Fault("split: no barrier before the merged state is read", "teams.cuh",
          "    block_barrier();\n    unsigned w[State::words];", "    unsigned w[State::words];"),
    Fault("a barrier that only the first warp reaches", "teams.cuh",
          "    block_barrier();\n    return merge_shared<State, warps>(words);",
          "    if (thread_index() < 32) block_barrier();\n    return merge_shared<State, warps>(words);"),
    Fault("asynchronous copies are not waited for", "views.cuh", "if constexpr (K::async) async_wait();", ""),
    Fault("shared row: neighbouring vectors overlap", "views.cuh", "(first + n) * K::block", "(first + n) * (K::block - 1)",
          2),
    Fault("merge reads one state too many", "teams.cuh", "if (from < Count) {", "if (from <= Count) {"),
    # Warps.
    Fault("a shuffle inside a branch that lanes without a row skip", "layernorm.cuh",
          "quotient(sum, static_cast<float>(count))",
          "quotient(lanes_sum<Team::lanes>(sum) / Team::lanes, static_cast<float>(count))"),
    Fault("lanes that have no row leave before the shuffles", "kernels.cuh",
          "if (row >= a.rows) mine.cols = 0;", "if (row >= a.rows) return;"),
    Fault("the reduction over lanes starts at half the distance", "states.cuh",
          "for (int d = Lanes / 2; d > 0; d /= 2) x = larger", "for (int d = Lanes / 4; d > 0; d /= 2) x = larger"),
    # Guards and indices.
    Fault("> for >= in the guard of the last rows", "kernels.cuh", "if (row >= a.rows) mine.cols = 0;",
          "if (row > a.rows) mine.cols = 0;"),
    Fault("<= for < in the loop over rows", "kernels.cuh",
          "for (i64 row = block_index(); row < a.rows; row += grid_blocks()) {",
          "for (i64 row = block_index(); row <= a.rows; row += grid_blocks()) {", 2),
    Fault("persistent blocks do one row only", "kernels.cuh", "    if constexpr (!K::loop) break;", "    break;", 3),
    Fault("two launches: no guard for no rows", "kernels.cuh", "  if (row >= a.rows) return;\n", "", 2),
    Fault("32-bit row offset of the input", "rows.cuh", "row * a.input_stride * T::bytes",
          "static_cast<int>(row * a.input_stride) * T::bytes"),
    Fault("32-bit row offset of the output", "rows.cuh", "row * a.output_stride * T::bytes",
          "static_cast<int>(row * a.output_stride * T::bytes)"),
    Fault("the output uses the input's row length as stride", "rows.cuh", "row * a.output_stride * T::bytes",
          "row * a.cols * T::bytes"),
    # Tails and padding.
    Fault("wrong mask: one column too many", "rows.cuh", "first + j >= 0 && first + j < cols",
          "first + j >= 0 && first + j <= cols"),
    Fault("the tail vector is forgotten", "rows.cuh", "(cols + head + (K::ragged ? V - 1 : 0)) / V",
          "(cols + head) / V"),
    Fault("the head of a row that starts within a vector is ignored", "rows.cuh",
          "head = static_cast<Index>((reinterpret_cast<u64>(input_row) % (V * K::Element::bytes)) / K::Element::bytes);",
          "head = 0;"),
    Fault("the last vector is stored whole", "rows.cuh",
          "  if (mask.whole) {\n    store_vector<T, V, H>(p, v);",
          "  if (mask.whole || mask.first >= 0) {\n    if (mask.first < mask.cols) store_vector<T, V, H>(p, v);"),
    Fault("a neighbour's elements are not dropped", "rows.cuh",
          "push_element(v, mask.valid(j) ? bits : neutral);", "push_element(v, bits);"),
    Fault("the elements of a ragged vector come out turned round by one", "rows.cuh",
          "    const unsigned neutral = element_bits(filled_vector<typename K::Element, K::vector, F>(), 0);\n",
          "    const unsigned neutral = element_bits(filled_vector<typename K::Element, K::vector, F>(), 0);\n"
          "    push_element(v, element_bits(v, 0));\n"),
    Fault("a whole vector is read past the end of the tensor", "rows.cuh",
          "mask.first + V <= overhang.high", "mask.first < overhang.high"),
    Fault("padded elements are counted", "rows.cuh", "return high > low ? static_cast<int>(high - low) : 0;",
          "return K::vector;"),
    Fault("padded elements enter the sum of squares", "layernorm.cuh", "d[j] = mask.valid(j) ? d[j] : 0.0f;",
          "d[j] = d[j];"),
    Fault("shifted weights: odd elements are not shifted", "rows.cuh", "(elements & 1) * 16", "0"),
    # The algebra of softmax.
    Fault("-inf is subtracted from -inf", "algebra.cuh", "return max == -M::infinity() ? F(0) : max;", "return max;"),
    Fault("a state of -inf is scaled by exp(-inf - -inf)", "algebra.cuh",
          "return state.max == max ? state.sum : state.sum * M::exp(state.max - max);",
          "return state.sum * M::exp(state.max - max);"),
    Fault("the textbook merge: a state whose max is -inf is zeroed, and its NaN lost", "algebra.cuh",
          "return state.max == max ? state.sum : state.sum * M::exp(state.max - max);",
          "return state.max == max ? state.sum : state.max == -M::infinity() ? F(0) : state.sum * M::exp(state.max - max);"),
    Fault("a finite number stands for -inf", "rows.cuh", "return 0xff800000u;", "return 0xff7fffffu;"),
    Fault("log2(e) folded into a fused multiply-add", "softmax.cuh", "return Math::exp(x - origin);",
          "return exp2_fast(multiply_add(x, 1.44269504088896340736f, -(origin * 1.44269504088896340736f)));"),
    Fault("log_softmax as x - (max + log(sum))", "softmax.cuh", "x[j] = (x[j] - known.origin) - known.scale;",
          "x[j] = x[j] - (known.origin + known.scale);"),
    Fault("kept exponentials are not rescaled to the row's maximum", "softmax.cuh",
          "known.scale *= mine.value.max == whole.value.max ? 1.0f : Math::exp(mine.value.max - whole.value.max);", ""),
    Fault("online: the sum is not rescaled when the maximum rises", "softmax.cuh",
          "max_sum_at<float, Math>(state, max) + tree_sum(e)", "state.sum + tree_sum(e)"),
    # The norms.
    Fault("sum of squares in f16", "rmsnorm.cuh", "      sum += tree_sum(squares);",
          "      sum = half_low(pack_halves(sum + tree_sum(squares), 0.0f));"),
    Fault("eps inside the mean", "rmsnorm.cuh", "reciprocal_sqrt(quotient(whole.sum, n) + a.eps)",
          "reciprocal_sqrt(quotient(whole.sum + a.eps, n))"),
    Fault("eps outside the root", "layernorm.cuh", "reciprocal_sqrt(clamp_variance(variance) + a.eps)",
          "reciprocal(reciprocal(reciprocal_sqrt(clamp_variance(variance))) + a.eps)"),
    Fault("the sample variance", "layernorm.cuh", "quotient(whole.value.m2, columns(a))",
          "quotient(whole.value.m2, columns(a) - 1.0f)"),
    Fault("two-pass variance about 0", "layernorm.cuh", "lanes_sum<Team::lanes>(squares_about(view, mean))}).sum",
          "lanes_sum<Team::lanes>(squares_about(view, 0.0f))}).sum"),
    Fault("merge with an empty state divides by 0", "algebra.cuh",
          "  if (b.count == 0) return a;\n  if (a.count == 0) return b;\n", ""),
    Fault("Chan's merge without the term of the means", "algebra.cuh",
          "return M::fma(delta * delta, M::from_count(state.count), state.m2);", "return state.m2;"),
    Fault("the weight offset is forgotten", "rmsnorm.cuh", "normal * (weight[j] + a.weight_offset)",
          "normal * weight[j]"),
    Fault("bias without weight is scaled away", "layernorm.cuh", "normal + bias[j])", "normal)"),
    # fused_add_rmsnorm.
    Fault("in place: the second look reads hidden, not the new residual", "rows.cuh",
          "K::adds_residual ? residual_out : input, geometry.mask(i), overhang)", "input, geometry.mask(i), overhang)"),
    Fault("in place: the residual is added twice", "views.cuh", "    walk<true>([&](float(&x)[V], i64 i) {",
          "    walk<false>([&](float(&x)[V], i64 i) {"),
    Fault("the new residual is not stored", "rows.cuh", "      write_vector<K, K::store_hint>(residual_out, mask, x);\n",
          ""),
    Fault("the sum is normalised before it is rounded", "views.cuh",
          "row.settle(fetched[n], n * Team::size + rank).unpack(data[n]);",
          "{ row.settle(fetched[n], n * Team::size + rank).unpack(data[n]); if constexpr (K::adds_residual) for (int j = 0; "
          "j < V; ++j) if (row.geometry.mask(n * Team::size + rank).whole) data[n][j] = fetched[n].x.get(j) + "
          "fetched[n].r.get(j); }"),
    # Blocks that share a row.
    Fault("cluster rank off by one", "teams.cuh", "words + cluster_rank() * State::words + i",
          "words + (cluster_rank() + 1) * State::words + i"),
    Fault("cluster: stores before every peer has begun", "teams.cuh",
          "    if (round == 0) cluster_wait();  // of the constructor's arrival\n", ""),
    Fault("cluster: a block may leave while peers still store into it", "teams.cuh",
          "    cluster_arrive();\n    cluster_wait();\n    return merge_shared<State, K::split>(words);",
          "    block_barrier();\n    return merge_shared<State, K::split>(words);"),
    Fault("split: both merges of a row use the same slots", "teams.cuh", "    ++stage;\n", ""),
    Fault("split: rows of one block share their slots", "teams.cuh", "(stage * rows + row) * K::split",
          "(stage * rows) * K::split"),
    Fault("exchange: the tag is never raised, old words pass for new ones", "exchange.cuh",
          "    if (counter_add(&header->left, 1) == grid_blocks() - 1) {",
          "    if (counter_add(&header->left, 1) == grid_blocks()) {"),
    Fault("exchange: whoever looks first takes what is there", "exchange.cuh",
          "all = all && static_cast<unsigned>(word >> 32) == tag;", "all = all && static_cast<unsigned>(word >> 32) <= tag;"),
    Fault("exchange: of all the words asked for, only the last has to be there", "exchange.cuh",
          "all = all && static_cast<unsigned>(word >> 32) == tag;", "all = static_cast<unsigned>(word >> 32) == tag;"),
    Fault("unfused pair: the norm is of the old hidden state", "kernels.cuh", "  sums.input = a.residual_out;\n", ""),
    Fault("exchange: the tag is raised by the first block that leaves", "exchange.cuh",
          "    if (counter_add(&header->left, 1) == grid_blocks() - 1) {",
          "    if (counter_add(&header->left, 1) == 0) {"),
    Fault("two launches: the last part is not merged", "kernels.cuh", "part < K::split; part += 32",
          "part < K::split - 1; part += 32"),
]
