'use strict';
// Charts: each draws into its host from scratch, at the host's width, so that a resize only draws again.
// Colour never stands alone: symbols, dashes or letters say the same.
const palette = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#8c6bb1', '#7f7f7f'];
const symbols = window.d3 ? [d3.symbolCircle, d3.symbolSquare, d3.symbolTriangle, d3.symbolDiamond, d3.symbolCross, d3.symbolStar, d3.symbolWye] : [];

function look(names) {
  const sorted = unique(names).sort();
  return name => {
    const i = Math.max(0, sorted.indexOf(name));
    return {color: palette[i % palette.length], symbol: symbols[i % symbols.length]};
  };
}

function tip(selection, words) {
  const box = byId('tip');
  selection.on('pointerenter.tip pointermove.tip', function (d) {
    box.textContent = words(d);
    box.hidden = false;
    const e = d3.event;
    box.style.left = Math.max(4, Math.min(e.clientX + 12, innerWidth - box.offsetWidth - 8)) + 'px';
    box.style.top = Math.max(4, Math.min(e.clientY + 12, innerHeight - box.offsetHeight - 8)) + 'px';
  }).on('pointerleave.tip', () => { box.hidden = true; });
  selection.append('title').text(words);
}

/// A drawing area with margins; null when there is nothing to draw with or nothing to draw.
function canvas(id, height, margin, something, label) {
  const host = byId(id);
  host.replaceChildren();
  if (!window.d3) { host.append(element('p', {class: 'note'}, 'This program was built without D3, so charts are missing.')); return null; }
  if (!something) { host.append(element('p', {class: 'note'}, 'Nothing to draw for this choice.')); return null; }
  const width = Math.max(300, host.clientWidth || 900);
  const svg = d3.select(host).append('svg').attr('viewBox', `0 0 ${width} ${height}`).attr('role', 'img').attr('aria-label', label);
  return {host, svg, width, height, left: margin.left, right: width - margin.right, top: margin.top, bottom: height - margin.bottom};
}

const tick = v => v !== 0 && (Math.abs(v) >= 1e6 || Math.abs(v) < 1e-3) ? v.toExponential(0) : String(Number(v.toPrecision(6)));

function axes(c, x, y, xTitle, yTitle, xTicks, xFormat) {
  const bottom = d3.axisBottom(x);
  if (xTicks) bottom.tickValues(xTicks); else bottom.ticks(Math.max(3, c.width / 110));
  bottom.tickFormat(xFormat || tick);
  c.svg.append('g').attr('class', 'soft').attr('transform', `translate(0,${c.bottom})`).call(bottom);
  if (y) c.svg.append('g').attr('class', 'soft').attr('transform', `translate(${c.left},0)`).call(d3.axisLeft(y).ticks(6).tickFormat(tick));
  c.svg.append('text').attr('class', 'soft').attr('x', c.right).attr('y', c.bottom + 34).attr('text-anchor', 'end').text(xTitle);
  if (yTitle) c.svg.append('text').attr('class', 'soft').attr('x', c.left).attr('y', c.top - 8).text(yTitle);
}

function legend(c, entries) {
  const box = element('div', {class: 'legend'});
  for (const e of entries) {
    const item = element('span', {});
    const svg = d3.select(item).append('svg').attr('viewBox', '-8 -7 16 14').attr('aria-hidden', 'true');
    if (e.symbol) svg.append('path').attr('d', d3.symbol().type(e.symbol).size(60)())
      .attr('fill', e.hollow ? 'none' : e.color).attr('stroke', e.color).attr('stroke-width', 1.5);
    else svg.append('line').attr('x1', -8).attr('x2', 8).attr('stroke', e.color).attr('stroke-width', 2).attr('stroke-dasharray', e.dash || null);
    item.append(document.createTextNode(e.name));
    box.append(item);
  }
  c.host.prepend(box);
}

const powers = values => {
  const low = Math.floor(Math.log2(d3.min(values))), high = Math.ceil(Math.log2(d3.max(values)));
  const step = Math.max(1, Math.ceil((high - low) / 8));
  const inside = d3.range(low, high + 1, step).map(p => 2 ** p).filter(p => p >= d3.min(values) && p <= d3.max(values));
  return inside.length > 1 ? inside : values;
};
const short = n => n >= 1048576 && n % 1048576 === 0 ? n / 1048576 + 'M' : n >= 1024 && n % 1024 === 0 ? n / 1024 + 'K' : String(n);

