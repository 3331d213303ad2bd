// The WebAssembly module imports nothing but what vsnprintf drags in, none of it is ever called, and
// its replies are byte for byte those of the native program.
//
// Usage: node parity.mjs MODULE NATIVE-PROGRAM
import { execFileSync } from 'node:child_process';
import { Core, comparable } from './core.mjs';

const [modulePath, program] = process.argv.slice(2);
const core = new Core(modulePath);
const { exports } = core;
const ask = (question, memory) => core.ask(question, memory);

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
questions.push('command=plan\nmodel=Qwen3-0.6B\ngpu=2xA100-80G\ncontext=8k\nlayers=2\nglobal-batch=16'); // deep in the stack
questions.push('command=serve\nmodel=Qwen3-30B-A3B\ngpu=2xH100-80G\ntp=2\nengine=vllm',
  'command=serve\nmodel=gemma-3-4b\ngpu=RTX4090\nengine=sglang@0.4.6\ncontext=8k',
  'command=split\nteacher=Qwen3-8B\nmodel=Qwen3-0.6B\ngpu=4xH100-80G\nresponse=1k');
questions.push('command=models\nmodel=Qwen3-9B', 'command=gpus\ngpu=H1000', 'command=gpus\ngpu=0xH200');

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

// A document takes memory that is added, until there is no more; what was there stays as it was.
const log = new TextEncoder().encode('x\n'.repeat(30 << 20) + 'torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 218.96 GiB\n');
const before = exports.memory.buffer.byteLength;
const read = core.askAbout('command=doctor\nfile=train.log', log, 300 << 20);
if (JSON.parse(read).cause?.kind !== 'gpu-memory' || exports.memory.buffer.byteLength < before + (360 << 20)) {
  failed++;
  console.log('a log of 60 MB is not read in memory that is added');
}
if (exports.fathom_reserve(2 ** 32 - 1, 0) !== 0 || exports.fathom_reserve(2 ** 31, 2 ** 31) !== 0) {
  failed++;
  console.log('more memory than there can be is not refused');
}
if (ask(large) !== whole || core.askAbout('command=doctor\nfile=train.log', log.subarray(-80)) === null) {
  failed++;
  console.log('a question after a refused document differs');
}

for (const question of questions) {
  if (comparable(ask(question)) !== comparable(native(question))) {
    failed++;
    console.log('replies differ for', JSON.stringify(question));
  }
}
console.log(`${questions.length} asked, ${failed} failed`);
process.exit(failed ? 1 : 0);
