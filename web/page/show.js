// A prediction as people look at it: the verdict in words, the card by part, and what would help.

function verdictOf(reply) {
  const { peak, capacity_bytes: capacity, needs_bytes: needs, oom, verdict } = reply;
  const free = capacity - peak.reserved_bytes;
  if (verdict === 'no' && oom) {
    return [`Does not fit: step ${oom.step} runs out of memory in the ${oom.phase}`,
      `It asks for ${bytesInWords(oom.tried_bytes)} more, and would need ${bytesInWords(needs)} of the ${bytesInWords(capacity)} that torch may take.`];
  }
  if (verdict === 'no') return ['Does not fit', `Decided by ${reply.decided_by}.`];
  const room = `Peak ${bytesInWords(peak.reserved_bytes)} reserved of the ${bytesInWords(capacity)} that torch may take: ${bytesInWords(free)} free, ${bytesInWords(reply.margin_bytes)} should be.`;
  if (verdict === 'tight') return ['Fits, but it is tight', `${room} ${reply.tight_because ?? ''}.`];
  return ['Fits, and safely', room];
}

function timeOf({ time }) {
  if (!time?.step_s) return '';
  const seconds = (value) => (value < 10 ? value.toFixed(1) : Math.round(value));
  return ` ${time.update_alone ? 'An update' : 'A step'} takes about ${seconds(time.step_s)} s (${seconds(time.low_s)} to ${seconds(time.high_s)}), ${tokensInWords(Math.round(time.tokens_per_s))} tokens a second and GPU.`;
}

function evidenceOf({ evidence }) {
  if (!evidence?.runs) return ' Nobody measured jobs of this kind.';
  return ` Judged by ${evidence.runs} measured runs (${evidence.kind}), of which the worst reserved ${(100 * evidence.reserved_worst).toFixed(1)} % more than predicted.`;
}

function showVerdict(reply) {
  const [head, body] = verdictOf(reply);
  element('verdict').textContent = `${head}.`;
  element('verdict').className = reply.verdict;
  element('because').textContent = body + timeOf(reply) + evidenceOf(reply);
  element('warnings').textContent = (reply.warnings ?? []).join(' ');
}

function showError(error) {
  element('verdict').textContent = 'This cannot be asked.';
  element('verdict').className = 'error';
  element('because').textContent = sentence(error);
  element('warnings').textContent = '';
  fill(element('remedies'));
}

const VERDICTS = { safe: 'fits safely', tight: 'fits, tight', no: 'does not fit' };

function showRemedies(remedies, apply) {
  const buttons = (remedies ?? []).map((each) => make('button',
    { type: 'button', 'data-options': each.options, 'data-verdict': each.verdict, click: () => apply(each.options) },
    make('b', { class: each.verdict }, VERDICTS[each.verdict]), ` with ${each.what.replace(/^or /, '')}: `,
    make('code', {}, each.options), each.fits ? ` (${bytesInWords(each.reserved_bytes)} reserved)` : ''));
  fill(element('remedies'), ...(buttons.length ? [make('h3', {}, 'What would help, computed'), ...buttons] : []));
}

// ------------------------------------------------------------------ the card

const legendRow = ({ what, bytes }) => make('li', {}, make('i', { style: `background:${colourOf(what)}` }), what,
  make('span', {}, bytesInWords(bytes)));

function showBar({ breakdown, capacity_bytes: capacity }) {
  const outside = breakdown.find((part) => part.what === 'outside torch')?.bytes ?? 0;
  const total = breakdown.reduce((sum, part) => sum + part.bytes, 0);
  const card = Math.max(capacity + outside, total);
  let x = 0;
  const parts = breakdown.map(({ what, bytes }) => {
    const width = 1000 * bytes / card;
    const part = make('rect', { class: 'part', x, y: 0, width, height: 44, fill: colourOf(what) },
      make('title', {}, `${what}: ${bytesInWords(bytes)}`));
    x += width;
    return part;
  });
  const words = breakdown.map(({ what, bytes }) => `${what} ${bytesInWords(bytes)}`).join(', ');
  fill(element('bar'),
    make('svg', { viewBox: '0 0 1000 46', role: 'img', 'aria-label': `${bytesInWords(total)} of ${bytesInWords(card)}: ${words}` },
      make('rect', { x: 0.5, y: 0.5, width: 999, height: 44, fill: 'none', class: 'grid' }), ...parts),
    make('ul', { class: 'legend' }, ...breakdown.map(legendRow),
      ...(card > total ? [make('li', {}, make('i', { style: 'border:1px solid' }), 'free', make('span', {}, bytesInWords(card - total)))] : [])));
}
