// Every example of the documents and golden tests that predicts, searches, writes files or reads a log, asked of the
// WebAssembly module: its JSON is byte for byte the program's. Left out is what a browser has no part in: --from, stores,
// folders and the hub.
//
// Usage: node examples.mjs MODULE NATIVE-PROGRAM
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { Core, comparable } from './core.mjs';

const TESTS = dirname(dirname(fileURLToPath(import.meta.url)));
const ROOT = dirname(TESTS);
const COMMANDS = ['predict', 'max', 'guide', 'emit', 'doctor', 'serve', 'split'];
const NOT_HERE = ['from', 'help', 'version', 'debug', 'store', 'log-dir'];
const LEAST = 150; // examples compared, lest a change of their form leaves none

const program = resolve(process.argv[3]);
const core = new Core(process.argv[2]);
const tables = JSON.parse(core.ask('command=help'));
const rows = new Map(tables.settings.map((row) => [row.name, row]));

// ------------------------------------------------------------------ the examples

function commandsIn(path) {
  const text = readFileSync(path, 'utf8');
  const blocks = path.endsWith('.md') ? [...text.matchAll(/```console\n([^]*?)```/g)].map((found) => found[1]) : [text];
  return blocks.flatMap((block) => [...block.matchAll(/^\$ (?:\S+=\S+ )*(?:fathom|\.\/run) (.*)$/gm)].map((found) => found[1]));
}

// The words of the first command of a line; null where the shell does more than split and quote.
function wordsOf(line) {
  const words = [];
  for (const [, single, double, plain, operator] of line.matchAll(/'([^']*)'|"([^"$`\\]*)"|([^\s'"|<>;&$`\\()*?]+)|([|<>;&])|\S/g)) {
    if (operator) break;
    const word = single ?? double ?? plain;
    if (word === undefined) return null;
    words.push(word);
  }
  return words.length && words.at(-1) === '2' ? words.slice(0, -1) : words;
}

// {command, settings: [[name, value]]}, null where the words are of another kind or wrong on purpose.
function parsed(words) {
  const [command, ...rest] = words;
  const settings = [];
  if (!COMMANDS.includes(command)) return null;
  const taken = tables.commands.find((row) => row.name === command).settings;
  for (let i = 0; i < rest.length; i++) {
    const word = rest[i];
    if (word === '--json') continue;
    if (word === '-o') settings.push(['into', rest[++i]]);
    else if (!word.startsWith('-') && command === 'doctor') settings.push(['file', word]);
    else if (!word.startsWith('--')) return null;
    else {
      const [name, value] = word.slice(2).split(/=(.*)/s);
      const row = rows.get(name);
      if (!row || !taken.includes(name) || NOT_HERE.includes(name)) return null;
      settings.push([name, value ?? (row.kind === 'flag' ? 'on' : rest[++i])]);
    }
  }
  return settings.some(([, value]) => value === undefined) ? null : { command, settings };
}

// ------------------------------------------------------------------ asking both

function flattened(value, prefix) {
  if (value !== null && typeof value === 'object')
    return Object.entries(value).flatMap(([key, each]) => flattened(each, `${prefix}.${key}`));
  return value === null ? [] : [[prefix, String(value)]];
}

const isFile = (path) => existsSync(path) && statSync(path).isFile();

// The question as the page puts it; null where it needs what a page has not.
function questionOf({ command, settings }, folder) {
  const given = Object.fromEntries(settings);
  const lines = [['command', command], ...settings];
  if (given.gpu === 'auto' || given.data) return null; // the host looks, and reads the file
  for (const name of ['model', 'teacher'])
    if (/[/ ]|\.json$/.test(given[name] ?? '') || existsSync(join(folder, given[name] ?? ' '))) return null; // the host looks
  if (command !== 'doctor') return { text: lines.map((pair) => pair.join('=')).join('\n') };
  const path = join(folder, given.file ?? ' ');
  if (!isFile(path)) return null;
  const bytes = readFileSync(path);
  return { text: lines.map((pair) => pair.join('=')).join('\n'), document: bytes[0] === 0x1f ? gunzipSync(bytes) : bytes };
}

function native({ command, settings }, folder) {
  const words = settings.flatMap(([name, value]) => (name === 'file' ? [value] : [`--${name}=${value}`]));
  try {
    return execFileSync(program, [command, '--json', ...words], { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 1 << 28 }).toString();
  } catch (failure) {
    return failure.stdout.toString();
  }
}

// ------------------------------------------------------------------ all of them

const folder = mkdtempSync(join(tmpdir(), 'fathom-'));
cpSync(join(TESTS, 'cli', 'files'), folder, { recursive: true });
cpSync(join(TESTS, 'doctor'), join(folder, 'doctor'), { recursive: true });
const documents = [join(ROOT, 'README.md'), ...['docs', 'tests/cli'].flatMap((place) => readdirSync(join(ROOT, place))
  .filter((name) => /\.(md|console)$/.test(name)).map((name) => join(ROOT, place, name)))];
const lines = new Set(documents.flatMap(commandsIn).map((line) => line.replaceAll('$TESTS/doctor', 'doctor')));
for (const name of readdirSync(join(TESTS, 'doctor'))) if (name.endsWith('.log')) lines.add(`doctor doctor/${name}`);

let compared = 0, failed = 0;
for (const line of lines) {
  const example = parsed(wordsOf(line) ?? ['']);
  const question = example && questionOf(example, folder);
  if (!question) continue;
  const mine = question.document ? core.askAbout(question.text, question.document) : core.ask(question.text);
  rmSync(join(folder, Object.fromEntries(example.settings).into ?? ' '), { recursive: true, force: true });
  compared++;
  if (comparable(mine) === comparable(native(example, folder))) continue;
  failed++;
  console.log(`replies differ for: fathom ${line}`);
}
rmSync(folder, { recursive: true });
console.log(`${compared} of ${lines.size} examples compared, ${failed} failed`);
process.exit(failed || compared < LEAST ? 1 : 0);
