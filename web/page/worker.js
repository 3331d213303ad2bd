// Runs beside the page: one question at a time through the WebAssembly module, which reads no files, opens no
// connections and calls nothing of the browser's.
let core;

function refuse() {
  throw new Error('the core called something outside');
}

async function start(module) {
  const stubs = { fd_close: refuse, fd_seek: refuse, fd_write: refuse };
  core = (await WebAssembly.instantiate(module, { wasi_snapshot_preview1: stubs })).exports;
  core._initialize();
}

const bytesAt = (address, count) => new Uint8Array(core.memory.buffer, address, count);
const textAt = (address, count) => new TextDecoder().decode(bytesAt(address, count));

// The files of an answer: four words each, addresses of path and content, then their bytes.
function files() {
  const found = [];
  for (let i = 0; i < core.fathom_file_count(); i++) {
    const [path, content, pathBytes, contentBytes] = new Uint32Array(core.memory.buffer, core.fathom_file(i), 4);
    found.push({ path: textAt(path, pathBytes), content: bytesAt(content, contentBytes).slice() });
  }
  return found;
}

const TOO_LARGE = JSON.stringify({ error: { code: 'no_memory', message: 'the browser gives no more memory for this' } });

// A document of n bytes is read in about as much again for each of its values; the browser may refuse.
function about(words, document) {
  const wanted = Math.min(document.length * 24, 2 ** 31);
  const room = core.fathom_reserve(document.length, wanted) || core.fathom_reserve(document.length, 0);
  if (!room) return null;
  bytesAt(room >>> 0, document.length).set(document);
  return core.fathom_run_about(words, document.length);
}

function ask({ question, document }) {
  const words = new TextEncoder().encode(question);
  if (words.length > core.fathom_question_capacity()) return { json: TOO_LARGE, status: 70, files: [] };
  bytesAt(core.fathom_question(), words.length).set(words);
  const reply = document ? about(words.length, document) : core.fathom_run(words.length);
  if (reply === null) return { json: TOO_LARGE, status: 70, files: [] };
  return { json: textAt(reply, core.fathom_reply_bytes()), status: core.fathom_status(), files: files() };
}

onmessage = async ({ data }) => {
  if (data.module) return postMessage({ ready: await start(data.module) });
  try {
    const began = performance.now();
    const answer = ask(data);
    postMessage({ id: data.id, ...answer, took: performance.now() - began });
  } catch (failure) {
    postMessage({ id: data.id, status: 70, files: [], broken: true,
      json: JSON.stringify({ error: { code: 'bug', message: String(failure) } }) });
  }
};
