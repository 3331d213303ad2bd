// Files that people drop: a log is doctor's, a snapshot or a trace is replay's, a config.json is a model. They are read
// here and stay here.

const GZIP = [0x1f, 0x8b], ZLIB = 0x78, PICKLE = 0x80;

async function unpacked(bytes) {
  const packed = bytes[0] === GZIP[0] && bytes[1] === GZIP[1] ? 'gzip' : bytes[0] === ZLIB && ((bytes[0] << 8) + bytes[1]) % 31 === 0 ? 'deflate' : null;
  if (!packed) return bytes;
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream(packed));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// {"a": {"b": [1]}} as a.b.0=1, the way config.json comes to the core.
function flattened(value, prefix, lines = {}) {
  if (value !== null && typeof value === 'object')
    for (const [key, each] of Object.entries(value)) flattened(each, `${prefix}.${key}`, lines);
  else if (value !== null && !String(value).includes('\n')) lines[prefix] = String(value);
  return lines;
}

function asConfig(bytes) {
  if (bytes[0] !== 0x7b) return null;
  try {
    const config = JSON.parse(new TextDecoder().decode(bytes));
    return config.model_type || config.architectures ? config : null;
  } catch {
    return null;
  }
}

const isHistory = (bytes) => (bytes[0] === PICKLE && bytes[1] >= 2 && bytes[1] <= 5)
  || /^(segment_alloc|segment_map|alloc|start|free)\b/.test(new TextDecoder().decode(bytes.subarray(0, 64)));

// UTF-16, as PowerShell's logs are.
function asUtf8(bytes) {
  const wide = bytes[0] === 0xff && bytes[1] === 0xfe ? 'utf-16le' : bytes[0] === 0xfe && bytes[1] === 0xff ? 'utf-16be' : null;
  return wide ? new TextEncoder().encode(new TextDecoder(wide).decode(bytes)) : bytes;
}

// ------------------------------------------------------------------ a log

function showDoctor(name, reply) {
  const stays = make('p', { class: 'hint' }, `${name} was read here and stays on this machine.`);
  if (reply.error) return fill(element('dropped'), problem(reply.error), stays);
  const { cause } = reply;
  if (!cause) return fill(element('dropped'), make('h3', {}, 'This log names no cause.'), stays);
  const where = [cause.rank === null ? '' : `rank ${cause.rank}`, cause.gpu === null ? '' : `GPU ${cause.gpu}`,
    cause.step === null ? '' : `after step ${cause.step}`, `line ${cause.line}`].filter(Boolean).join(', ');
  return fill(element('dropped'), make('h3', { class: 'no' }, `The run ${cause.what} (${where}).`), make('pre', { tabindex: 0 }, cause.text),
    make('p', {}, 'What to change, the cheapest first:'), make('ol', {}, ...reply.what_to_change.map((each) => make('li', {}, each))), stays);
}

// ------------------------------------------------------------------ a snapshot

function outcomeOf(title, { mode, peak, oom }) {
  const end = oom ? `runs out of memory asking for ${bytesInWords(oom.tried_bytes)} (${oom.cause})` : 'completes';
  return make('p', {}, make('b', {}, title), ` ${mode} segments: ${end}; peak allocated ${bytesInWords(peak.allocated_bytes)}, reserved ${bytesInWords(peak.reserved_bytes)}.`);
}

function blocksTable(blocks) {
  return make('div', { class: 'scroll' }, make('table', {}, make('caption', {}, 'largest blocks at the peak'),
    make('tr', {}, make('th', {}, 'bytes'), make('th', {}, 'asked for by')),
    ...blocks.map((block) => make('tr', {}, make('td', {}, bytesInWords(block.bytes)), make('td', {}, block.asked_for_by)))));
}

function picture(files, alt) {
  if (!files.length) return [];
  const address = URL.createObjectURL(new Blob([files[0].content], { type: 'image/svg+xml' }));
  return [make('img', { src: address, alt, style: 'max-width:100%;background:#fff' })];
}

function whatIfs(again) {
  const limit = make('input', { placeholder: '79GiB', 'aria-label': 'memory limit', size: 8 });
  return make('p', { class: 'row' }, 'What if:',
    make('button', { type: 'button', click: () => again({ expandable: 'on' }) }, 'expandable segments'),
    make('button', { type: 'button', click: () => again({ expandable: 'off' }) }, 'classic segments'),
    limit, make('button', { type: 'button', click: () => again({ 'memory-limit': limit.value }) }, 'this limit'));
}

function showReplay(name, { reply, files }, again) {
  const stays = make('p', { class: 'hint' }, `${name} was read here and stays on this machine.`);
  if (reply.error) return fill(element('dropped'), problem(reply.error), stays);
  const driver = reply.segment_events ? `, ${reply.segment_events_matched} of ${reply.segment_events} driver calls reproduced` : '';
  return fill(element('dropped'), make('h3', {}, `${tokensInWords(reply.events)} events${driver}.`), outcomeOf('As it was:', reply),
    ...(reply.other_mode ? [outcomeOf('The other way:', reply.other_mode)] : []),
    ...(reply.what_if ? [outcomeOf('What if:', reply.what_if)] : []), whatIfs(again),
    ...picture(files, 'memory over the events of the history'), blocksTable(reply.largest_blocks), stays);
}

// ------------------------------------------------------------------ which is which

// What the browser cannot hold or unpack is said, not dropped.
async function contentOf(file) {
  try {
    return await unpacked(new Uint8Array(await file.arrayBuffer()));
  } catch (failure) {
    fill(element('dropped'), problem({ message: `${file.name} cannot be read here (${failure.message}); 'fathom doctor' and 'fathom replay' read files of any size` }));
    return null;
  }
}

async function take(file, slow, changed) {
  fill(element('dropped'), make('p', {}, `reading ${file.name} …`));
  const name = file.name.replaceAll('\n', ' ');
  const bytes = await contentOf(file);
  if (!bytes) return undefined;
  const config = asConfig(bytes);
  if (config) {
    question.config = { name, lines: flattened(config, 'config') };
    question.settings.model = name;
    fill(element('dropped'), make('p', {}, `${name} is the model now; it stays on this machine.`));
    return changed();
  }
  if (isHistory(bytes)) {
    const again = async (settings) => showReplay(name,
      await slow.askOnly('replay', { file: name, svg: 'replay.svg', ...settings }, bytes), again);
    return again({});
  }
  const beside = element('beside').checked ? settingsFor('doctor') : {};
  const { reply } = await slow.askOnly('doctor', { file: name, ...beside }, asUtf8(bytes));
  return showDoctor(name, reply);
}

function listenForFiles(slow, changed) {
  const over = (on) => document.body.classList.toggle('over', on);
  addEventListener('dragover', (event) => { event.preventDefault(); over(true); });
  addEventListener('dragleave', () => over(false));
  addEventListener('drop', (event) => {
    event.preventDefault();
    over(false);
    if (event.dataTransfer.files.length) take(event.dataTransfer.files[0], slow, changed);
  });
  element('file').addEventListener('change', ({ target }) => target.files.length && take(target.files[0], slow, changed));
}