function bandwidthChart(winners) {
  const points = winners.filter(c => c.gbps && c.w.cols > 0 && c.w.op !== 'copy');
  const c = canvas('bandwidth-chart', 420, {left: 52, right: 88, top: 26, bottom: 44}, points.length, 'Bandwidth of the winners over row length');
  if (!c) return;
  const ofOp = look(points.map(p => p.w.op));
  const key = p => [p.w.op, p.w.dtype, p.w.rows, p.w.device_model, p.w.regime].join('\n');
  const lines = d3.nest().key(key).entries(points);
  const ceilings = new Map();  // of the copies that stand behind the points
  points.forEach(p => {
    if (!p.w.ceiling_us) return;
    const k = [p.w.rows, p.w.dtype, p.w.device_model, p.w.regime].join('\n');
    if (!ceilings.has(k)) ceilings.set(k, new Map());
    ceilings.get(k).set(p.w.cols, p.w.bytes / p.w.ceiling_us / 1e3);
  });
  const x = d3.scaleLog().base(2).domain(d3.extent(points, p => p.w.cols)).range([c.left, c.right]);
  if (x.domain()[0] === x.domain()[1]) x.domain([x.domain()[0] / 2, x.domain()[1] * 2]);
  const highest = Math.max(d3.max(points, p => p.gbps), ...[...ceilings.values()].flatMap(m => [...m.values()]));
  const y = d3.scaleLinear().domain([0, highest * 1.05]).range([c.bottom, c.top]);
  axes(c, x, y, 'columns', 'GB/s', powers(x.domain()), short);
  const line = d3.line().x(p => x(p[0])).y(p => y(p[1]));
  for (const m of ceilings.values())
    c.svg.append('path').attr('d', line([...m].sort((a, b) => a[0] - b[0]))).attr('fill', 'none').attr('stroke', 'var(--soft)').attr('stroke-dasharray', '5 4');
  const used = [];
  for (const l of lines) {
    const sorted = l.values.sort((a, b) => a.w.cols - b.w.cols), first = sorted[0], last = sorted[sorted.length - 1];
    c.svg.append('path').attr('d', line(sorted.map(p => [p.w.cols, p.gbps]))).attr('fill', 'none').attr('stroke', ofOp(first.w.op).color).attr('stroke-opacity', 0.7);
    const spot = y(last.gbps);
    if (used.every(u => Math.abs(u - spot) > 12)) {  // labels that would cover each other are left to the tips
      used.push(spot);
      c.svg.append('text').attr('class', 'soft').attr('x', x(last.w.cols) + 8).attr('y', spot + 4).text(short(last.w.rows) + ' rows');
    }
  }
  const dots = c.svg.append('g').selectAll('path').data(points).enter().append('path')
    .attr('transform', p => `translate(${x(p.w.cols)},${y(p.gbps)})`)
    .attr('d', p => d3.symbol().type(ofOp(p.w.op).symbol).size(56)()).attr('fill', p => ofOp(p.w.op).color).style('cursor', 'pointer')
    .on('click', p => chooseWorkload(p.w));
  tip(dots, p => `${p.w.label}\n${p.config}\n${show.rate(p.gbps)} GB/s, ${show.percent(p.fraction)} of the ceiling\n${show.time(p.time)}, gain ${show.ratio(p.gain)}`);
  legend(c, [...unique(points.map(p => p.w.op)).sort().map(o => ({name: o, ...ofOp(o)})),
             {name: 'ceiling: the tuned copy', color: 'var(--soft)', dash: '5 4'}]);
}

