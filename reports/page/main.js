'use strict';
// Fills the sections that have data, and keeps them in step with the filters and the chosen workload.
let chosen = null;
const filters = {};  // field of a workload: chosen value, or '' for all

function reveal(id, when) { byId(id).hidden = !when; return when; }

function listOf(id, sentences) {
  // `command`: the part between backquotes is code; the rest is text.
  byId(id).replaceChildren(...sentences.map(s => element('li', {}, ...s.split('`').map((part, i) => i % 2 ? element('code', {}, part) : part))));
}

function visibleWinners() {
  return page.workloads.filter(w => w.winner && Object.entries(filters).every(([k, v]) => v === '' || String(w[k]) === v))
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
  errorChart(chosen);
  table(byId('config-table'), withInterval(varying(configColumns, chosen.configs)), chosen.configs);
}

function drawFiltered() {
  const winners = visibleWinners();
  drawWinners();
  bandwidthChart(winners);
  const ops = unique(winners.map(c => c.w.op).filter(o => o !== 'copy')).sort();
  whereChart(winners, ops.includes(filters.op) ? filters.op : ops[0]);
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

function fillStudy() {
  const rows = page.stability.rows, experiments = unique(rows.map(r => r.experiment));
  const draw = () => {
    const some = rows.filter(r => r.experiment === byId('experiment').value);
    stabilityChart(some);
    table(byId('stability-table'), varying(columnsOf(page.stability.heads, ['op', 'method', 'dtype', 'rel_error']), some), some);
  };
  byId('experiment').replaceChildren(...experiments.map(e => element('option', {value: e}, e || 'unnamed')));
  byId('experiment').addEventListener('change', draw);
  draw();
  return draw;
}

function fill() {
  const tuned = page.workloads.length > 0;
  byId('lead').textContent = tuned ? `${page.measured} results for ${page.workloads.length} workloads, measured from ${page.first} to ${page.last} (UTC).` : 'Nothing was tuned into this database yet.';
  if (reveal('empty', page.empty)) listOf('empty-steps', page.next);
  if (reveal('devices', tuned))
    table(byId('device-table'), [{title: 'device', value: d => d.model}, {title: 'limits', value: d => d.limits, words: true}, {title: 'compiler', value: d => d.toolchain},
      {title: 'units', value: d => d.units, number: true}, {title: 'workloads', value: d => d.workloads, number: true}, {title: 'configs', value: d => d.measured, number: true},
      {title: 'from (UTC)', value: d => d.first}, {title: 'to (UTC)', value: d => d.last}], page.devices);
  if (reveal('summary', page.operations.length))
    table(byId('summary-table'), [{title: 'device', value: s => s.device_model}, {title: 'op', value: s => s.op}, {title: 'dtype', value: s => s.dtype}, {title: 'regime', value: s => s.regime},
      {title: 'workloads', value: s => s.workloads, number: true}, {title: 'mean gain', value: s => s.mean_gain, show: show.ratio, number: true},
      {title: 'best gain', value: s => s.best_gain, show: show.ratio, number: true}, {title: 'at', value: s => s.best_gain_shape},
      {title: 'median of ceiling', value: s => s.ceiling, show: show.percent, number: true, bar: s => s.ceiling},
      {title: 'base wins', value: s => s.base_wins, number: true}, {title: 'configs that win', value: s => s.configs, number: true}], page.operations);
  for (const id of ['filters', 'winners', 'bandwidth', 'where', 'one']) reveal(id, tuned);
  if (reveal('failures', tuned)) {
    if (page.failures.length)
      table(byId('failure-table'), [{title: 'status', value: g => g.status}, {title: 'count', value: g => g.count, number: true},
        {title: 'reason', value: g => g.reason, words: true}, {title: 'for example', value: g => g.example, words: true}], page.failures);
    else byId('failure-table').replaceChildren(element('p', {class: 'note'}, ' None: every config that was measured ran and gave right results.'));
  }
  for (const [section, host, keep] of [['coverage', 'coverage-table', ['op', 'dtype', 'shape', 'measured', 'space_size', 'ok', 'failed']],
                                       ['baselines', 'baseline-table', ['op', 'dtype', 'rows', 'cols', 'impl', 'version', 'time_us', 'speedup']],
                                       ['accuracy', 'accuracy-table', ['op', 'dtype', 'config', 'input', 'max_error_ulp']]])
    if (reveal(section, page[section].rows.length))
      table(byId(host), varying(columnsOf(page[section].heads, keep), page[section].rows), page[section].rows);
  if (reveal('caveats', page.caveats.length)) listOf('caveat-list', page.caveats);
  if (reveal('next', page.next.length && !page.empty)) listOf('next-steps', page.next);
  table(byId('field-table'), [{title: 'column', value: h => h.name, code: true}, {title: 'unit', value: h => h.unit}, {title: 'meaning', value: h => h.description, words: true}], page.fields);
  const redraw = reveal('stability', page.stability.rows.length) ? fillStudy() : () => {};
  byId('contents').replaceChildren(...[...document.querySelectorAll('main section')].filter(s => !s.hidden)
    .map(s => element('a', {href: '#' + s.id}, s.querySelector('h2').textContent)));
  if (tuned) {
    buildFilters();
    byId('workload').replaceChildren(...page.workloads.map(w => element('option', {value: w.index}, w.label)));
    byId('workload').addEventListener('change', e => chooseWorkload(page.workloads[Number(e.target.value)], false));
    drawFiltered();
    pickFirst();
  }
  let waiting = 0;
  addEventListener('resize', () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { if (tuned) { drawFiltered(); drawOne(); } redraw(); }, 150);
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
