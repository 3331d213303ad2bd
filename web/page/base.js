// What every part of the page uses: elements, figures, colours, and what goes to clipboard and disk.

const element = (id) => document.getElementById(id);

function make(tag, attributes = {}, ...children) {
  const SVG = ['svg', 'g', 'path', 'rect', 'line', 'text', 'title', 'polyline'];
  const made = SVG.includes(tag) ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') made.addEventListener(name, value);
    else if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

const fill = (where, ...children) => where.replaceChildren(...children);

const GIB = 2 ** 30;
function bytesInWords(bytes) {
  if (bytes >= GIB) return `${(bytes / GIB).toFixed(2)} GiB`;
  if (bytes >= 2 ** 20) return `${Math.round(bytes / 2 ** 20)} MiB`;
  return `${Math.round(bytes / 1024)} KiB`;
}

const tokensInWords = (tokens) => tokens.toLocaleString('en');

// Paul Tol's "muted" scheme, which the colour-blind can tell, and two greys.
const COLOURS = {
  'parameters': '#332288', 'reference model': '#661100', 'gradients': '#44aa99', 'optimizer': '#117733',
  'checkpoints': '#88ccee', 'logits and their copies': '#cc6677', 'saved for backward': '#999933',
  'working set': '#ddcc77', 'gathered layers': '#882255', 'workspaces': '#aa4499', 'inputs': '#6699cc',
  'cached, not in use': '#b8bec4', 'outside torch': '#7d858c',
};
const colourOf = (what) => COLOURS[what] ?? '#dddddd';

// A shell's word.
const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${String(word).replaceAll("'", "'\\''")}'`);

function download(name, content, type = 'application/octet-stream') {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const link = make('a', { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

// From disk the clipboard may be closed to us; a selection is not.
async function copy(text, button) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = make('textarea', { 'aria-hidden': 'true' });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
  button.textContent = 'copied';
  setTimeout(() => { button.textContent = before; }, 1500);
}

function sentence({ message, where, hint }) {
  return `${where ? `${where}: ` : ''}${message}${hint ? `; ${hint}` : ''}`;
}

const problem = (error) => make('p', { class: 'error', role: 'alert' }, sentence(error));
