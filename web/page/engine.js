// Questions to the core. Quick ones (predict, emit) and long ones (max, guide, documents) have a worker each, so that
// the answer keeps up with typing; a long one that nobody waits for any more is ended with its worker.

class Engine {
  constructor(module) {
    this.module = module;
    this.waiting = new Map();
    this.last = 0;
    this.begin();
  }

  begin() {
    const source = new Blob([element('worker').textContent], { type: 'text/javascript' });
    const address = URL.createObjectURL(source);
    this.worker = new Worker(address);
    this.worker.onmessage = ({ data }) => this.receive(data);
    this.worker.postMessage({ module: this.module });
  }

  receive(answer) {
    const done = this.waiting.get(answer.id);
    if (!done) return;
    this.waiting.delete(answer.id);
    if (answer.broken) this.restart();
    done({ ...answer, reply: JSON.parse(answer.json) });
  }

  restart() {
    this.worker.terminate();
    this.waiting.clear();
    this.begin();
  }

  // {reply, json, status, files}; "does not fit" is an answer, reply.error is not.
  ask(command, settings, document) {
    const id = ++this.last;
    const question = [`command=${command}`, ...Object.entries(settings).map(([key, value]) => `${key}=${value}`)].join('\n');
    return new Promise((done) => {
      this.waiting.set(id, done);
      this.worker.postMessage({ id, question, document });
    });
  }

  // The same, alone: what was asked before is given up.
  askOnly(command, settings, document) {
    if (this.waiting.size) this.restart();
    return this.ask(command, settings, document);
  }
}

function bytesOfBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}
