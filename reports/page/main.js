'use strict';
// Fills the sections that have data, and keeps them in step with the filters and the chosen workload.
let chosen = null;
const filters = {};  // field of a workload: chosen value, or '' for all

function reveal(id, when) { byId(id).hidden = !when; return when; }

function listOf(id, sentences) {
  // `command`: the part between backquotes is code; the rest is text.
  byId(id).replaceChildren(...sentences.map(s => element('li', {}, ...s.split('`').map((part, i) => i % 2 ? element('code', {}, part) : part))));
}

function passes(w) { return Object.entries(filters).every(([k, v]) => v === '' || String(w[k]) === v); }

function visibleWinners() {
  return page.workloads.filter(w => w.winner && passes(w))
    .map(w => w.winner).sort((a, b) => (a.w.op === 'copy') - (b.w.op === 'copy'));  // the yardstick comes last
}

function chooseWorkload(w, scroll = true) {
  chosen = w;
  byId('workload').value = w ? String(w.index) : '';
  drawOne();
  drawWinners();
  if (scroll && w) byId('one').scrollIntoView({behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth'});
}

function drawWinners() {
  const winners = visibleWinners();
  byId('winner-count').textContent = `${winners.length} of ${page.workloads.filter(w => w.winner).length} workloads with a winner.`;
  const host = byId('winner-table'), top = host.scrollTop;
  table(host, withInterval(varying(winnerColumns, winners)), winners, {pick: c => chooseWorkload(c.w), chosen: c => c.w === chosen});
  host.scrollTop = top;
}

function drawOne() {
  if (!chosen) return;
  const ran = chosen.configs.filter(c => c.time).length, failed = chosen.configs.length - ran;
  byId('workload-note').textContent = `${chosen.configs.length} configs measured${chosen.space ? ' of ' + chosen.space : ''}, ${failed} failed. ` +
    (chosen.winner ? `Winner: ${chosen.winner.config}, ${chosen.winner.ties} ties, ${chosen.winner.decided ? 'decided by paired finals' : 'by medians and intervals'}. ` : 'No winner. ') +
    `Base: ${chosen.base_config || 'not measured'}. Compiler: ${chosen.toolchain}.`;
  distributionChart(chosen);
  offerAxes();
  errorChart(chosen);
  table(byId('config-table'), withInterval(varying(configColumns, chosen.configs)), chosen.configs);
}

function options(id, values, preferred, names = v => v) {
  byId(id).replaceChildren(...values.map(v => element('option', {value: v}, names(v))));
  byId(id).value = values.includes(preferred) ? preferred : values[0];
}

/// What the heat map can show of the chosen workload: algorithms, and the axes of which there are several values.
function offerAxes() {
  const algorithms = unique(chosen.configs.map(c => c.algorithm)).sort();
  options('heat-algorithm', ['', ...algorithms], chosen.winner ? chosen.winner.algorithm : '', a => a || 'all');
  offerAlgorithmAxes();
}
function offerAlgorithmAxes() {
  const algorithm = byId('heat-algorithm').value, values = new Map();
  for (const c of chosen.configs.filter(c => !algorithm || c.algorithm === algorithm))
    for (const [axis, v] of Object.entries(axesOf(c))) values.set(axis, (values.get(axis) || new Set()).add(v));
  const several = [...values].filter(([, v]) => v.size > 1).map(([axis]) => axis);
  const shown = several.length > 1 ? several : [...values.keys()].filter(a => a !== 'algorithm' || !algorithm);
  const name = a => axisName(chosen, a);
  options('heat-x', shown, shown.includes('b') ? 'b' : shown[0], name);
  options('heat-y', shown, ['r', 's', 'v', 'algorithm', ...shown].find(a => shown.includes(a) && a !== byId('heat-x').value), name);
  drawHeat();
}
function drawHeat() { heatChart(chosen, byId('heat-x').value, byId('heat-y').value, byId('heat-algorithm').value); }

function drawFiltered() {
  const winners = visibleWinners();
  drawWinners();
  const ops = unique(winners.map(c => c.w.op)).sort((a, b) => (a === 'copy') - (b === 'copy') || (a < b ? -1 : 1));
  options('chart-op', ops, ops.includes(filters.op) ? filters.op : byId('chart-op').value);
  drawOverview();
  drawFailures();
}
function drawOverview() {
  const winners = visibleWinners();
  bandwidthChart(winners, byId('chart-op').value);
  whereCharts(winners, byId('chart-op').value);
}

/// The failures of the filtered workloads, by reason.
function drawFailures() {
  const groups = new Map();
  for (const c of page.configs) {
    if (c.status === 'ok' || !passes(c.w)) continue;
    const key = c.status + '\n' + c.reason, g = groups.get(key) || {status: c.status, reason: c.reason, count: 0, example: `${c.config} on ${c.w.label}: ${c.message}`};
    g.count += 1;
    groups.set(key, g);
  }
  const list = [...groups.values()].sort((a, b) => b.count - a.count), most = list.length ? list[0].count : 1;
  if (!list.length) { byId('failure-table').replaceChildren(element('p', {class: 'note'}, ' None: every config that was measured of these workloads ran and gave right results.')); return; }
  table(byId('failure-table'), [{title: 'status', value: g => g.status}, {title: 'count', value: g => g.count, number: true, bar: g => g.count / most},
    {title: 'reason', value: g => g.reason, words: true}, {title: 'for example', value: g => g.example, words: true}], list);
}

function buildFilters() {
  const names = {op: 'Operation', dtype: 'Dtype', device_model: 'Device', regime: 'Regime'};
  // One device, one regime and one dtype to start with: mixing them makes charts that compare what is not comparable.
  const start = page.workloads.find(w => w.winner && w.op !== 'copy' && w.regime === 'cold') || page.workloads.find(w => w.winner) || page.workloads[0];
  for (const [key, title] of Object.entries(names)) {
    const values = unique(page.workloads.map(w => w[key])).sort();
    filters[key] = values.length > 1 && key !== 'op' ? start[key] : '';
    const select = element('select', {onchange: e => { filters[key] = e.target.value; drawFiltered(); pickFirst(); }},
      element('option', {value: ''}, 'all'), ...values.map(v => element('option', {value: v}, v)));
    select.value = filters[key];
    byId('filters').append(element('label', {}, title + ' ', select));
  }
}

function pickFirst() {
  const winners = visibleWinners();
  if (chosen && winners.includes(chosen.winner)) return;
  const first = winners.find(c => c.w.op !== 'copy') || winners[0];
  chooseWorkload(first ? first.w : page.workloads[0] || null, false);
}

/// A sentence where a part has no data: what is missing, and the command that gets it.
function missing(id, what, command) {
  byId(id).replaceChildren(element('p', {class: 'note missing'}, what + ' To get it: ', element('code', {}, command), '.'));
}

function fill() {
  const axisList = Object.entries(page.axes).flatMap(([kind, axes]) => Object.entries(axes).map(([letter, [name, meaning]]) => ({kind, letter, name, meaning})));
  reveal('axis-table', axisList.length);
  const tuned = page.workloads.length > 0;
  byId('lead').textContent = tuned ? `${page.measured} results for ${page.workloads.length} workloads, measured from ${when(page.first)} to ${when(page.last)} UTC.` : 'Nothing was tuned into this database yet.';
  if (reveal('empty', page.empty)) listOf('empty-steps', page.next);
  byId('sureness').textContent = page.sureness;
  if (reveal('devices', tuned))
    table(byId('device-table'), [{title: 'device', value: d => d.model}, {title: 'limits', value: d => d.limits, words: true}, {title: 'compiler', value: d => d.toolchain},
      {title: 'units', value: d => d.units, number: true}, {title: 'workloads', value: d => d.workloads, number: true}, {title: 'configs', value: d => d.measured, number: true},
      {title: 'from (UTC)', value: d => d.first, show: when}, {title: 'to (UTC)', value: d => d.last, show: when}], page.devices);
  if (reveal('summary', page.operations.length))
    table(byId('summary-table'), varying([{title: 'device', value: s => s.device_model}, {title: 'op', value: s => s.op, keep: true}, {title: 'dtype', value: s => s.dtype, keep: true}, {title: 'regime', value: s => s.regime},
      {title: 'workloads', value: s => s.workloads, number: true}, {title: 'mean gain', value: s => s.mean_gain, show: show.ratio, number: true, bar: s => ratioBar(s.mean_gain)},
      {title: 'best gain', value: s => s.best_gain, show: show.ratio, number: true}, {title: 'at', value: s => s.best_gain_shape},
      {title: 'median of ceiling', value: s => s.ceiling, show: show.percent, number: true, bar: s => s.ceiling},
      {title: 'base wins', value: s => s.base_wins, number: true},
      ...(page.baselines.rows.length ? [{title: 'over the best other', value: s => s.over_others, show: show.ratio, number: true, bar: s => ratioBar(s.over_others), help: 'geometric mean of the fastest imported time over rowtune\u2019s'},
        {title: 'ahead', value: s => s.compared ? `${s.ahead} of ${s.compared}` : null, help: 'of the workloads with another library\u2019s time'}] : []), {title: 'configs that win', value: s => s.configs, number: true}].map(c => ({...c, keep: !['device', 'regime'].includes(c.title)})), page.operations), page.operations);
  for (const id of ['filters', 'winners', 'overview', 'one', 'failures']) reveal(id, tuned);
  for (const [section, host, keep, what, command] of [
    ['coverage', 'coverage-table', ['op', 'dtype', 'shape', 'measured', 'space_size', 'ok', 'failed']],
    ['baselines', 'baseline-table', ['op', 'dtype', 'rows', 'cols', 'impl', 'version', 'time_us', 'speedup'],
     'No times of other libraries are in this database.', 'rowtune baseline FILE'],
    ['accuracy', 'accuracy-table', ['op', 'dtype', 'config', 'input', 'max_error_ulp']]])
    if (page[section].rows.length) {
      reveal(section, true);
      table(byId(host), varying(columnsOf(page[section].heads, keep), page[section].rows), page[section].rows);
    } else if (reveal(section, what && !page.empty)) {
      missing(host, what, command);
    }
  if (reveal('caveats', page.caveats.length)) listOf('caveat-list', page.caveats);
  if (reveal('next', page.next.length && !page.empty)) listOf('next-steps', page.next);
  table(byId('axis-table'), varying([{title: 'devices', value: a => a.kind}, {title: 'letter', value: a => a.letter, code: true, keep: true}, {title: 'axis', value: a => a.name, keep: true},
    {title: 'meaning', value: a => a.meaning, words: true, keep: true}], axisList), axisList);
  table(byId('field-table'), [{title: 'column', value: h => h.name, code: true}, {title: 'unit', value: h => h.unit}, {title: 'meaning', value: h => h.description, words: true}], page.fields);
  if (!tuned && !page.empty) {
    reveal('untuned', true);
    missing('untuned-note', 'Nothing was tuned into this database.', 'rowtune tune');
  }
  let drawStudy = () => {};
  if (page.stability.rows.length) {
    reveal('stability', true);
    drawStudy = fillStudy();
    byId('stability-missing').hidden = true;
    drawStudy();
  } else if (reveal('stability', !page.empty)) {
    byId('stability-parts').hidden = true;
    missing('stability-missing', 'No numerical study is in this database.', 'rowtune stability');
  }
  byId('contents').replaceChildren(...[...document.querySelectorAll('main section')].filter(s => !s.hidden)
    .map(s => element('a', {href: '#' + s.id}, s.querySelector('h2').textContent)));
  if (tuned) {
    buildFilters();
    byId('workload').replaceChildren(...page.workloads.map(w => element('option', {value: w.index}, w.label)));
    byId('workload').addEventListener('change', e => chooseWorkload(page.workloads[Number(e.target.value)], false));
    byId('chart-op').addEventListener('change', drawOverview);
    byId('heat-algorithm').addEventListener('change', offerAlgorithmAxes);
    for (const id of ['heat-x', 'heat-y']) byId(id).addEventListener('change', drawHeat);
    drawFiltered();
    pickFirst();
  }
  let waiting = 0;
  addEventListener('resize', () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { if (tuned) { drawFiltered(); drawOne(); } drawStudy(); }, 150);
  });
}

byId('theme').addEventListener('click', () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
});
byId('save-json').addEventListener('click', () => save('rowtune.json', 'application/json', byId('payload').textContent));
byId('save-csv').addEventListener('click', () => {
  const w = ['device_model', 'device_limits', 'op', 'dtype', 'rows', 'cols', 'ld', 'off', 'regime', 'options', 'bytes', 'toolchain'];
  const c = ['config', 'algorithm', 'rank', 'status', 'time', 'lo', 'hi', 'gbps', 'fraction', 'gain', 'ties', 'error', 'eligible', 'base', 'tie', 'decided', 'settled', 'samples', 'registers', 'spill', 'message'];
  const titles = {time: 'time_us', lo: 'time_lo_us', hi: 'time_hi_us', fraction: 'ceiling_fraction', gain: 'gain_over_base', error: 'max_error_ulp', base: 'is_base', tie: 'is_tie', spill: 'spill_bytes', samples: 'sample_count'};
  save('rowtune.csv', 'text/csv', csvOf([...w, ...c.map(k => titles[k] || k)], page.configs.map(r => [...w.map(k => r.w[k]), ...c.map(k => r[k])])));
});
fill();
