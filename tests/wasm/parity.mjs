// The WebAssembly module imports nothing but what vsnprintf drags in, none of it is ever called, and
// its replies are byte for byte those of the native program.
//
// Usage: node parity.mjs MODULE NATIVE-PROGRAM
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const ALLOWED = ['fd_close', 'fd_seek', 'fd_write'];
const [modulePath, program] = process.argv.slice(2);
const module = new WebAssembly.Module(readFileSync(modulePath));

const foreign = WebAssembly.Module.imports(module).filter(
  (i) => i.module !== 'wasi_snapshot_preview1' || !ALLOWED.includes(i.name));
if (foreign.length) {
  console.log('core is not pure: it imports', foreign.map((i) => `${i.module}.${i.name}`).join(', '));
  process.exit(1);
}

const refuse = (name) => () => { throw new Error(`core called ${name}`); };
const stubs = Object.fromEntries(ALLOWED.map((name) => [name, refuse(name)]));
const { exports } = new WebAssembly.Instance(module, { wasi_snapshot_preview1: stubs });
exports._initialize();

function ask(question, memory) {
  const bytes = new TextEncoder().encode(question);
  new Uint8Array(exports.memory.buffer, exports.fathom_question(), bytes.length).set(bytes);
  const reply = memory === undefined ? exports.fathom_run(bytes.length)
    : exports.fathom_run_within(bytes.length, memory);
  return new TextDecoder().decode(
    new Uint8Array(exports.memory.buffer, reply, exports.fathom_reply_bytes()));
}

function native(question) {
  const [command, ...options] = question.split('\n').map((line) => line.split('='));
  const args = options.map(([key, ...value]) => `--${key}=${value.join('=')}`);
  try {
    return execFileSync(program, [command[1], '--json', ...args], { stdio: ['ignore', 'pipe', 'ignore'] })
      .toString();
  } catch (failure) {
    return failure.stdout.toString();
  }
}

const questions = [
  'command=models', 'command=gpus', 'command=help', 'command=man', 'command=completion\nshell=zsh',
];
for (const { name } of JSON.parse(ask('command=models')).models) {
  questions.push(`command=models\nmodel=${name}`, `command=models\nmodel=${name}\nlayers=7\ntied=off`);
}
for (const { name } of JSON.parse(ask('command=gpus')).gpus) {
  questions.push(`command=gpus\ngpu=3x8x${name}`, `command=gpus\ngpu=${name}:memory=33.37GiB`);
}

for (const strategy of ['gpu=H200', 'gpu=8xH100-80G\nsp=2', 'gpu=4xA100-80G\nloss=chunked:512\nexpandable=on']) {
  for (const model of ['Qwen3-8B', 'Qwen2.5-0.5B', 'Llama-3.2-1B', 'gemma-2-2b']) {
    questions.push(`command=predict\nmodel=${model}\ncontext=8k\nlayers=4\n${strategy}`);
  }
}
questions.push('command=max\nmodel=Qwen3-8B\ngpu=8xH100-80G\nlayers=4',
  'command=max\nmodel=Qwen3-0.6B,Qwen3-4B\ngpu=1,2xA100-80G\nsp=1,2\nlayers=4\ngrid=trinity',
  'command=guide\nmodel=Qwen3-0.6B,Qwen3-4B\ngpu=1,2xA100-80G\nlayers=4');
for (const target of ['accelerate\nexpandable=on', 'deepspeed\nstrategy=zero3', 'trl\ntask=dpo', 'trinity', 'verl', 'slurm']) {
  questions.push(`command=emit\nmodel=Qwen3-8B\ncontext=8k\ngpu=8xH100-80G\nfor=${target}`);
}
questions.push('command=models\nmodel=Qwen3-9B', 'command=gpus\ngpu=H1000', 'command=gpus\ngpu=0xH200');

// "where" names the option on the command line and nothing in the library.
function comparable(reply) {
  const text = reply.replace(/given by --gpu/g, 'given by ');
  if (!text.startsWith('{\n  "error"')) return text;
  const { error } = JSON.parse(text);
  delete error.where;
  return JSON.stringify(error);
}

let failed = 0;

// What runs out of memory says so, and the next question finds the module as it was, its stack too.
const large = 'command=predict\nmodel=Qwen3-8B\ngpu=8xH100-80G\ncontext=8k';
const whole = ask(large);
for (let round = 0; round < 200; round++) {
  for (const memory of [-1, 0, 1 << 10, 1 << 16]) {
    const code = JSON.parse(ask(large, memory)).error?.code;
    if (code !== 'no_memory' || exports.fathom_status() !== 70) {
      failed++;
      console.log(`${memory} bytes of memory do not fail`);
    }
  }
}
if (ask(large) !== whole || exports.fathom_status() === 70) {
  failed++;
  console.log('a question after one that failed differs');
}

for (const question of questions) {
  if (comparable(ask(question)) !== comparable(native(question))) {
    failed++;
    console.log('replies differ for', JSON.stringify(question));
  }
}
console.log(`${questions.length} asked, ${failed} failed`);
process.exit(failed ? 1 : 0);
