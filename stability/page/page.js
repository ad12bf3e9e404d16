'use strict';
// Draws the figures of the stability report from the rows in #results. A series has a colour, a symbol and a dash, so
// that colour is never alone in telling it; every mark carries its numbers as a tooltip.

const raw = JSON.parse(document.getElementById('results').textContent);
const rows = raw.rows.map(r => Object.fromEntries(raw.columns.map((c, i) => [c, r[i]])));
const finite = v => typeof v === 'number';
const show = v => v === null ? '' : finite(v) ? d3.format('.3~g')(v) : String(v);
const colour = i => `var(--c${i % 6})`;
const symbols = [d3.symbolCircle, d3.symbolSquare, d3.symbolTriangle, d3.symbolDiamond, d3.symbolCross, d3.symbolStar];
const mark = i => d3.symbol().type(symbols[i % symbols.length]).size(42)();
const methods = {
  variance: ['one_pass', 'shifted_one_pass', 'two_pass', 'corrected_two_pass', 'welford', 'chan'],
  softmax: ['unsafe', 'online', 'three_pass', 'split'],
  log_softmax: ['unsafe', 'three_pass_log_of_ratio', 'three_pass', 'three_pass_folded', 'online']
};

function legend(host, names) {
  const box = d3.select(host).append('div').attr('class', 'legend');
  names.forEach((name, i) => {
    const item = box.append('span');
    item.append('svg').attr('width', 14).attr('height', 14).append('path').attr('transform', 'translate(7,7)')
        .attr('d', mark(i)).attr('fill', colour(i));
    item.append('span').text(name);
  });
}

// The scale of errors: logarithmic, with a band above it for what is not a number.
function errorScale(values, height) {
  const numbers = values.filter(v => finite(v) && v > 0);
  const low = Math.max(1e-17, d3.min(numbers) || 1e-9), high = Math.max(1, d3.max(numbers) || 1);
  return d3.scaleLog().domain([low / 3, high * 3]).range([height, 26]);
}

function axes(svg, x, y, width, height, xLabel, xTicks) {
  const yTicks = y.ticks().filter(t => Math.abs(Math.log10(t) % 1) < 1e-9);
  const step = Math.ceil(yTicks.length / 8);
  const kept = yTicks.filter((_, i) => i % step === 0);
  svg.append('g').attr('class', 'grid').selectAll('line').data(kept).join('line')
      .attr('x1', 0).attr('x2', width).attr('y1', y).attr('y2', y);
  svg.append('g').attr('class', 'axis').call(d3.axisLeft(y).tickValues(kept).tickFormat(d3.format('.0e')));
  const bottom = svg.append('g').attr('class', 'axis').attr('transform', `translate(0,${height})`);
  bottom.call(xTicks(d3.axisBottom(x)));
  svg.append('text').attr('class', 'soft').attr('x', width).attr('y', height + 34).attr('text-anchor', 'end').text(xLabel);
}

function linePanels({id, data, panels, series, seriesOf, x: xOf, xScale, xLabel, xTicks, bounds = true}) {
  const host = document.querySelector(`#${id} .plot`);
  legend(host, series);
  const total = 1040, gap = 64, width = (total - gap * panels.length) / panels.length - 12 / panels.length, height = 290;
  const svg = d3.select(host).append('svg').attr('viewBox', `0 0 ${total} ${height + 70}`).attr('role', 'img')
      .attr('aria-label', document.querySelector(`#${id} h2`).textContent);
  const used = data.filter(d => panels.some(p => p.has(d)) && series.includes(seriesOf(d)));
  const y = errorScale(used.map(d => d.error), height);
  panels.forEach((panel, k) => {
    const g = svg.append('g').attr('transform', `translate(${gap + k * (width + gap)},20)`);
    const here = used.filter(panel.has);
    const x = xScale(used.map(xOf), width);
    g.append('rect').attr('class', 'band').attr('y', 0).attr('width', width).attr('height', 18);
    g.append('text').attr('class', 'soft').attr('x', -8).attr('y', 13).attr('text-anchor', 'end').text('NaN, inf');
    axes(g, x, y, width, height, xLabel, xTicks);
    g.append('text').attr('y', -6).attr('font-weight', 600).text(panel.name);
    const clip = `clip-${id}-${k}`;
    g.append('clipPath').attr('id', clip).append('rect').attr('width', width).attr('height', height + 2);
    series.forEach((name, i) => {
      const line = here.filter(d => seriesOf(d) === name).sort((a, b) => xOf(a) - xOf(b));
      const height_of = d => d.nonfinite > 0 || !finite(d.error) ? 9 : d.error > 0 ? y(d.error) : height;
      const path = d3.line().x(d => x(xOf(d))).y(height_of);
      g.append('path').attr('d', path(line)).attr('fill', 'none').attr('stroke', colour(i)).attr('stroke-width', 1.6);
      if (bounds) {
        const proven = line.filter(d => d.bound_kind === 'proven' && finite(d.bound));
        g.append('path').attr('d', d3.line().x(d => x(xOf(d))).y(d => y(d.bound))(proven)).attr('fill', 'none')
            .attr('stroke', colour(i)).attr('stroke-dasharray', '2 4').attr('stroke-width', 1.1)
            .attr('clip-path', `url(#${clip})`);
      }
      g.selectAll(null).data(line).join('path').attr('transform', d => `translate(${x(xOf(d))},${height_of(d)})`)
          .attr('d', mark(i)).attr('fill', colour(i)).attr('stroke', d => d.negative > 0 ? 'var(--ink)' : 'none')
          .append('title').text(d => `${d.method} ${d.order}, ${d.dtype} data, ${d.arithmetic} sums\n${xLabel} ${show(xOf(d))}` +
              `\nerror ${show(d.error)}` + (finite(d.bound) ? `\n${d.bound_kind} bound ${show(d.bound)}` : '') +
              (d.negative > 0 ? '\nnegative variance' : ''));
    });
  });
}

