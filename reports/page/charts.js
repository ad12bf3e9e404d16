'use strict';
// Charts: each draws into its host from scratch, at the host's width, so that a resize only draws again.
// Colour never stands alone: symbols, dashes or letters say the same.
const palette = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#8c6bb1', '#7f7f7f'];
const symbols = window.d3 ? [d3.symbolCircle, d3.symbolSquare, d3.symbolTriangle, d3.symbolDiamond, d3.symbolCross, d3.symbolStar, d3.symbolWye] : [];

function look(names, ordered = false) {
  const sorted = ordered ? unique(names) : unique(names).sort();
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

/// A drawing area with margins in a host (or the id of one); null when there is nothing to draw with or nothing to draw.
function canvas(where, height, margin, something, label) {
  const host = typeof where === 'string' ? byId(where) : where;
  host.replaceChildren(...[...host.children].filter(e => e.tagName === 'H4'));
  if (!window.d3) { host.append(element('p', {class: 'note'}, 'This program was built without D3, so charts are missing.')); return null; }
  if (!something) { host.append(element('p', {class: 'note'}, 'Nothing to draw for this choice.')); return null; }
  const width = Math.max(300, host.clientWidth || 900);
  const svg = d3.select(host).append('svg').attr('viewBox', `0 0 ${width} ${height}`).attr('role', 'img').attr('aria-label', label);
  return {host, svg, width, height, left: margin.left, right: width - margin.right, top: margin.top, bottom: height - margin.bottom};
}

/// Side by side where there is room: an empty host for each name, with the name above it.
function panelsOf(host, names) {
  const hosts = names.map(n => element('div', {class: 'panel'}, ...(n ? [element('h4', {}, n)] : [])));
  host.replaceChildren(element('div', {class: 'panels'}, ...hosts));
  return hosts;
}

const tick = v => v !== 0 && (Math.abs(v) >= 1e6 || Math.abs(v) < 1e-3) ? v.toExponential(0) : String(Number(v.toPrecision(6)));

/// Ticks of a logarithmic scale that do not cover each other: 1, 2, 5, or powers of ten where they are many.
function logTicks(scale, width) {
  const all = scale.ticks(40), first = v => Math.round(v / 10 ** Math.floor(Math.log10(v) + 1e-9));
  const few = all.filter(v => [1, 2, 5].includes(first(v)));
  return few.length < 2 ? all : few.length > width / 60 ? few.filter(v => first(v) === 1) : few;
}

function axes(c, x, y, xTitle, yTitle, xTicks, xFormat) {
  const bottom = d3.axisBottom(x);
  if (xTicks) bottom.tickValues(xTicks); else bottom.ticks(Math.max(3, c.width / 110));
  bottom.tickFormat(xFormat || tick);
  c.svg.append('g').attr('class', 'soft').attr('transform', `translate(0,${c.bottom})`).call(bottom);
  if (y) c.svg.append('g').attr('class', 'soft').attr('transform', `translate(${c.left},0)`).call(d3.axisLeft(y).ticks(6).tickFormat(tick));
  c.svg.append('text').attr('class', 'soft').attr('x', c.right).attr('y', c.bottom + 34).attr('text-anchor', 'end').text(xTitle);
  if (yTitle) c.svg.append('text').attr('class', 'soft').attr('x', c.left).attr('y', c.top - 8).text(yTitle);
}

/// Axes of two logarithmic scales, with as many powers of ten as fit.
function logAxes(c, x, y, xTitle, yTitle) {
  const powersOf = (scale, most) => {
    const [low, high] = scale.domain();
    const from = Math.ceil(Math.log10(low) - 1e-9), to = Math.floor(Math.log10(high) + 1e-9);
    const all = d3.range(from, to + 1, Math.max(1, Math.ceil((to - from + 1) / most))).map(e => 10 ** e);
    return all.length > 1 ? all : scale.ticks(3);
  };
  const said = v => Number.isInteger(Math.round(Math.log10(v) * 1e6) / 1e6) && (v < 1e-3 || v >= 1e6) ? '1e' + Math.round(Math.log10(v)) : tick(v);
  c.svg.append('g').attr('class', 'soft').attr('transform', `translate(0,${c.bottom})`).call(d3.axisBottom(x).tickValues(powersOf(x, Math.max(3, c.width / 70))).tickFormat(said));
  c.svg.append('g').attr('class', 'soft').attr('transform', `translate(${c.left},0)`).call(d3.axisLeft(y).tickValues(powersOf(y, 8)).tickFormat(said));
  c.svg.append('text').attr('class', 'soft').attr('x', c.right).attr('y', c.bottom + 34).attr('text-anchor', 'end').text(xTitle);
  c.svg.append('text').attr('class', 'soft').attr('x', 4).attr('y', c.top - 10).text(yTitle);
}

function legend(c, entries) { legendIn(c.host, entries); }
function legendIn(host, entries) {
  if (!window.d3) return;
  const box = element('div', {class: 'legend'});
  for (const e of entries) {
    const item = element('span', {});
    const svg = d3.select(item).append('svg').attr('viewBox', '-8 -7 16 14').attr('aria-hidden', 'true');
    if (e.letter) svg.append('text').attr('text-anchor', 'middle').attr('y', 4).text(e.letter);
    else if (e.symbol) svg.append('path').attr('d', d3.symbol().type(e.symbol).size(60)())
      .attr('fill', e.hollow ? 'none' : e.color).attr('stroke', e.color).attr('stroke-width', 1.5);
    else svg.append('line').attr('x1', -8).attr('x2', 8).attr('stroke', e.color).attr('stroke-width', 2).attr('stroke-dasharray', e.dash || null);
    item.append(document.createTextNode(e.name));
    box.append(item);
  }
  host.prepend(box);
}

const powers = (values, width = 900) => {
  const low = Math.floor(Math.log2(d3.min(values))), high = Math.ceil(Math.log2(d3.max(values)));
  const step = Math.max(1, Math.ceil((high - low) / Math.max(3, width / 60)));
  const inside = d3.range(low, high + 1, step).map(p => 2 ** p).filter(p => p >= d3.min(values) && p <= d3.max(values));
  return inside.length > 1 ? inside : values;
};
const rowsOf = n => short(n) + (n === 1 ? ' row' : ' rows');
const short = n => n >= 1048576 && n % 1048576 === 0 ? n / 1048576 + 'M' : n >= 1024 && n % 1024 === 0 ? n / 1024 + 'K' : String(n);

/// One panel for each device, regime and dtype: the winners of one operation over the row length, a line for each number of
/// rows; the tuned copy of the same bytes dashed in the same colour; other libraries' fastest times as letters.
function bandwidthChart(winners, op) {
  const points = winners.filter(c => c.gbps && c.w.cols > 0 && c.w.op === op);
  const host = byId('bandwidth-chart');
  const name = p => [page.devices.length > 1 ? p.w.device_model : '', p.w.regime, p.w.dtype].filter(Boolean).join(', ');
  const names = unique(points.map(name)).sort();
  if (!names.length || !window.d3) { canvas(host, 0, {}, points.length, ''); return; }
  const panels = panelsOf(host, names);
  const ofRows = look(unique(points.map(p => p.w.rows)).sort((a, b) => a - b), true);
  const impls = unique(points.flatMap(p => p.w.others.map(o => o.impl))).sort(), letterOf = lettersOf(impls);
  const rate = (p, us) => p.w.bytes / us / 1e3;
  const highest = d3.max(points, p => Math.max(p.gbps, p.w.ceiling_us ? rate(p, p.w.ceiling_us) : 0, ...p.w.others.map(o => rate(p, o.time_us))));
  names.forEach((panel, k) => {
    const here = points.filter(p => name(p) === panel);
    const c = canvas(panels[k], 380, {left: 48, right: 70, top: 26, bottom: 44}, true, `Bandwidth of ${op} over row length, ${panel}`);
    const x = d3.scaleLog().base(2).domain(d3.extent(here, p => p.w.cols)).range([c.left, c.right]);
    if (x.domain()[0] === x.domain()[1]) x.domain([x.domain()[0] / 2, x.domain()[1] * 2]);
    const y = d3.scaleLinear().domain([0, highest * 1.05]).range([c.bottom, c.top]);
    axes(c, x, y, 'columns', 'GB/s', powers(x.domain(), c.width), short);
    const used = [];
    for (const rows of unique(here.map(p => p.w.rows))) {
      const line = here.filter(p => p.w.rows === rows).sort((a, b) => a.w.cols - b.w.cols), last = line[line.length - 1];
      const path = get => d3.line().defined(p => get(p) !== null).x(p => x(p.w.cols)).y(p => y(get(p)))(line);
      const draw = (kind, get) => c.svg.append('path').attr('class', kind).attr('d', path(get)).attr('fill', 'none').attr('stroke', ofRows(rows).color);
      draw('ceiling', p => p.w.ceiling_us ? rate(p, p.w.ceiling_us) : null).attr('stroke-dasharray', '5 4');
      draw('line', p => p.gbps).attr('stroke-opacity', 0.8);
      // Of a single length, a short dash stands for the ceiling's line.
      if (line.length === 1 && last.w.ceiling_us) c.svg.append('line').attr('class', 'ceiling').attr('x1', x(last.w.cols) - 9).attr('x2', x(last.w.cols) + 9)
        .attr('y1', y(rate(last, last.w.ceiling_us))).attr('y2', y(rate(last, last.w.ceiling_us))).attr('stroke', ofRows(rows).color).attr('stroke-dasharray', '5 4');
      const spot = [x(last.w.cols) + 8, y(last.gbps) + 4];
      if (used.every(u => Math.abs(u[1] - spot[1]) > 12 || Math.abs(u[0] - spot[0]) > 60)) {  // labels that would cover each other are left to the tips
        used.push(spot);
        c.svg.append('text').attr('class', 'soft').attr('x', spot[0]).attr('y', spot[1]).text(rowsOf(rows));
      }
    }
    const others = here.flatMap(p => p.w.others.map(o => ({p, o})));
    tip(c.svg.append('g').selectAll('text').data(others).enter().append('text').attr('class', 'other').attr('text-anchor', 'middle')
      .attr('x', d => x(d.p.w.cols)).attr('y', d => y(rate(d.p, d.o.time_us)) + 4).text(d => letterOf.get(d.o.impl)),
      d => `${d.p.w.label}\n${d.o.impl} ${d.o.version}: ${show.time(d.o.time_us)}, ${show.rate(rate(d.p, d.o.time_us))} GB/s\nrowtune ${show.time(d.p.time)}`);
    const dots = c.svg.append('g').selectAll('path').data(here).enter().append('path').attr('class', 'mark')
      .attr('transform', p => `translate(${x(p.w.cols)},${y(p.gbps)})`)
      .attr('d', p => d3.symbol().type(ofRows(p.w.rows).symbol).size(56)()).attr('fill', p => ofRows(p.w.rows).color).style('cursor', 'pointer')
      .on('click', p => chooseWorkload(p.w));
    tip(dots, p => `${p.w.label}\n${p.config}\n${show.rate(p.gbps)} GB/s, ${show.percent(p.fraction)} of the ceiling\n${show.time(p.time)}, gain ${show.ratio(p.gain)}`);
  });
  legendIn(host, [...unique(points.map(p => p.w.rows)).sort((a, b) => a - b).map(r => ({name: rowsOf(r), ...ofRows(r)})),
                  {name: 'ceiling: the tuned copy of the same bytes', color: 'var(--soft)', dash: '5 4'},
                  ...impls.map(i => ({name: i, letter: letterOf.get(i)}))]);
}

/// A letter for each name: its first that is still free, else a number.
function lettersOf(names) {
  const letters = new Map();
  for (const n of names) {
    const taken = new Set(letters.values());
    letters.set(n, [...n.toUpperCase()].find(l => /[A-Z]/.test(l) && !taken.has(l)) || String(letters.size));
  }
  return letters;
}

/// The dispatch map: one panel for each device, regime and dtype.
function whereCharts(winners, op) {
  const points = winners.filter(p => p.w.op === op), host = byId('where-chart');
  const name = p => [page.devices.length > 1 ? p.w.device_model : '', p.w.regime, p.w.dtype].filter(Boolean).join(', ');
  const names = unique(points.map(name)).sort();
  if (!names.length) { canvas(host, 0, {}, false, ''); return; }
  const hosts = names.map(n => element('div', {class: 'panel'}, element('h4', {}, n)));
  host.replaceChildren(...hosts);
  names.forEach((n, k) => whereChart(hosts[k], points.filter(p => name(p) === n), op));
}

function whereChart(host, points, op) {
  const columns = unique(points.map(p => p.w.cols)).sort((a, b) => a - b), rows = unique(points.map(p => p.w.rows)).sort((a, b) => a - b);
  const c = canvas(host, 70 + 34 * rows.length, {left: 76, right: 16, top: 24, bottom: 44}, points.length, 'Algorithm that wins at each shape');
  if (!c) return;
  const of = look(page.configs.map(p => p.algorithm));
  const x = d3.scaleBand().domain(columns).range([c.left, c.right]).padding(0.06);
  const y = d3.scaleBand().domain(rows).range([c.bottom, c.top]).padding(0.06);
  const every = Math.ceil(columns.length / (c.width / 60));
  axes(c, x, null, 'columns', op + ': rows', columns.filter((_, i) => i % every === 0), short);
  c.svg.append('g').attr('class', 'soft').attr('transform', `translate(${c.left},0)`).call(d3.axisLeft(y).tickFormat(short));
  const letters = lettersOf(unique(points.map(p => p.algorithm)).sort());
  const cells = c.svg.append('g').selectAll('g').data(points).enter().append('g').attr('class', 'cell').style('cursor', 'pointer').on('click', p => chooseWorkload(p.w));
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
  axes(c, x, null, 'time (us)', '', x.base ? logTicks(x, c.width) : null);
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
    .attr('class', 'mark').attr('transform', (p, i) => `translate(${x(p.time)},${jitter(p, i)})`)
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
  const least = d3.min(points, p => p.error), most = d3.max(points, p => p.error), room = 0.1 * (most - least) || 0.1 * most || 1;
  const y = d3.scaleLinear().domain([Math.max(0, least - room), most + room]).range([c.bottom, c.top]);
  axes(c, x, y, 'time (us)', 'max error (ulp)', x.base ? logTicks(x, c.width) : null);
  const front = [];
  for (const p of points.filter(p => p.eligible).sort((a, b) => a.time - b.time || a.error - b.error))
    if (!front.length || p.error < front[front.length - 1].error) front.push(p);
  c.svg.append('path').attr('d', d3.line().curve(d3.curveStepAfter).x(p => x(p.time)).y(p => y(p.error))(front)).attr('fill', 'none').attr('stroke', 'var(--soft)');
  const dots = c.svg.append('g').selectAll('path').data(points).enter().append('path').attr('class', 'mark').attr('transform', p => `translate(${x(p.time)},${y(p.error)})`)
    .attr('d', p => d3.symbol().type(of(p.algorithm).symbol).size(p.rank === 1 ? 120 : 50)()).attr('fill', p => p.eligible ? of(p.algorithm).color : 'none').attr('stroke', p => of(p.algorithm).color);
  tip(dots, p => `${p.config}\n${show.time(p.time)}, ${show.number(p.error)} ulp${p.eligible ? '' : '\nunsafe, may not win'}`);
  legend(c, unique(points.map(p => p.algorithm)).sort().map(a => ({name: a, ...of(a)})));
}

/// The best time over two axes of the chosen workload's configs, as a multiple of the winner's time.
function heatChart(w, xAxis, yAxis, algorithm) {
  const configs = w ? w.configs.filter(c => !algorithm || c.algorithm === algorithm) : [];
  const cells = new Map();
  for (const c of configs) {
    const at = axesOf(c), x = at[xAxis], y = at[yAxis];
    if (x === undefined || y === undefined) continue;
    const key = x + '\n' + y, cell = cells.get(key) || {x, y, best: null, count: 0, failed: 0};
    cell.count += 1;
    if (!c.time) cell.failed += 1;
    else if (!cell.best || c.time < cell.best.time) cell.best = c;
    cells.set(key, cell);
  }
  const all = [...cells.values()], up = (a, b) => a < b ? -1 : a > b ? 1 : 0;
  const xs = unique(all.map(c => c.x)).sort(up), ys = unique(all.map(c => c.y)).sort(up);
  const c = canvas('heat-chart', 76 + 38 * ys.length, {left: 110, right: 16, top: 28, bottom: 44}, all.length, 'Best time over two axes');
  if (!c) return;
  const x = d3.scaleBand().domain(xs).range([c.left, Math.min(c.right, c.left + 130 * xs.length)]).padding(0.05);
  const y = d3.scaleBand().domain(ys).range([c.bottom, c.top]).padding(0.05);
  c.svg.append('g').attr('class', 'soft').attr('transform', `translate(0,${c.bottom})`).call(d3.axisBottom(x));
  c.svg.append('g').attr('class', 'soft').attr('transform', `translate(${c.left},0)`).call(d3.axisLeft(y));
  c.svg.append('text').attr('class', 'soft').attr('x', x.range()[1]).attr('y', c.bottom + 34).attr('text-anchor', 'end').text(axisName(w, xAxis));
  c.svg.append('text').attr('class', 'soft').attr('x', 4).attr('y', c.top - 10).text(axisName(w, yAxis));
  const fastest = w.winner ? w.winner.time : d3.min(all, d => d.best ? d.best.time : Infinity);
  const slow = d => Math.min(1, Math.log2(Math.max(1, d.best.time / fastest)) / 3);  // 8 times slower and more is darkest
  const fill = d => d.best ? d3.interpolateViridis(1 - slow(d)) : 'var(--panel)';
  const groups = c.svg.append('g').selectAll('g').data(all).enter().append('g').attr('class', 'cell').style('cursor', 'default');
  groups.append('rect').attr('x', d => x(d.x)).attr('y', d => y(d.y)).attr('width', x.bandwidth()).attr('height', y.bandwidth()).attr('fill', fill)
    .attr('stroke', d => d.best && d.best.rank === 1 ? 'var(--fore)' : 'none').attr('stroke-width', 3);
  groups.append('text').attr('x', d => x(d.x) + x.bandwidth() / 2).attr('y', d => y(d.y) + y.bandwidth() / 2 + 4).attr('text-anchor', 'middle')
    .style('fill', d => !d.best ? 'var(--fore)' : d3.lab(fill(d)).l > 55 ? '#000' : '#fff')
    .text(d => !d.best ? 'failed' : x.bandwidth() < 34 ? '' : (d.best.time / fastest).toFixed(2) + 'x');
  tip(groups, d => `${axisName(w, xAxis)} ${d.x}, ${axisName(w, yAxis)} ${d.y}\n${d.count} configs, ${d.failed} failed` + (d.best ? `\nbest: ${d.best.config}, ${show.time(d.best.time)}` : ''));
}
