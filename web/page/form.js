// The question: what is asked, as settings under the names of the command line. The fields are made from the program's
// own table, and an address that holds them all is kept up to date.

const TOP = ['model', 'gpu', 'context'];
const NOT_HERE = ['timeline', 'trace', 'snapshot', 'store', 'explain']; // files, and what needs a machine
const START = { model: 'Qwen3-8B', gpu: '8xH100-80G', context: '32k' };

const question = { settings: { ...START }, config: null }; // config: a dropped config.json, flattened

// All that a command takes of the question; `without` is left to the caller.
function settingsFor(command, without = []) {
  const lines = question.config?.lines ?? {};
  if (!tables) return { ...question.settings, ...lines }; // the first question does not wait for them
  const taken = tables.commands.find((row) => row.name === command).settings;
  const chosen = Object.entries(question.settings).filter(([name]) => taken.includes(name) && !without.includes(name));
  return { ...Object.fromEntries(chosen), ...lines };
}

// ------------------------------------------------------------------ machines

function machineOf(text) {
  const [, first, second, card] = /^(?:(\d+)x)?(?:(\d+)x)?(.+)$/.exec(text);
  return { nodes: second ? Number(first) : 1, gpus: Number(second ?? first ?? 1), card };
}

function machineText({ nodes, gpus, card }) {
  return `${nodes > 1 ? `${nodes}x` : ''}${nodes > 1 || gpus > 1 ? `${gpus}x` : ''}${card}`;
}

// "32k", as a number; NaN where it is none.
function tokensOf(text) {
  const [, digits, unit] = /^\s*([\d.]+)\s*([kKmM]?)/.exec(text) ?? [];
  return Number(digits) * ({ k: 1024, m: 1048576 }[unit?.toLowerCase()] ?? 1);
}

// ------------------------------------------------------------------ the fields

function showTop() {
  const machine = machineOf(question.settings.gpu);
  if (![...element('card').options].some((option) => option.value === machine.card))
    element('card').append(make('option', { value: machine.card }, machine.card));
  element('model').value = question.settings.model;
  element('card').value = machine.card;
  element('gpus').value = machine.gpus;
  element('nodes').value = machine.nodes;
  element('context').value = question.settings.context;
  element('slider').value = Math.log2(tokensOf(question.settings.context) || 32768);
  element('config').hidden = !question.config;
  element('config').textContent = question.config ? `The model is ${question.config.name}, as dropped here.` : '';
}

const wordsOf = (row) => row.values.split('|');
const isPlain = (word) => /^[a-z0-9.-]+$/.test(word);
const isChosen = (row) => ['choice', 'switch', 'flag'].includes(row.kind);

// Words to choose from; where a word holds a number, a field with the others on offer.
function control(row) {
  const id = `setting-${row.name}`, words = isChosen(row) ? wordsOf(row) : [];
  const options = words.filter(isPlain).map((word) => make('option', { value: word }, word));
  if (words.length && words.every(isPlain)) return [make('select', { id, name: row.name }, make('option', { value: '' }, ''), ...options)];
  const input = make('input', { id, name: row.name, title: row.values, spellcheck: 'false', list: `${id}-words` });
  return [input, make('datalist', { id: `${id}-words` }, ...options)];
}

function makeFields() {
  const taken = tables.commands.find((row) => row.name === 'predict').settings;
  const shown = tables.settings.filter((row) => taken.includes(row.name) && ![...TOP, ...NOT_HERE].includes(row.name));
  fill(element('settings'), ...shown.map((row) => make('label', { class: 'setting', 'data-name': row.name },
    make('b', {}, row.name), ...control(row), make('small', {}, row.text), make('small', { class: 'why' }))));
}

// Why the value in effect is what it is, from the recipe's own row.
function why(row, effective) {
  const { recipe } = effective;
  const value = String(effective[row.name] ?? '');
  if (row.name in question.settings) return '';
  const name = String(recipe ?? 'hf').split('@')[0];
  const found = row.recipes.find((each) => (!each.recipe || each.recipe === name) && each.value === value);
  if (found) return `${found.recipe ?? 'every recipe'}${found.when ? ` ${found.when}` : ''}: ${found.evidence}`;
  if (row.default !== undefined) return value === row.default || !value ? `default: ${row.default}` : `follows from the rest (default: ${row.default})`;
  return '';
}

// What the question says, and what is in effect where it says nothing.
function showFields(effective) {
  for (const field of element('settings').children) {
    const row = tables.settings.find((each) => each.name === field.dataset.name);
    const input = field.querySelector('input, select');
    const given = question.settings[row.name];
    const value = effective[row.name] ?? row.default ?? '';
    field.classList.toggle('given', given !== undefined);
    if (document.activeElement !== input) input.value = given ?? '';
    if (input.tagName === 'SELECT') input.options[0].textContent = value === '' ? 'not set' : `${value} (not set here)`;
    else input.placeholder = `${value || 'not set'}`;
    field.querySelector('.why').textContent = why(row, effective);
  }
  const changed = Object.keys(question.settings).filter((name) => !TOP.includes(name));
  element('changed').textContent = changed.length ? `(yours: ${changed.map((name) => `${name} ${question.settings[name]}`).join(', ')})` : '';
}

function filterFields() {
  const wanted = element('find').value.toLowerCase();
  for (const field of element('settings').children)
    field.hidden = !field.textContent.toLowerCase().includes(wanted);
}

// ------------------------------------------------------------------ changing it

function setSetting(name, value) {
  const text = String(value).trim();
  if (text) question.settings[name] = text;
  else if (!TOP.includes(name)) delete question.settings[name];
}

// "--expandable on --cp 2", as the program offers it.
function applyOptions(options) {
  const words = options.trim().split(/\s+/);
  for (let i = 0; i + 1 < words.length; i += 2) setSetting(words[i].replace(/^--/, ''), words[i + 1]);
  showTop();
}

function readForm({ target }) {
  if (target.closest('.setting')) return setSetting(target.name, target.value);
  if (target.id === 'slider') element('context').value = String(Math.round(2 ** Number(target.value) / 256) * 256);
  if (target.id === 'model' && question.config && target.value !== question.settings.model) question.config = null;
  setSetting('model', element('model').value);
  setSetting('context', element('context').value);
  const machine = { nodes: Number(element('nodes').value) || 1, gpus: Number(element('gpus').value) || 1, card: element('card').value };
  setSetting('gpu', machineText(machine));
  if (target.id !== 'slider') element('slider').value = Math.log2(tokensOf(element('context').value) || 32768);
  element('config').hidden = !question.config;
}

// ------------------------------------------------------------------ the address

function toFragment() {
  const words = new URLSearchParams({ ...question.settings, ...(question.config?.lines ?? {}) });
  if (question.config) words.set('config', question.config.name);
  return `#${words}`;
}

function fromFragment(fragment) {
  const words = [...new URLSearchParams(fragment.replace(/^#/, ''))];
  if (!words.length) return;
  const name = words.find(([key]) => key === 'config')?.[1];
  const lines = Object.fromEntries(words.filter(([key]) => key.startsWith('config.')));
  question.settings = { ...START, ...Object.fromEntries(words.filter(([key]) => !key.startsWith('config'))) };
  question.config = name ? { name, lines } : null;
}

function commandLine(command = 'predict', extra = {}) {
  const settings = { ...question.settings, ...extra };
  if (question.config) settings.model = question.config.name;
  return ['fathom', command, ...Object.entries(settings).flatMap(([name, value]) => [`--${name}`, quoted(value)])].join(' ');
}
