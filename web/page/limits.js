// Many predictions: the longest context by GPUs and by how a sequence is shared, and the guide. Cells apply.

const SHARES = [1, 2, 4, 8];
const LENGTHS = '4k,8k,16k,32k,64k,128k,256k,512k';

// Light to dark blue by length, so that lightness alone tells; the text turns where it must.
function shade(tokens, most) {
  if (!tokens) return 'background:transparent';
  const share = Math.max(0, Math.min(1, Math.log2(tokens / 1024) / Math.log2(Math.max(2, most / 1024))));
  const light = 92 - 62 * share;
  return `background:hsl(212 70% ${light}%);color:${light < 55 ? '#fff' : '#111'}`;
}

const shortTokens = (tokens) => (tokens % 1024 ? tokensInWords(tokens) : `${tokens / 1024}k`);

function counts() {
  const { gpus } = machineOf(question.settings.gpu);
  return [...new Set([1, 2, 4, 8, gpus])].filter((n) => n <= Math.max(8, gpus)).sort((a, b) => a - b);
}

function heatTable(cells, axis, apply) {
  const most = Math.max(...cells.map((cell) => cell.tokens ?? 0));
  const rows = counts().map((gpus) => make('tr', {}, make('th', { scope: 'row' }, `${gpus}`),
    ...SHARES.map((share) => {
      const cell = cells.find((each) => each.gpus === gpus && each.share === share);
      if (!cell) return make('td', {}, '…');
      if (!cell.tokens) return make('td', { title: cell.why }, '–');
      return make('td', { class: 'cell' }, make('button', { type: 'button', style: shade(cell.tokens, most), title: cell.why,
        'aria-label': `${cell.tokens} tokens on ${gpus} GPUs with ${axis} ${share}: apply`,
        click: () => apply({ gpus, axis, share, tokens: cell.tokens }) }, shortTokens(cell.tokens)));
    })));
  return make('div', { class: 'scroll' }, make('table', {}, make('caption', {}, 'longest safe context, in tokens'),
    make('tr', {}, make('th', {}, 'GPUs'), ...SHARES.map((share) => make('th', { scope: 'col' }, `${axis} ${share}`))), ...rows));
}

async function limitCell(slow, { gpus, share, axis, card }) {
  if (share > gpus) return { gpus, share, tokens: 0, why: 'more ranks than GPUs' };
  const settings = { ...settingsFor('max', ['gpu', 'sp', 'cp', 'cp-rank', 'context']), gpu: machineText({ nodes: 1, gpus, card }), [axis]: share };
  const { reply } = await slow.ask('max', settings);
  if (reply.error) return { gpus, share, tokens: 0, why: sentence(reply.error) };
  return { gpus, share, tokens: reply.max_context ?? 0, why: reply.tight_because ?? '' };
}

// A cell at a time, so that the map fills while one looks.
async function drawMap(slow, apply) {
  const axis = element('axis').value;
  const { card } = machineOf(question.settings.gpu);
  const cells = [], asked = toFragment();
  slow.restart();
  for (const gpus of counts()) {
    for (const share of SHARES) {
      cells.push(await limitCell(slow, { gpus, share, axis, card }));
      if (toFragment() !== asked) return;
      fill(element('heat'), heatTable(cells, axis, apply));
    }
  }
}

function guideTable(cells, apply) {
  const gpus = [...new Set(cells.map((cell) => cell.gpus))], lengths = [...new Set(cells.map((cell) => cell.context))];
  const row = (context) => make('tr', {}, make('th', { scope: 'row' }, shortTokens(context)), ...gpus.map((count) => {
    const cell = cells.find((each) => each.gpus === count && each.context === context);
    if (!cell?.options || cell.config === '-') return make('td', {}, cell?.config ?? '');
    return make('td', { class: 'cell' }, make('button', { type: 'button', click: () => apply(cell) }, cell.config));
  }));
  return make('div', { class: 'scroll' }, make('table', {}, make('caption', {}, 'the simplest configuration that trains each length'),
    make('tr', {}, make('th', {}, 'context'), ...gpus.map((count) => make('th', { scope: 'col' }, `${count} GPU${count > 1 ? 's' : ''}`))), ...lengths.map(row)));
}

async function drawGuide(slow, apply) {
  const { card } = machineOf(question.settings.gpu);
  fill(element('table'), make('p', {}, 'computing …'));
  const settings = { lengths: LENGTHS, ...settingsFor('guide', ['gpu']), gpu: `${counts().join(',')}x${card}` };
  const { reply } = await slow.askOnly('guide', settings);
  fill(element('table'), reply.error ? problem(reply.error) : guideTable(reply.cells, apply));
}