function whereChart(winners, op) {
  const points = winners.filter(p => p.w.op === op);
  const columns = unique(points.map(p => p.w.cols)).sort((a, b) => a - b), rows = unique(points.map(p => p.w.rows)).sort((a, b) => a - b);
  const c = canvas('where-chart', 70 + 34 * rows.length, {left: 76, right: 16, top: 24, bottom: 44}, points.length, 'Algorithm that wins at each shape');
  if (!c) return;
  const of = look(page.configs.map(p => p.algorithm));
  const x = d3.scaleBand().domain(columns).range([c.left, c.right]).padding(0.06);
  const y = d3.scaleBand().domain(rows).range([c.bottom, c.top]).padding(0.06);
  const every = Math.ceil(columns.length / (c.width / 60));
  axes(c, x, null, 'columns', op + ': rows', columns.filter((_, i) => i % every === 0), short);
  c.svg.append('g').attr('class', 'soft').attr('transform', `translate(${c.left},0)`).call(d3.axisLeft(y).tickFormat(short));
  const letters = new Map();
  unique(points.map(p => p.algorithm)).sort().forEach(a => {  // the first letter that is still free
    const taken = new Set(letters.values());
    letters.set(a, [...a.toUpperCase()].find(l => /[A-Z]/.test(l) && !taken.has(l)) || String(letters.size));
  });
  const cells = c.svg.append('g').selectAll('g').data(points).enter().append('g').style('cursor', 'pointer').on('click', p => chooseWorkload(p.w));
  cells.append('rect').attr('x', p => x(p.w.cols)).attr('y', p => y(p.w.rows)).attr('width', x.bandwidth()).attr('height', y.bandwidth())
    .attr('fill', p => of(p.algorithm).color).attr('fill-opacity', 0.35);
  cells.append('text').attr('x', p => x(p.w.cols) + x.bandwidth() / 2).attr('y', p => y(p.w.rows) + y.bandwidth() / 2 + 4).attr('text-anchor', 'middle')
    .text(p => x.bandwidth() < 12 ? '' : letters.get(p.algorithm) + (x.bandwidth() > 64 ? ' ' + show.ratio(p.gain) : ''));
  tip(cells, p => `${p.w.label}\n${p.config}\ngain ${show.ratio(p.gain)}, ties ${p.ties}`);
  legend(c, [...letters].map(([a, l]) => ({name: `${l}: ${a}`, color: of(a).color, symbol: window.d3.symbolSquare})));
}

/// Horizontal strip of all configs of a workload, one lane an algorithm.
function distributionChart(w) {
  const points = w ? w.configs.filter(p => p.time) : [];
  const lanes = unique(points.map(p => p.algorithm)).sort();
  const c = canvas('distribution-chart', 74 + 36 * lanes.length, {left: 110, right: 20, top: 26, bottom: 44}, points.length, 'Times of all configs of the workload');
  if (!c) return;
  const of = look(page.configs.map(p => p.algorithm));
  const all = [...points.map(p => p.time), ...(w.ceiling_us ? [w.ceiling_us] : [])];
  const low = d3.min(all), high = d3.max(all);
  const x = (high / low > 8 ? d3.scaleLog() : d3.scaleLinear()).domain([low * 0.97, high * 1.03]).range([c.left, c.right]);
  const y = d3.scalePoint().domain(lanes).range([c.top, c.bottom]).padding(0.6);
  axes(c, x, null, 'time (us)');
  const names = c.svg.append('g').attr('class', 'soft').selectAll('text').data(lanes).enter().append('text').attr('x', c.left - 8).attr('y', a => y(a) + 4).attr('text-anchor', 'end');
  names.text(a => a);
  const line = (at, name) => {
    c.svg.append('line').attr('x1', x(at)).attr('x2', x(at)).attr('y1', c.top).attr('y2', c.bottom).attr('stroke', 'var(--soft)').attr('stroke-dasharray', '5 4');
    c.svg.append('text').attr('class', 'soft').attr('x', x(at)).attr('y', c.top - 8).attr('text-anchor', x(at) > c.width / 2 ? 'end' : 'start').text(name);
  };
  if (w.ceiling_us) line(w.ceiling_us, 'ceiling ' + show.time(w.ceiling_us));
  const jitter = (p, i) => y(p.algorithm) + ((i * 7) % 5 - 2) * 3;
  c.svg.append('g').selectAll('line').data(points).enter().append('line').attr('stroke', p => of(p.algorithm).color).attr('stroke-opacity', 0.5)
    .attr('x1', p => x(p.lo === null ? p.time : Math.max(p.lo, x.domain()[0]))).attr('x2', p => x(p.hi === null ? p.time : Math.min(p.hi, x.domain()[1]))).attr('y1', jitter).attr('y2', jitter);
  const kind = p => p.rank === 1 ? d3.symbolStar : p.base ? d3.symbolSquare : d3.symbolCircle;
  const dots = c.svg.append('g').selectAll('path').data(points).enter().append('path')
    .attr('transform', (p, i) => `translate(${x(p.time)},${jitter(p, i)})`)
    .attr('d', p => d3.symbol().type(kind(p)).size(p.rank === 1 ? 150 : p.base ? 80 : 40)())
    .attr('fill', p => p.eligible ? of(p.algorithm).color : 'none').attr('stroke', p => p.tie ? 'var(--fore)' : of(p.algorithm).color).attr('stroke-width', p => p.tie ? 2 : 1);
  tip(dots, p => `${p.config}\n${show.time(p.time)} (${intervalOf(p)})\n${show.percent(p.fraction)} of the ceiling, gain ${show.ratio(p.gain)}, error ${show.number(p.error)} ulp`);
  legend(c, [{name: 'winner', color: 'var(--fore)', symbol: d3.symbolStar}, {name: 'base', color: 'var(--fore)', symbol: d3.symbolSquare},
             {name: 'outlined: ties with the winner', color: 'var(--fore)', symbol: d3.symbolCircle, hollow: true},
             {name: 'not filled: unsafe, may not win', color: 'var(--soft)', symbol: d3.symbolCircle, hollow: true}]);
}