const logX = (values, width) => {
  const numbers = values.filter(v => finite(v) && v > 0);
  return d3.scaleLog().domain([d3.min(numbers), d3.max(numbers)]).range([6, width - 6]);
};
const symlogX = (values, width) => d3.scaleSymlog().constant(10).domain(d3.extent(values)).range([6, width - 6]);
const powers = axis => axis.ticks(5, '.0e');
const f32 = d => d.dtype === 'f32' && d.arithmetic === 'f32';
const orders = ['sequential', 'lanes256', 'pairwise'];
const orderPanels = orders.map(o => ({name: o, has: d => d.order === o}));

function variancePanels(id, experiment, x, xLabel, xTicks, bounds) {
  linePanels({id, data: rows.filter(d => d.experiment === experiment && f32(d) && finite(x(d))), panels: orderPanels,
              series: methods.variance, seriesOf: d => d.method, x, xScale: logX, xLabel, xTicks, bounds});
}

// Methods as rows of dots, the two arrangements as symbols.
function merit() {
  const data = rows.filter(d => d.experiment === 'merit' && d.case.startsWith('mean_1e+04'));
  const names = [...new Set(data.map(d => `${d.method}, ${d.order}`))];
  const host = document.querySelector('#merit .plot'), series = ['shuffled', 'ascending'];
  const best = name => d3.min(data.filter(d => `${d.method}, ${d.order}` === name && d.case.endsWith('shuffled')), d => d.error);
  names.sort((a, b) => best(a) - best(b));
  legend(host, series.map(s => s === 'ascending' ? 'sorted' : s));
  const left = 230, total = 1040, step = 22, height = names.length * step;
  const svg = d3.select(host).append('svg').attr('viewBox', `0 0 ${total} ${height + 40}`);
  const x = d3.scaleLog().domain(d3.extent(data, d => d.error)).range([left + 10, total - 20]).nice();
  svg.append('g').attr('class', 'grid').selectAll('line').data(names).join('line').attr('x1', left).attr('x2', total - 10)
      .attr('y1', (_, i) => i * step + 14).attr('y2', (_, i) => i * step + 14);
  svg.append('line').attr('x1', x(1)).attr('x2', x(1)).attr('y1', 0).attr('y2', height).attr('stroke', 'var(--soft)')
      .attr('stroke-dasharray', '4 4');
  svg.append('g').selectAll('text').data(names).join('text').attr('x', left - 8).attr('text-anchor', 'end')
      .attr('y', (_, i) => i * step + 18).text(d => d);
  svg.append('g').attr('class', 'axis').attr('transform', `translate(0,${height + 4})`).call(d3.axisBottom(x).ticks(8, '.0e'));
  series.forEach((s, i) => svg.selectAll(null).data(data.filter(d => d.case.endsWith(s))).join('path')
      .attr('transform', d => `translate(${x(d.error)},${names.indexOf(`${d.method}, ${d.order}`) * step + 14})`)
      .attr('d', mark(i)).attr('fill', colour(i ? 0 : 2)).append('title')
      .text(d => `${d.method} ${d.order}, ${s}: ${show(d.error)}`));
  host.querySelectorAll('.legend path').forEach((p, i) => p.setAttribute('fill', colour(i ? 0 : 2)));
}

