const namespace = 'http://www.w3.org/2000/svg';
const width = 320;
const height = 240;
const nodeRadius = 17;

/** The order of the ranks in the ring. `order` has the world's ranks. */
export interface RingPicture {
  readonly order: readonly number[];
  readonly guests: number;
  readonly mine: number;
  /** The rank that was lost; -1 if none was. */
  readonly lost: number;
}

/** Whether both ends of an edge of the ring are guests, so that a native rank passes its bytes on. */
export function isRelayed(a: number, b: number, picture: RingPicture): boolean {
  const natives = picture.order.length - picture.guests;
  return a !== b && a >= natives && b >= natives;
}

/** Describes the drawing in one sentence. */
export function ringText(picture: RingPicture): string {
  const { order, guests, mine } = picture;
  const size = order.length;
  const natives = size - guests;
  const at = order.indexOf(mine);
  const left = order[(at + size - 1) % size];
  const right = order[(at + 1) % size];
  const place = left === right ? `beside rank ${left}` : `between rank ${left} and rank ${right}`;
  return `This tab is rank ${mine} of ${size}, ${place}. ${count(natives, 'native rank')}, ${count(guests, 'browser')}.`;
}

/** Draws the ring: natives as circles, browsers as squares, relayed edges dashed. */
export function drawRing(target: HTMLElement, picture: RingPicture): void {
  const size = picture.order.length;
  const svg = element('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': ringText(picture) });
  const radius = height / 2 - nodeRadius - 4;
  const at = (place: number): [number, number] => {
    const angle = (2 * Math.PI * place) / size - Math.PI / 2;
    return [width / 2 + 1.25 * radius * Math.cos(angle), height / 2 + radius * Math.sin(angle)];
  };
  for (let place = 0; place < size && size > 1; ++place) {
    if (size === 2 && place === 1) break;
    const [x1, y1] = at(place);
    const [x2, y2] = at(place + 1);
    const relayed = isRelayed(picture.order[place] ?? 0, picture.order[(place + 1) % size] ?? 0, picture);
    svg.append(element('line', { class: relayed ? 'edge relayed' : 'edge', x1, y1, x2, y2 }));
  }
  const scale = Math.min(1, (2.2 * radius) / (size * nodeRadius * 0.8));
  picture.order.forEach((rank, place) => svg.append(drawRank(rank, at(place), Math.max(scale, 0.35), picture)));
  target.replaceChildren(svg);
}

function drawRank(rank: number, [x, y]: [number, number], scale: number, picture: RingPicture): SVGElement {
  const guest = rank >= picture.order.length - picture.guests;
  const states = ['rank', rank === picture.mine ? 'mine' : '', rank === picture.lost ? 'lost' : ''];
  const group = element('g', {
    class: states.filter((state) => state !== '').join(' '),
    transform: `translate(${x} ${y}) scale(${scale})`,
  });
  const shape = guest
    ? element('rect', { x: -nodeRadius, y: -nodeRadius, width: 2 * nodeRadius, height: 2 * nodeRadius, rx: 6 })
    : element('circle', { r: nodeRadius });
  const label = element('text', {});
  label.textContent = String(rank);
  group.append(shape, label);
  return group;
}

function element(name: string, attributes: Readonly<Record<string, string | number>>): SVGElement {
  const made = document.createElementNS(namespace, name) as SVGElement;
  for (const [key, value] of Object.entries(attributes))
    made.setAttribute(key, typeof value === 'number' ? value.toFixed(2).replace(/\.00$/, '') : value);
  return made;
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? '' : 's'}`;
}
