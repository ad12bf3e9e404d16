'use strict';
// The data of the page: one workload list, one dictionary of names, one row of numbers for each config.
const page = JSON.parse(document.getElementById('payload').textContent);
const byId = id => document.getElementById(id);

/// Records come as arrays, with texts as indices into page.names.
for (const part of ['coverage', 'baselines', 'accuracy', 'stability']) {
  const heads = page[part].heads;
  page[part].rows = page[part].rows.map(r =>
    Object.fromEntries(heads.map((h, i) => [h.name, h.style === 'text' && r[i] !== null ? page.names[r[i]] : r[i]])));
}

const workloadKey = w => [w.device_model, w.op, w.dtype, w.rows, w.cols, w.ld, w.off, w.regime, w.options].join('\n');
const othersOf = new Map();  // other libraries' times by workload, fastest first
page.baselines.rows.slice().sort((a, b) => a.time_us - b.time_us).forEach(b => {
  const key = workloadKey(b);
  othersOf.set(key, [...(othersOf.get(key) || []), b]);
});

page.workloads.forEach((w, i) => {
  w.index = i;
  w.others = othersOf.get(workloadKey(w)) || [];
  w.shape = w.rows + 'x' + w.cols + (w.ld !== w.cols ? ':ld=' + w.ld : '') + (w.off ? ':off=' + w.off : '');
  w.label = [w.op, w.dtype, w.shape, w.regime, w.options === w.usual ? '' : w.options,
             page.devices.length > 1 ? w.device_model : ''].filter(Boolean).join(' ');
  w.configs = [];
});

/// Columns of page.rows, in order; html.cpp writes them.
page.configs = page.rows.map(r => {
  const w = page.workloads[r[0]];
  const c = {w, config: page.names[r[1]], algorithm: page.names[r[2]], time: r[3], lo: r[4], hi: r[5], error: r[6],
             rank: r[7], eligible: r[8] === 1, base: r[9] === 1, tie: r[10] === 1, decided: r[11] === 1,
             status: page.names[r[12]], message: page.names[r[13]], ties: r[14], registers: r[15], spill: r[16],
             samples: r[17], settled: r[18] === 1, reason: page.names[r[19]]};
  c.gbps = c.time ? w.bytes / c.time / 1e3 : null;
  c.fraction = c.time && w.ceiling_us ? w.ceiling_us / c.time : null;
  c.gain = c.time && w.base_us ? w.base_us / c.time : null;
  c.overOther = c.time && w.others.length ? w.others[0].time_us / c.time : null;
  w.configs.push(c);
  if (c.rank === 1) w.winner = c;
  return c;
});

const show = {
  number(v) {
    if (v === null || v === undefined) return '-';
    const a = Math.abs(v);
    if (v === 0) return '0';
    if (a >= 1e7 || a < 1e-3) return v.toExponential(2);
    return v.toFixed(a < 1 ? 4 : a < 10 ? 3 : a < 100 ? 2 : a < 1000 ? 1 : 0);
  },
  time(v) { return v === null || v === undefined ? '-' : v >= 1e4 ? show.number(v / 1e3) + ' ms' : show.number(v) + ' us'; },
  percent(v) { return v === null || v === undefined ? '-' : (100 * v).toFixed(1) + ' %'; },
  ratio(v) { return v === null || v === undefined ? '-' : v.toFixed(2) + 'x'; },
  rate(v) { return v === null || v === undefined ? '-' : v < 100 ? v.toFixed(1) : v.toFixed(0); },
  flag(v) { return v ? 'yes' : 'no'; },
  count(v) { return v === null || v === undefined ? '-' : String(v); },
  text(v) { return v === null || v === undefined || v === '' ? '-' : String(v); },
};

/// An element with text; never markup, so no name in the data can become part of the page.
function element(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on')) e.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined) e.setAttribute(key, value);
  }
  e.append(...children.map(c => typeof c === 'object' ? c : document.createTextNode(String(c))));
  return e;
}

/// The axes in a config's name: `block.b256.r1.v8.s1` gives algorithm, b, r, v, s.
function axesOf(c) {
  const axes = {algorithm: c.algorithm};
  for (const part of c.config.split('.').slice(1)) {
    const at = /^([a-z])(\d+)$/.exec(part);
    if (at) axes[at[1]] = Number(at[2]);
  }
  return axes;
}
const axisName = (w, letter) => letter === 'algorithm' ? letter : ((page.axes[w.kind] || {})[letter] || ['axis ' + letter])[0];

const when = t => t ? t.replace('T', ' ').replace(/(\.\d+)?Z$/, '') : '-';
const unique = list => [...new Set(list)];

function csvOf(heads, rows) {
  const field = v => {
    const t = v === null || v === undefined ? '' : String(v);
    return /[",\r\n]/.test(t) ? '"' + t.replaceAll('"', '""') + '"' : t;
  };
  return [heads, ...rows].map(r => r.map(field).join(',')).join('\r\n') + '\r\n';
}

function save(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], {type}));
  const link = element('a', {href: url, download: name});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