function errorChart(w) {
  const points = w ? w.configs.filter(p => p.time && p.error !== null) : [];
  const c = canvas('error-chart', 320, {left: 58, right: 20, top: 26, bottom: 44}, points.length, 'Error over time of all configs of the workload');
  if (!c) return;
  const of = look(page.configs.map(p => p.algorithm));
  const [low, high] = d3.extent(points, p => p.time);
  const x = (high / low > 8 ? d3.scaleLog() : d3.scaleLinear()).domain([low * 0.97, high * 1.03]).range([c.left, c.right]);
  const y = d3.scaleLinear().domain([0, (d3.max(points, p => p.error) || 1) * 1.1]).range([c.bottom, c.top]);
  axes(c, x, y, 'time (us)', 'max error (ulp)');
  const front = [];
  for (const p of points.filter(p => p.eligible).sort((a, b) => a.time - b.time || a.error - b.error))
    if (!front.length || p.error < front[front.length - 1].error) front.push(p);
  c.svg.append('path').attr('d', d3.line().curve(d3.curveStepAfter).x(p => x(p.time)).y(p => y(p.error))(front)).attr('fill', 'none').attr('stroke', 'var(--soft)');
  const dots = c.svg.append('g').selectAll('path').data(points).enter().append('path').attr('transform', p => `translate(${x(p.time)},${y(p.error)})`)
    .attr('d', p => d3.symbol().type(of(p.algorithm).symbol).size(p.rank === 1 ? 120 : 50)()).attr('fill', p => p.eligible ? of(p.algorithm).color : 'none').attr('stroke', p => of(p.algorithm).color);
  tip(dots, p => `${p.config}\n${show.time(p.time)}, ${show.number(p.error)} ulp${p.eligible ? '' : '\nunsafe, may not win'}`);
  legend(c, unique(points.map(p => p.algorithm)).sort().map(a => ({name: a, ...of(a)})));
}

/// Relative error over the condition number, one line a method and order; cases without one are left to the table.
function stabilityChart(rows) {
  const points = rows.filter(r => r.kappa > 0 && r.rel_error > 0);
  const c = canvas('stability-chart', 380, {left: 66, right: 20, top: 26, bottom: 44}, points.length, 'Relative error over the condition number');
  if (!c) return;
  const of = look(rows.map(r => r.method));
  const x = d3.scaleLog().domain(d3.extent(points, r => r.kappa)).range([c.left, c.right]).nice();
  const y = d3.scaleLog().domain(d3.extent(points, r => r.rel_error)).range([c.bottom, c.top]).nice();
  axes(c, x, null, 'condition number', 'relative error', x.ticks(Math.max(3, c.width / 110)).filter((_, i, all) => i % Math.ceil(all.length / (c.width / 80)) === 0), v => v.toExponential(0));
  c.svg.append('g').attr('class', 'soft').attr('transform', `translate(${c.left},0)`).call(d3.axisLeft(y).ticks(6, '.0e'));
  const dots = c.svg.append('g').selectAll('path').data(points).enter().append('path').attr('transform', r => `translate(${x(r.kappa)},${y(r.rel_error)})`)
    .attr('d', r => d3.symbol().type(of(r.method).symbol).size(40)()).attr('fill', r => of(r.method).color).attr('fill-opacity', 0.8);
  tip(dots, r => `${r.method}, ${r.order}, ${r.dtype}, n = ${r.n}\n${r.case}\nrelative error ${show.number(r.rel_error)}, bound ${show.number(r.bound)} ${r.bound_kind}`);
  legend(c, unique(points.map(r => r.method)).sort().map(m => ({name: m, ...of(m)})));
}
