// The WebAssembly module as the page uses it. What it imports beyond what vsnprintf drags in ends the test, and none of
// that is ever called.
import { readFileSync } from 'node:fs';

const ALLOWED = ['fd_close', 'fd_seek', 'fd_write'];

export class Core {
  constructor(path) {
    const module = new WebAssembly.Module(readFileSync(path));
    const foreign = WebAssembly.Module.imports(module).filter(
      (i) => i.module !== 'wasi_snapshot_preview1' || !ALLOWED.includes(i.name));
    if (foreign.length)
      throw new Error(`core is not pure: it imports ${foreign.map((i) => `${i.module}.${i.name}`).join(', ')}`);
    const refuse = (name) => () => { throw new Error(`core called ${name}`); };
    const stubs = Object.fromEntries(ALLOWED.map((name) => [name, refuse(name)]));
    this.exports = new WebAssembly.Instance(module, { wasi_snapshot_preview1: stubs }).exports;
    this.exports._initialize();
  }

  bytes(address, count) {
    return new Uint8Array(this.exports.memory.buffer, address >>> 0, count);
  }

  put(question) {
    const words = new TextEncoder().encode(question);
    this.bytes(this.exports.fathom_question(), words.length).set(words);
    return words.length;
  }

  reply(address) {
    return new TextDecoder().decode(this.bytes(address, this.exports.fathom_reply_bytes()));
  }

  ask(question, memory) {
    const count = this.put(question);
    return this.reply(memory === undefined ? this.exports.fathom_run(count) : this.exports.fathom_run_within(count, memory));
  }

  // With a document; null where there is no room for it.
  askAbout(question, document, memory = 0) {
    const room = this.exports.fathom_reserve(document.length, memory);
    if (!room) return null;
    this.bytes(room, document.length).set(document);
    return this.reply(this.exports.fathom_run_about(this.put(question), document.length));
  }
}

// "where" names the option on the command line and nothing in the library.
export function comparable(reply) {
  const text = reply.replace(/given by --gpu/g, 'given by ');
  if (!text.startsWith('{\n  "error"')) return text;
  const { error } = JSON.parse(text);
  delete error.where;
  return JSON.stringify(error);
}
