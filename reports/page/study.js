'use strict';
// The stability study as the database has it: errors under their bounds, lengths, thresholds, certified digits, verdicts.
const study = page.stability.rows.filter(r => !r.device_model);
const sumsOf = r => (/^sums (\w+)/.exec(r.note || '') || ['', ''])[1];
const broken = r => r.nan_count + r.inf_count > 0 || r.rel_error === null;
const kernelOrder = order => /^lanes/.test(order);

/// One panel for each order of summation: error over `x`, a line a method, its proven bound dotted. What is not a number stands at the top.
function errorPanels(host, rows, x, xTitle, withBounds) {
  const points = rows.filter(r => x(r) > 0 && (broken(r) || r.rel_error > 0));
  const orders = unique(points.map(r => r.order)).sort((a, b) => kernelOrder(b) - kernelOrder(a) || (a < b ? -1 : 1));
  const methods = unique(points.map(r => r.method)).sort(), of = look(methods);
  const panels = panelsOf(host, orders);
  if (!orders.length) canvas(host, 0, {}, false, '');
  const seen = points.filter(r => !broken(r)).map(r => r.rel_error);
  const yDomain = seen.length ? [Math.max(1e-18, d3.min(seen)) / 3, Math.max(1, d3.max(seen)) * 3] : [1e-9, 1];
  orders.forEach((order, k) => {
    const here = points.filter(r => r.order === order);
    const c = canvas(panels[k], 320, {left: 60, right: 14, top: 30, bottom: 44}, true, `Relative error over ${xTitle}, sums in the order ${order}`);
    if (!c) return;
    const xs = here.map(x), y = d3.scaleLog().domain(yDomain).range([c.bottom, c.top + 18]);
    const px = d3.scaleLog().domain(d3.min(xs) < d3.max(xs) ? d3.extent(xs) : [d3.min(xs) / 2, d3.max(xs) * 2]).range([c.left + 8, c.right - 8]);
    logAxes(c, px, y, xTitle, 'relative error');
    c.svg.append('text').attr('class', 'soft').attr('x', c.right).attr('y', c.top + 8).attr('text-anchor', 'end').text('top line: NaN or infinity');
    const height = r => broken(r) ? c.top + 12 : y(Math.max(yDomain[0], r.rel_error));
    for (const method of methods) {
      const line = here.filter(r => r.method === method).sort((a, b) => x(a) - x(b));
      c.svg.append('path').attr('class', 'line').attr('d', d3.line().x(r => px(x(r))).y(height)(line)).attr('fill', 'none').attr('stroke', of(method).color);
      const bound = withBounds ? line.filter(r => r.bound_kind === 'proven' && r.bound > yDomain[0] && r.bound < yDomain[1]) : [];
      if (bound.length > 1) c.svg.append('path').attr('class', 'bound').attr('d', d3.line().x(r => px(x(r))).y(r => y(r.bound))(bound))
        .attr('fill', 'none').attr('stroke', of(method).color).attr('stroke-dasharray', '2 4');
    }
    tip(c.svg.append('g').selectAll('path').data(here).enter().append('path').attr('class', 'mark')
      .attr('transform', r => `translate(${px(x(r))},${height(r)})`).attr('d', r => d3.symbol().type(of(r.method).symbol).size(34)())
      .attr('fill', r => of(r.method).color).attr('stroke', r => r.negative_count ? 'var(--fore)' : 'none').attr('stroke-width', 2),
      r => `${r.method}, ${r.order}\n${xTitle} ${show.number(x(r))}\nrelative error ${show.number(r.rel_error)}` +
        (r.bound ? `\n${r.bound_kind} bound ${show.number(r.bound)}` : '') + (r.negative_count ? '\nnegative variance' : ''));
  });
  legendIn(host, [...methods.map(m => ({name: m, ...of(m)})), ...(withBounds ? [{name: 'its proven bound', color: 'var(--soft)', dash: '2 4'}] : [])]);
}

