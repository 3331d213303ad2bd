// What people take away: files for a framework, and what is shown as Markdown, CSV, SVG, JSON or torch's snapshot.

let emitted = [];

function fillTargets() {
  const row = tables.settings.find((each) => each.name === 'for');
  fill(element('target'), ...wordsOf(row).map((word) => make('option', { value: word }, word)));
  element('target').value = 'accelerate';
}

// Whose files are offered, until somebody chooses.
function followRecipe(recipe) {
  const name = String(recipe).split('@')[0];
  const known = [...element('target').options].some((option) => option.value === name);
  if (!element('target').dataset.chosen) element('target').value = known ? name : 'accelerate';
}

function fileView({ name, content }) {
  const button = make('button', { type: 'button', click: ({ target }) => copy(content, target) }, 'copy');
  return make('details', { open: '' }, make('summary', {}, name), button, make('pre', { tabindex: 0 }, content));
}

async function showFiles(quick) {
  const settings = { ...question.settings, ...(question.config?.lines ?? {}), for: element('target').value };
  const { reply } = await quick.ask('emit', settings);
  emitted = reply.error ? [] : reply.files;
  element('zip').hidden = !emitted.length;
  if (reply.error) fill(element('files'), problem(reply.error));
  else fill(element('files'), make('p', {}, reply.predicted), ...emitted.map(fileView));
}

const downloadZip = () => download('fathom-run.zip', zip(emitted));

// ------------------------------------------------------------------ what is shown

function asMarkdown(reply) {
  const [head, body] = verdictOf(reply);
  const parts = reply.breakdown.map(({ what, bytes }) => `| ${what} | ${bytesInWords(bytes)} |`).join('\n');
  const remedies = (reply.remedies ?? []).map((each) => `| ${each.what} | ${VERDICTS[each.verdict]} | \`${each.options}\` |`).join('\n');
  return `**${head}.** ${body}\n\n\`${commandLine()}\`\n\n| part of one card | |\n| --- | ---: |\n${parts}\n${
    remedies ? `\n| what would help | | |\n| --- | --- | --- |\n${remedies}\n` : ''}`;
}

function asCsv(timeline) {
  const head = ['point', 'phase', 'step', ...timeline.layers.map((layer) => `"${layer.what}"`), 'reserved', 'limit'].join(',');
  const rows = Array.from({ length: timeline.points }, (_, i) => {
    const mark = timeline.phases.findLast((each) => each.point <= i) ?? timeline.phases[0];
    return [i, mark.phase, mark.step, ...timeline.layers.map((layer) => layer.bytes[i]), timeline.reserved_bytes[i] ?? '', timeline.limit_bytes].join(',');
  });
  return `${[head, ...rows].join('\n')}\n`;
}

async function attached(quick, setting, name) {
  const { files, reply } = await quick.ask('predict', { ...settingsFor('predict'), [setting]: name });
  if (reply.error || !files.length) return showError(reply.error ?? { message: 'there is nothing to save' });
  return download(name, files[0].content);
}

// Buttons that save what `now` gives.
function makeExports(quick, now) {
  const save = (label, act) => make('button', { type: 'button', click: act }, label);
  fill(element('exports'),
    save('Markdown', () => download('fathom.md', asMarkdown(now().reply), 'text/markdown')),
    save('CSV', () => download('fathom.csv', asCsv(now().timeline), 'text/csv')),
    save('JSON', async () => download('fathom.json', (await quick.ask('predict', settingsFor('predict'))).json, 'application/json')),
    save('SVG', () => attached(quick, 'timeline', 'fathom.svg')),
    save("snapshot for PyTorch's memory viewer", () => attached(quick, 'snapshot', 'fathom.pickle')));
}
