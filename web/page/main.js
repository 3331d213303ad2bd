// The page as it runs: the question changes, the answer follows.

let tables, shown = null, asking = 0;
const module = await WebAssembly.compile(bytesOfBase64(element('wasm').textContent));
const quick = new Engine(module), slow = new Engine(module);

function remember() {
  history.replaceState(null, '', toFragment());
  element('command').textContent = commandLine();
}

async function answer() {
  const mine = ++asking;
  remember();
  const result = await quick.ask('predict', { ...settingsFor('predict'), timeline: 'timeline.json' });
  await filled;
  if (mine !== asking) return;
  performance.mark('answer');
  element('speed').textContent = `answered in ${Math.round(result.took)} ms, on this machine`;
  if (result.reply.error) return showError(result.reply.error);
  const timeline = JSON.parse(new TextDecoder().decode(result.files[0].content));
  shown = { ...result, timeline };
  showVerdict(result.reply);
  showFields(result.reply.settings);
  followRecipe(result.reply.settings.recipe);
  showRemedies(result.reply.remedies, apply);
  showBar(result.reply);
  new Timeline(timeline).draw(element('timeline'));
}

let later;
function soon() {
  clearTimeout(later);
  later = setTimeout(answer, 120);
}

function changed() {
  showTop();
  return answer();
}

function apply(options) {
  applyOptions(options);
  element('verdict').focus();
  return changed();
}

const applyCell = ({ gpus, axis, share, tokens }) => apply(
  `--gpu ${machineText({ nodes: 1, gpus, card: machineOf(question.settings.gpu).card })} --${axis} ${share} --context ${tokens}`);
const applyGuide = ({ gpus, context, options }) => apply(
  `--gpu ${machineText({ nodes: 1, gpus, card: machineOf(question.settings.gpu).card })} --context ${context} ${options}`);

// By the other worker, while the first answer is computed.
async function fillLists() {
  const [help, gpus] = await Promise.all([slow.ask('help', {}), slow.ask('gpus', {})]);
  tables = help.reply;
  fill(element('card'), ...gpus.reply.gpus.map(({ name, title }) => make('option', { value: name, title }, name)));
  makeFields();
  fillTargets();
  showTop();
}

async function fillModels() {
  const { reply } = await quick.ask('models', {});
  fill(element('models'), ...reply.models.map(({ name }) => make('option', { value: name })));
}

function listen() {
  element('question').addEventListener('submit', (event) => event.preventDefault());
  element('question').addEventListener('input', (event) => {
    if (event.target.id === 'find') return filterFields();
    readForm(event);
    return soon();
  });
  addEventListener('hashchange', () => { fromFragment(location.hash); changed(); });
  element('copy-command').addEventListener('click', ({ target }) => copy(commandLine(), target));
  element('copy-link').addEventListener('click', ({ target }) => copy(location.href, target));
  element('target').addEventListener('change', ({ target }) => { target.dataset.chosen = 'yes'; });
  element('emit').addEventListener('click', () => showFiles(quick));
  element('zip').addEventListener('click', downloadZip);
  element('map').addEventListener('click', () => drawMap(slow, applyCell));
  element('plan').addEventListener('click', () => drawPlan(slow, apply));
  element('split').addEventListener('click', () => drawSplit(slow));
  element('guide').addEventListener('click', () => drawGuide(slow, applyGuide));
}

fromFragment(location.hash);
const filled = fillLists();
const first = answer();
await filled;
listen();
listenForFiles(slow, changed);
makeExports(quick, () => shown);
await first;
await fillModels();
