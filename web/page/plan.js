// The best configuration with the front of those that nothing beats in memory and time, and GPUs divided between the
// roles of distillation, drawn as they stand in their nodes.

const FRONT = { width: 700, height: 300, left: 60, bottom: 34, top: 10 };

function frontPicture(points, best) {
  const seconds = 1.08 * Math.max(...points.map((each) => each.time.step_s)), bytes = 1.08 * Math.max(...points.map((each) => each.reserved_bytes));
  const x = (each) => FRONT.left + (FRONT.width - FRONT.left - 10) * each.time.step_s / seconds;
  const y = (each) => FRONT.height - FRONT.bottom - (FRONT.height - FRONT.top - FRONT.bottom) * each.reserved_bytes / bytes;
  const sorted = [...points].sort((a, b) => a.time.step_s - b.time.step_s);
  const dot = (each) => make('rect', { x: x(each) - 4, y: y(each) - 4, width: 8, height: 8, fill: each.options === best ? '#cc6677' : '#332288', class: 'part' },
    make('title', {}, `${each.options}: ${bytesInWords(each.reserved_bytes)}, ${each.time.step_s.toFixed(1)} s`));
  const marks = [0.25, 0.5, 0.75, 1].flatMap((share) => [
    make('text', { x: FRONT.left - 6, y: y({ time: {}, reserved_bytes: share * bytes / 1.08 }) + 4, 'text-anchor': 'end' }, `${(share * bytes / 1.08 / GIB).toFixed(0)} GiB`),
    make('text', { x: x({ time: { step_s: share * seconds / 1.08 } }), y: FRONT.height - 16, 'text-anchor': 'middle' }, `${(share * seconds / 1.08).toPrecision(3)} s`)]);
  return make('svg', { viewBox: `0 0 ${FRONT.width} ${FRONT.height}`, role: 'img', 'aria-label': 'reserved memory against seconds a step; the table says the same' },
    make('polyline', { class: 'reserved', points: sorted.map((each) => `${x(each)},${y(each)}`).join(' ') }), ...sorted.map(dot), ...marks,
    make('text', { x: FRONT.width - 10, y: FRONT.height - 2, 'text-anchor': 'end' }, 'seconds a step'));
}

function frontTable(points, apply) {
  const row = (each) => make('tr', {}, make('td', {}, each.time.step_s.toFixed(1)), make('td', {}, bytesInWords(each.reserved_bytes)),
    make('td', { class: 'cell' }, make('button', { type: 'button', click: () => apply(each.options) }, each.options)));
  return make('div', { class: 'scroll' }, make('table', {}, make('caption', {}, 'nothing is better in both'),
    make('tr', {}, make('th', {}, 's a step'), make('th', {}, 'reserved'), make('th', {}, 'press to apply')), ...points.map(row)));
}

async function drawPlan(slow, apply) {
  fill(element('planned'), make('p', {}, 'computing …'));
  const { reply } = await slow.askOnly('plan', { ...settingsFor('plan'), 'global-batch': element('batch').value });
  if (reply.error) return fill(element('planned'), problem(reply.error));
  const best = reply.pareto.find((each) => each.reserved_bytes === reply.best.reserved_bytes && each.time.step_s === reply.best.time.step_s);
  const head = `The best for ${reply.goal} of ${tokensInWords(reply.configurations)} configurations: ${reply.best.time.step_s.toFixed(1)} s ${reply.best.time.update_alone ? 'an update' : 'a step'} of ${
    element('batch').value} sequences, ${bytesInWords(reply.best.reserved_bytes)} reserved, ${VERDICTS[reply.best.verdict]}.`;
  return fill(element('planned'), make('p', {}, make('b', {}, head)), make('p', {}, make('code', {}, reply.best.command)),
    frontPicture(reply.pareto, best?.options), frontTable(reply.pareto, apply));
}

// ------------------------------------------------------------------ the split

const ROLES = { teacher: ['T', '#332288', '#fff'], rollout: ['R', '#ddcc77', '#111'], train: ['S', '#117733', '#fff'] };
const ROLE_WORDS = { teacher: "the teacher's server", rollout: 'rollout', train: "the student's training" };

function nodesMap(roles, perNode) {
  const owners = [];
  for (const each of roles) for (let i = 0; i < each.gpus; i++) owners[each.first_gpu + i] = each.role;
  const count = owners.length;
  const rows = Array.from({ length: Math.ceil(count / perNode) }, (_, node) => make('tr', {}, make('th', { scope: 'row' }, `node ${node}`),
    ...Array.from({ length: Math.min(perNode, count - node * perNode) }, (__, i) => {
      const [letter, back, ink] = ROLES[owners[node * perNode + i]] ?? ['–', 'transparent', 'inherit'];
      return make('td', { style: `background:${back};color:${ink}` }, letter);
    })));
  return make('div', { class: 'scroll' }, make('table', {}, make('caption', {}, 'T teacher, R rollout, S the student’s training'), ...rows));
}

async function drawSplit(slow) {
  const teacher = element('teacher').value;
  if (!teacher) return element('teacher').focus();
  fill(element('divided'), make('p', {}, 'computing …'));
  const settings = { ...settingsFor('split', ['task', 'batch', 'accum']), teacher, response: tokensOf(question.settings.context) };
  const { reply } = await slow.askOnly('split', settings);
  if (reply.error) return fill(element('divided'), problem(reply.error));
  const { roles, iteration_s: seconds, bound_by: bound } = reply.best;
  const words = roles.map((each) => make('li', {}, `${ROLE_WORDS[each.role]}: ${each.gpus} GPUs, ${bytesInWords(each.reserved_bytes)} of each, ${
    each.seconds.toFixed(0)} s, busy ${Math.round(100 * each.utilisation)} %`));
  return fill(element('divided'), make('p', {}, make('b', {}, `${seconds.toFixed(0)} s an iteration, bound by ${bound}.`), ` Answers have ${
    tokensInWords(settings.response)} tokens. ${reply.basis}.`), make('ul', {}, ...words), nodesMap(roles, machineOf(question.settings.gpu).gpus));
}
