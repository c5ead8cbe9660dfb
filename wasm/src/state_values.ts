import { ProtocolError } from './errors.js';

/** A value of a training's state beside its tensors: an integer of 64 bits, a number, or a text. */
export type StateValue = bigint | number | string;

type Typed = readonly [type: string, text: string];

/** The values of a training's state, by name, in the form of the native library's Checkpoint. */
export class StateValues extends Map<string, StateValue> {
  // The names of those that were unsigned on the rank that they came from.
  #unsigned = new Set<string>();

  /** @internal Writes them as native ranks do (native/elastic/values_text.hpp). */
  toText(): string {
    const names = [...this.keys()].sort();
    return JSON.stringify(Object.fromEntries(names.map((name) => [name, this.#typed(name, this.get(name) ?? '')])));
  }

  /** @internal Replaces all by those that another rank has written. */
  take(text: string): void {
    const values = Object.entries(JSON.parse(text) as Record<string, Typed>);
    this.clear();
    this.#unsigned = new Set(values.filter(([, [type]]) => type === 'u64').map(([name]) => name));
    for (const [name, [type, value]] of values) this.set(name, read(name, type, value));
  }

  #typed(name: string, value: StateValue): Typed {
    if (typeof value === 'string') return ['text', value];
    if (typeof value === 'number') return ['double', bitsOf(value)];
    return [this.#unsigned.has(name) ? 'u64' : 'i64', String(value)];
  }
}

function read(name: string, type: string, text: string): StateValue {
  if (type === 'text') return text;
  if (type === 'i64' || type === 'u64') return BigInt(text);
  if (type !== 'double') throw new ProtocolError(`the value '${name}' is of the unknown type '${type}'`);
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, BigInt(`0x${text}`));
  return view.getFloat64(0);
}

function bitsOf(value: number): string {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  return view.getBigUint64(0).toString(16).padStart(16, '0');
}
