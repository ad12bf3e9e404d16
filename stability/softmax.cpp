#include "stability/softmax.hpp"

#include "stability/softmax_methods.hpp"

namespace rowtune::stability {

std::string to_string(SoftmaxMethod method) {
  switch (method) {
    case SoftmaxMethod::unsafe:
      return "unsafe";
    case SoftmaxMethod::three_pass:
      return "three_pass";
    case SoftmaxMethod::online:
      return "online";
    case SoftmaxMethod::split:
      break;
  }
  return "split";
}

std::string method_name(const SoftmaxChoice& choice) {
  if (choice.log_form == LogForm::folded) return to_string(choice.method) + "_folded";
  if (choice.log_form == LogForm::of_ratio) return to_string(choice.method) + "_log_of_ratio";
  return to_string(choice.method);
}

std::vector<SoftmaxChoice> all_softmax(int lanes) {
  const Summation sequential{Order::sequential, 1}, strided{Order::lanes, lanes}, pairwise{Order::pairwise, 1};
  std::vector<SoftmaxChoice> choices;
  for (const SoftmaxMethod method : {SoftmaxMethod::unsafe, SoftmaxMethod::three_pass, SoftmaxMethod::online})
    for (const Summation& summation : {sequential, strided, pairwise}) choices.push_back({method, summation});
  choices.push_back({SoftmaxMethod::split, sequential});
  choices.push_back({SoftmaxMethod::split, strided});
  return choices;
}

std::vector<SoftmaxChoice> all_log_softmax(int lanes) {
  std::vector<SoftmaxChoice> choices = all_softmax(lanes);
  const Summation strided{Order::lanes, lanes};
  choices.push_back({SoftmaxMethod::three_pass, strided, LogForm::folded});
  choices.push_back({SoftmaxMethod::three_pass, strided, LogForm::of_ratio});
  choices.push_back({SoftmaxMethod::unsafe, strided, LogForm::of_ratio});
  return choices;
}

bool used_by_kernels(const SoftmaxChoice& choice) {
  return choice.method != SoftmaxMethod::unsafe && choice.summation.order == Order::lanes &&
         choice.log_form == LogForm::shifted;
}

double depth_of(const SoftmaxChoice& choice, std::int64_t n) {
  if (choice.method != SoftmaxMethod::split) return depth_of(choice.summation, n);
  return depth_of(choice.summation, (n + choice.parts - 1) / choice.parts) + choice.parts;
}

SoftmaxRun::SoftmaxRun(const SoftmaxChoice& choice, const ArithmeticChoice& arithmetic, const RowSource& row)
    : row_(&row) {
  with_arithmetic<true>(arithmetic, [&]<class F, class M>() {
    RowView<F, M> x(row);
    bool saw_nan = false;
    for (std::int64_t i = 0; i < x.size(); ++i) {
      const F v = x[i];
      saw_nan = saw_nan || !(v == v);
    }
    const FlagWatch watch;
    const CountedMaxSum<F> s = softmax_state<F, M>(choice, x);
    state_.max = M::to_double(s.value.max);
    state_.sum = M::to_double(s.value.sum);
    state_.rescales = s.rescales;
    state_.log_sum_exp = M::to_double(log_sum_exp_of<F, M>(choice.method, s.value, saw_nan));
    state_.flags = watch.seen();
    softmax_ = [choice, value = s.value](std::span<double> v) {
      for (double& e : v) e = M::to_double(softmax_output<F, M>(choice.method, value, M::exact(e)));
    };
    log_softmax_ = [choice, value = s.value](std::span<double> v) {
      for (double& e : v) e = M::to_double(log_softmax_output<F, M>(choice, value, M::exact(e)));
    };
  });
}

namespace {

void add(FloatFlags& flags, const FloatFlags& seen) {
  flags.underflow |= seen.underflow;
  flags.overflow |= seen.overflow;
  flags.invalid |= seen.invalid;
}

}  // namespace

void SoftmaxRun::softmax(std::int64_t first, std::span<double> out, FloatFlags& flags) const {
  row_->read(first, out);
  const FlagWatch watch;
  softmax_(out);
  add(flags, watch.seen());
}

void SoftmaxRun::log_softmax(std::int64_t first, std::span<double> out, FloatFlags& flags) const {
  row_->read(first, out);
  const FlagWatch watch;
  log_softmax_(out);
  add(flags, watch.seen());
}

}  // namespace rowtune::stability