// Correct digits of each method on the nine sets, under the ceiling.
function strd() {
  const host = document.querySelector('#strd .plot'), series = methods.variance.slice(0, 5);
  legend(host, series);
  const sets = [...new Set(rows.filter(d => d.experiment === 'strd').map(d => d.case))];
  const total = 1040, gap = 52, width = (total - 2 * gap) / 2, height = 260;
  const svg = d3.select(host).append('svg').attr('viewBox', `0 0 ${total} ${height + 90}`);
  ['f64', 'f32'].forEach((dtype, k) => {
    const g = svg.append('g').attr('transform', `translate(${gap + k * (width + gap)},20)`);
    const x = d3.scalePoint().domain(sets).range([20, width - 36]), y = d3.scaleLinear().domain([0, 15.4]).range([height, 0]);
    g.append('g').attr('class', 'grid').selectAll('line').data(y.ticks(5)).join('line').attr('x1', 0).attr('x2', width)
        .attr('y1', y).attr('y2', y);
    g.append('g').attr('class', 'axis').call(d3.axisLeft(y).ticks(5));
    g.append('g').attr('class', 'axis').attr('transform', `translate(0,${height})`).call(d3.axisBottom(x))
        .selectAll('text').attr('transform', 'rotate(-35)').attr('text-anchor', 'end');
    g.append('text').attr('y', -7).attr('font-weight', 600).text(`${dtype} data and sums, correct digits`);
    const here = rows.filter(d => d.experiment === 'strd' && d.dtype === dtype && d.arithmetic === dtype && d.order === 'lanes256');
    sets.forEach(set => {
      const of = here.filter(d => d.case === set), ceiling = of.length ? of[0].ceiling : null;
      if (finite(ceiling))
        g.append('rect').attr('x', x(set) - 16).attr('width', 32).attr('y', y(ceiling) - 1.5).attr('height', 3)
            .attr('fill', 'var(--soft)').append('title').text(`ceiling ${show(ceiling)}`);
      if (of.length && !of.some(d => finite(d.lre)))
        g.append('text').attr('class', 'soft').attr('text-anchor', 'middle').attr('x', x(set)).attr('y', height - 8)
            .text('variance 0');
      of.filter(d => finite(d.lre) && series.includes(d.method)).forEach(d => {
        const i = series.indexOf(d.method);
        g.append('path').attr('transform', `translate(${x(set) + (i - 2) * 7},${y(d.lre)})`).attr('d', mark(i))
            .attr('fill', colour(i)).append('title').text(`${set} ${d.method}: ${show(d.lre)} digits, ceiling ${show(ceiling)}`);
      });
    });
  });
}

merit();
variancePanels('condition', 'condition', d => d.kappa, 'kappa', powers, true);
variancePanels('length', 'length', d => d.n, 'n', powers, false);
const lengths = [...new Set(rows.filter(d => d.experiment === 'kernel_rows').map(d => d.n))];
linePanels({id: 'lanes', data: rows.filter(d => d.experiment === 'kernel_rows' && d.case.endsWith('mean_10000')),
            panels: ['two_pass', 'corrected_two_pass', 'welford'].map(m => ({name: m, has: d => d.method === m})),
            series: lengths.map(n => `${n} columns`), seriesOf: d => `${d.n} columns`, x: d => d.factor, xScale: logX,
            xLabel: 'lanes', xTicks: axis => axis.tickValues([32, 256, 1024, 8192]).tickFormat(d3.format('d')), bounds: false});
linePanels({id: 'precision', data: rows.filter(d => d.experiment === 'condition' && d.method === 'two_pass' && d.order === 'lanes256' &&
                                               finite(d.kappa)),
            panels: [{name: 'two_pass, lanes256', has: () => true}],
            series: ['f64 data, f64 sums', 'f32 data, f32 sums', 'f16 data, f32 sums', 'bf16 data, f32 sums', 'f16 data, f16 sums',
                     'bf16 data, bf16 sums'],
            seriesOf: d => `${d.dtype} data, ${d.arithmetic} sums`, x: d => d.kappa, xScale: logX, xLabel: 'kappa',
            xTicks: powers, bounds: false});
const offsets = axis => axis.tickValues([-1e6, -1e4, -100, 0, 100, 1e4, 1e6]).tickFormat(d3.format('~g'));
const softmaxPanels = (id, experiment, op, xScale, xLabel, xTicks, bounds) =>
  linePanels({id, data: rows.filter(d => d.experiment === experiment && d.op === op && f32(d)), panels:
              orders.slice(op === 'softmax' ? 0 : 1, op === 'softmax' ? 3 : 2).map(o => ({name: o, has: d => d.order === o})),
              series: methods[op], seriesOf: d => d.method, x: d => d.factor, xScale, xLabel, xTicks, bounds});
softmaxPanels('offset', 'softmax_offset', 'softmax', symlogX, 'offset', offsets, false);
softmaxPanels('logsoftmax', 'softmax_offset', 'log_softmax', symlogX, 'offset', offsets, false);
softmaxPanels('range', 'softmax_range', 'softmax', logX, 'max - min of the logits', powers, true);
strd();
