// Memory over the steps: what lives, stacked; what torch reserves; the limit. Mouse, finger or arrow keys move a cursor
// that tells who is alive.

const PLOT = { width: 1000, height: 300, left: 70, top: 8, bottom: 26 };

function gridStep(top) {
  const quarter = GIB / 4;
  const step = [1, 2, 4, 8, 20, 40, 80, 200, 400, 800, 2000, 4000].find((n) => top / (n * quarter) <= 7) ?? 8000;
  return step * quarter;
}

class Timeline {
  constructor(data) {
    this.data = data;
    this.sums = Array.from({ length: data.points }, (_, i) => data.layers.reduce((sum, layer) => sum + layer.bytes[i], 0));
    this.top = 1.04 * Math.max(data.limit_bytes, ...this.sums, ...data.reserved_bytes);
    this.at = data.failed_point ?? this.sums.indexOf(Math.max(...this.sums));
  }

  x(point) {
    return PLOT.left + (PLOT.width - PLOT.left) * point / Math.max(1, this.data.points - 1);
  }

  y(bytes) {
    return PLOT.height - PLOT.bottom - (PLOT.height - PLOT.top - PLOT.bottom) * bytes / this.top;
  }

  areas() {
    const { layers, points } = this.data;
    const below = new Array(points).fill(0);
    return layers.map(({ what, bytes }) => {
      const lower = below.map((value, i) => `${this.x(i).toFixed(1)} ${this.y(value).toFixed(1)}`);
      const upper = below.map((value, i) => `${this.x(i).toFixed(1)} ${this.y(value + bytes[i]).toFixed(1)}`);
      bytes.forEach((value, i) => { below[i] += value; });
      return make('path', { fill: colourOf(what), d: `M${lower.join('L')}L${upper.reverse().join('L')}Z` });
    });
  }

  grid() {
    const marks = [];
    for (let at = 0; at <= this.top; at += gridStep(this.top)) {
      const y = this.y(at);
      marks.push(make('line', { class: 'grid', x1: PLOT.left, x2: PLOT.width, y1: y, y2: y }),
        make('text', { x: PLOT.left - 6, y: y + 4, 'text-anchor': 'end' }, `${+(at / GIB).toFixed(2)} GiB`));
    }
    const steps = this.data.phases.filter((mark, i, all) => mark.step > 0 && mark.step !== all[i - 1]?.step);
    for (const mark of steps) {
      const x = this.x(mark.point);
      marks.push(make('line', { class: 'grid', x1: x, x2: x, y1: PLOT.top, y2: PLOT.height - PLOT.bottom }),
        make('text', { x: x + 4, y: PLOT.height - 8 }, `step ${mark.step}`));
    }
    return marks;
  }

  lines() {
    const { reserved_bytes: reserved, limit_bytes: limit, failed_point: failed } = this.data;
    const points = reserved.map((value, i) => `${this.x(i).toFixed(1)},${this.y(value).toFixed(1)}`).join(' ');
    const made = [make('polyline', { class: 'reserved', points }),
      make('line', { class: 'limit', x1: PLOT.left, x2: PLOT.width, y1: this.y(limit), y2: this.y(limit) },
        make('title', {}, `what torch may take: ${bytesInWords(limit)}`))];
    if (failed !== null) {
      made.push(make('line', { class: 'limit', x1: this.x(failed), x2: this.x(failed), y1: PLOT.top, y2: PLOT.height - PLOT.bottom }),
        make('text', { x: this.x(failed) + 5, y: PLOT.top + 26 }, 'out of memory'));
    }
    return made;
  }

  // "step 2, backward: logits 37.09 GiB, ...; reserved 77.54 GiB of 77.63 GiB"
  words() {
    const { layers, phases, reserved_bytes: reserved, limit_bytes: limit } = this.data;
    const mark = phases.findLast((each) => each.point <= this.at) ?? phases[0];
    const alive = layers.map(({ what, bytes }) => ({ what, bytes: bytes[this.at] })).filter((part) => part.bytes >= 2 ** 20)
      .sort((a, b) => b.bytes - a.bytes);
    const held = reserved[this.at] === undefined ? '' : `; reserved ${bytesInWords(reserved[this.at])} of ${bytesInWords(limit)}`;
    return `${mark.step ? `step ${mark.step}, ` : ''}${mark.phase}: ${alive.map((part) => `${part.what} ${bytesInWords(part.bytes)}`).join(', ')}${held}`;
  }

  move(point) {
    this.at = Math.max(0, Math.min(this.data.points - 1, Math.round(point)));
    this.cursor.setAttribute('x1', this.x(this.at));
    this.cursor.setAttribute('x2', this.x(this.at));
    this.svg.setAttribute('aria-valuenow', this.at);
    this.svg.setAttribute('aria-valuetext', this.words());
    element('alive').textContent = this.words();
  }

  follow(event) {
    const box = this.svg.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width * PLOT.width;
    this.move((x - PLOT.left) / (PLOT.width - PLOT.left) * (this.data.points - 1));
  }

  press(event) {
    const by = { ArrowRight: 1, ArrowLeft: -1, PageDown: 20, PageUp: -20, Home: -Infinity, End: Infinity }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    this.move(Math.max(0, Math.min(this.data.points, this.at + by)));
  }

  draw(where) {
    this.cursor = make('line', { class: 'cursor', y1: PLOT.top, y2: PLOT.height - PLOT.bottom });
    this.svg = make('svg', { viewBox: `0 0 ${PLOT.width} ${PLOT.height}`, tabindex: 0, role: 'slider',
      'aria-label': 'memory over three steps; arrow keys move', 'aria-valuemin': 0, 'aria-valuemax': this.data.points - 1,
      pointermove: (event) => this.follow(event), keydown: (event) => this.press(event) },
    ...this.grid(), ...this.areas(), ...this.lines(), this.cursor);
    fill(where, this.svg, make('ul', { class: 'legend' }, ...this.data.layers.map(({ what }) => make('li', {},
      make('i', { style: `background:${colourOf(what)}` }), what)), make('li', {}, '— reserved by torch'), make('li', {}, '- - what torch may take')));
    this.move(this.at);
  }
}