/// Correct digits on the certified sets, under the ceiling that rounding the input sets.
function digitsChart(host, rows) {
  const sets = unique(rows.map(r => r.case)).sort(), methods = unique(rows.map(r => r.method)).sort(), of = look(methods);
  const c = canvas(host, 340, {left: 44, right: 14, top: 26, bottom: 84}, rows.length, 'Correct digits on the NIST sets');
  if (!c) return;
  const x = d3.scaleBand().domain(sets).range([c.left, c.right]).padding(0.15);
  const y = d3.scaleLinear().domain([Math.min(0, d3.min(rows, r => r.lre) || 0), d3.max(rows, r => Math.max(r.lre || 0, r.lre_ceiling || 0)) * 1.05 || 16]).range([c.bottom, c.top]);
  c.svg.append('g').attr('class', 'soft').attr('transform', `translate(${c.left},0)`).call(d3.axisLeft(y).ticks(6));
  c.svg.append('g').attr('class', 'soft').attr('transform', `translate(0,${c.bottom})`).call(d3.axisBottom(x))
    .selectAll('text').attr('transform', 'rotate(-35)').attr('text-anchor', 'end');
  c.svg.append('text').attr('class', 'soft').attr('x', c.left).attr('y', c.top - 8).text('correct decimal digits of the standard deviation');
  const ceilings = sets.map(s => rows.find(r => r.case === s && r.lre_ceiling !== null)).filter(Boolean);
  tip(c.svg.append('g').selectAll('rect').data(ceilings).enter().append('rect').attr('class', 'ceiling').attr('x', r => x(r.case)).attr('width', x.bandwidth())
    .attr('y', r => y(r.lre_ceiling) - 2).attr('height', 4).attr('fill', 'var(--soft)'), r => `${r.case}\nceiling ${show.number(r.lre_ceiling)} digits`);
  tip(c.svg.append('g').selectAll('path').data(rows.filter(r => r.lre !== null)).enter().append('path').attr('class', 'mark')
    .attr('transform', r => `translate(${x(r.case) + (methods.indexOf(r.method) + 0.5) * x.bandwidth() / methods.length},${y(r.lre)})`)
    .attr('d', r => d3.symbol().type(of(r.method).symbol).size(40)()).attr('fill', r => of(r.method).color),
    r => `${r.case}, ${r.method}\n${show.number(r.lre)} digits of the exact value of the rounded data\nceiling ${show.number(r.lre_ceiling)}`);
  legend(c, [...methods.map(m => ({name: m, ...of(m)})), {name: 'ceiling: what rounding the input leaves', color: 'var(--soft)'}]);
}

const someOf = (experiment, dtype) => study.filter(r => r.experiment === experiment && r.dtype === dtype && sumsOf(r) === dtype);

function fillStudy() {
  const text = (title, get, more = {}) => ({title, value: get, keep: true, ...more});
  const kinds = unique(page.verdicts.map(v => `${v.dtype} data, ${v.sums || '?'} sums`)).sort();
  const drawVerdicts = () => table(byId('verdict-table'), [text('op', v => v.op), text('method', v => v.method), text('order', v => v.order),
    text('verdict', v => v.words, {words: true}), text('results', v => v.results, {number: true, show: show.count}),
    text('beside a proven bound', v => v.bounded, {number: true, show: show.count}), text('beyond it', v => v.exceeded, {number: true, show: show.count}),
    text('closest to it', v => v.worst_share, {number: true, show: show.percent, bar: v => v.worst_share}),
    text('not finite', v => v.nonfinite, {number: true, show: show.count}), text('negative', v => v.negative, {number: true, show: show.count}),
    text('two digits lost at condition', v => v.lost_at, {number: true, show: show.number})],
    page.verdicts.filter(v => `${v.dtype} data, ${v.sums || '?'} sums` === byId('verdict-kind').value));
  byId('verdict-kind').replaceChildren(...kinds.map(k => element('option', {value: k}, k)));
  byId('verdict-kind').value = kinds.includes('f32 data, f32 sums') ? 'f32 data, f32 sums' : kinds[0] || '';
  byId('verdict-kind').addEventListener('change', drawVerdicts);
  const thresholds = study.filter(r => r.experiment === 'threshold');
  reveal('threshold-part', thresholds.length);
  table(byId('threshold-table'), [text('row', r => r.case), text('elements', r => r.n, {number: true, show: show.count}), text('method', r => r.method),
    text('data', r => r.dtype), text('where the first logit breaks it', r => r.note, {words: true})], thresholds);
  const experiments = unique(page.stability.rows.map(r => r.experiment));
  byId('experiment').replaceChildren(...experiments.map(e => element('option', {value: e}, e || 'unnamed')));
  const drawTable = () => {
    const some = page.stability.rows.filter(r => r.experiment === byId('experiment').value);
    table(byId('stability-table'), varying(columnsOf(page.stability.heads, ['op', 'method', 'dtype', 'rel_error']), some), some);
  };
  byId('experiment').addEventListener('change', drawTable);
  drawVerdicts();
  drawTable();
  return () => {
    errorPanels(byId('condition-chart'), someOf('condition', 'f32'), r => r.kappa, 'condition number', true);
    errorPanels(byId('length-chart'), someOf('length', 'f32'), r => r.n, 'elements of the row', true);
    const digits = someOf('strd', 'f64').filter(r => kernelOrder(r.order));
    digitsChart(byId('digits-chart'), digits.length ? digits : someOf('strd', 'f64'));
  };
}
