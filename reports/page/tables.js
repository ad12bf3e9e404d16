'use strict';
/// Draws a table. columns: {title, value(row), show(value), number, bar(row) in 0..1, words, code, help}.
/// Long tables begin with their first rows; a button shows the rest.
const firstRows = 100;
function table(host, columns, rows, options = {}) {
  let sorted = null, down = false, all = rows.length <= firstRows + 20;
  const draw = () => {
    const order = rows.slice();
    if (sorted !== null) {
      const value = columns[sorted].value;
      order.sort((a, b) => {
        const x = value(a), y = value(b);
        const missing = v => v === null || v === undefined || v === '';
        if (missing(x) || missing(y)) return missing(x) - missing(y);
        const d = x < y ? -1 : x > y ? 1 : 0;
        return down ? -d : d;
      });
    }
    const head = element('tr', {}, ...columns.map((c, i) => element('th',
      {class: c.number ? 'number' : null, title: c.help, scope: 'col',
       'aria-sort': sorted === i ? (down ? 'descending' : 'ascending') : null},
      element('button', {type: 'button', onclick: () => { down = sorted === i ? !down : Boolean(c.number); sorted = i; draw(); }},
              c.title + (sorted === i ? (down ? ' \u2193' : ' \u2191') : '')))));
    const body = (all ? order : order.slice(0, firstRows)).map(row => {
      const cells = columns.map(c => {
        const text = (c.show || show.text)(c.value(row));
        const cell = element('td', {class: [c.number ? 'number' : '', c.bar ? 'bar' : '', c.words ? 'words' : ''].join(' ')},
                             c.code ? element('code', {}, text) : text);
        if (c.bar) cell.style.setProperty('--share', (100 * Math.max(0, Math.min(1, c.bar(row) || 0))).toFixed(1) + '%');
        return cell;
      });
      if (!options.pick) return element('tr', {}, ...cells);
      const chosen = options.chosen && options.chosen(row);
      return element('tr', {class: 'pick' + (chosen ? ' chosen' : ''), tabindex: 0, 'aria-selected': chosen ? 'true' : 'false',
                            onclick: () => options.pick(row),
                            onkeydown: e => { if (e.key === 'Enter') options.pick(row); }}, ...cells);
    });
    host.replaceChildren(element('table', {}, element('thead', {}, head), element('tbody', {}, ...body)));
    if (!all) host.append(element('button', {type: 'button', class: 'more', onclick: () => { all = true; draw(); }}, `Show all ${rows.length} rows`));
  };
  draw();
}

/// Columns for records as the field lists describe them.
function columnsOf(heads, keep = []) {
  const styles = {count: show.count, time: show.time, rate: show.rate, fraction: show.percent, ratio: show.ratio,
                  error: show.number, flag: show.flag, text: show.text};
  return heads.filter(h => !h.hidden).map(h => ({
    keep: keep.includes(h.name), title: h.title, help: h.description, value: r => r[h.name], show: styles[h.style],
    number: !['text', 'flag'].includes(h.style), code: h.name.includes('config')}));
}

/// Without the columns that say the same in every row.
function varying(columns, rows) {
  return rows.length < 2 ? columns : columns.filter(c => c.keep || unique(rows.map(r => String(c.value(r)))).length > 1);
}

/// A ratio as a bar, logarithmic: 1 is empty, 8 is full.
const ratioBar = v => v > 0 ? Math.log2(v) / 3 : 0;

const winnerColumns = [
  {title: 'device', value: c => c.w.device_model}, {title: 'op', value: c => c.w.op, keep: true},
  {title: 'dtype', value: c => c.w.dtype}, {title: 'rows', value: c => c.w.rows, number: true, keep: true},
  {title: 'cols', value: c => c.w.cols, number: true, keep: true},
  {title: 'stride', value: c => c.w.ld === c.w.cols ? null : c.w.ld, number: true}, {title: 'offset', value: c => c.w.off, number: true},
  {title: 'regime', value: c => c.w.regime}, {title: 'options', value: c => c.w.options === c.w.usual ? null : c.w.options, help: 'when they are not the usual ones'},
  {title: 'config', value: c => c.config, code: true, keep: true},
  {title: 'time', value: c => c.time, show: show.time, number: true, keep: true, help: 'median of a launch'},
  {title: '95 % interval', value: c => c.lo, keep: true, number: true,
   show: v => v, help: 'of the median'},
  {title: 'GB/s', value: c => c.gbps, show: show.rate, number: true, keep: true},
  {title: 'of ceiling', value: c => c.fraction, show: show.percent, number: true, keep: true, bar: c => c.fraction,
   help: 'time of the tuned copy of the same bytes, over the time'},
  {title: 'gain', value: c => c.gain, show: show.ratio, number: true, keep: true, bar: c => ratioBar(c.gain), help: 'time of the base over the time; a full bar is 8x'},
  {title: 'best other', value: c => c.w.others.length ? `${c.w.others[0].impl} ${show.time(c.w.others[0].time_us)}` : null, help: 'the fastest of the imported libraries'},
  {title: 'against it', value: c => c.overOther, show: show.ratio, number: true, bar: c => ratioBar(c.overOther), help: 'its time over the time: above 1 rowtune is faster; a full bar is 8x'},
  {title: 'ties', value: c => c.ties, number: true, show: show.count, keep: true, help: 'configs that cannot be told from it'},
  {title: 'max error (ulp)', value: c => c.error, show: show.number, number: true, keep: true},
  {title: 'decided', value: c => c.decided, show: show.flag, help: 'by paired finals'}];
// The interval sorts by its lower end and shows both.
winnerColumns.find(c => c.title === '95 % interval').value = c => c.lo === null ? null : Number(c.lo);
const intervalOf = c => c.lo === null || c.hi === null ? '-' : show.number(c.lo) + ' .. ' + show.number(c.hi) + ' us';

/// Columns whose text needs the whole row: table() shows values, so the value carries its own text.
function withInterval(columns) {
  return columns.map(c => c.title !== '95 % interval' ? c :
    {...c, value: r => ({valueOf: () => r.lo === null ? Infinity : r.lo, toString: () => intervalOf(r)}), show: v => v.toString()});
}

const configColumns = [
  {title: 'rank', value: c => c.rank || null, show: show.count, number: true, keep: true},
  ...winnerColumns.filter(c => ['config', 'time', '95 % interval', 'GB/s', 'of ceiling', 'gain', 'max error (ulp)'].includes(c.title)),
  {title: 'what', keep: true, value: c => [c.rank === 1 ? 'winner' : '', c.base ? 'base' : '', c.tie && c.rank !== 1 ? 'tie' : '',
     c.eligible ? '' : 'unsafe, may not win', c.status === 'ok' ? '' : c.status, c.status === 'ok' && !c.settled ? 'unsettled' : '']
     .filter(Boolean).join(', ')},
  {title: 'registers', value: c => c.registers, show: show.count, number: true},
  {title: 'spilled bytes', value: c => c.spill, show: show.count, number: true},
  {title: 'message', value: c => c.message, words: true}];
