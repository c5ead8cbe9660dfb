import type { EngineMemory } from '../engine.js';
import type { RingletModule } from './module.js';
import { countForModule, largestSize } from './sizes.js';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The module's memory: writes values into it and reads values from it. */
export class ModuleMemory implements EngineMemory {
  readonly #module: RingletModule;

  constructor(module: RingletModule) {
    this.#module = module;
  }

  get buffer(): ArrayBuffer {
    return this.#module.HEAPU8.buffer as ArrayBuffer;
  }

  allocate(bytes: number): number {
    const pointer = this.reserve(bytes);
    this.#module.HEAPU8.fill(0, pointer, pointer + bytes);
    return pointer;
  }

  /** Like allocate(), but does not clear the memory. */
  reserve(bytes: number): number {
    // Even zero bytes need a place of their own.
    const pointer = bytes > largestSize ? 0 : this.#module._ringlet_allocate(Math.max(bytes, 1)) >>> 0;
    if (pointer === 0) throw new RangeError(`the wasm module has no ${bytes} bytes of memory left`);
    return pointer;
  }

  release(pointer: number): void {
    this.#module._ringlet_release(pointer);
  }

  /** Copies the bytes into the module's memory; the caller must release it. */
  put(bytes: Uint8Array): number {
    const pointer = this.reserve(bytes.byteLength);
    this.#module.HEAPU8.set(bytes, pointer);
    return pointer;
  }

  /**
   * Copies the numbers as 32-bit integers, or returns a null pointer if there are none; the caller must release it. Throws
   * `InvalidArgument` for numbers that are larger.
   */
  putNumbers(numbers: readonly number[] | undefined): number {
    return numbers === undefined ? 0 : this.put(new Uint8Array(Uint32Array.from(numbers, countForModule).buffer));
  }

  /** Runs `use` with copies of these in the module's memory, which it has until `use` returns or throws. */
  lend<T>(parts: readonly (string | readonly number[] | Float64Array)[], use: (...pointers: number[]) => T): T {
    const pointers: number[] = [];
    try {
      for (const part of parts) pointers.push(this.#putPart(part));
      return use(...pointers);
    } finally {
      for (const pointer of pointers) this.release(pointer);
    }
  }

  #putPart(part: string | readonly number[] | Float64Array): number {
    if (typeof part === 'string') return this.putText(part);
    return part instanceof Float64Array ? this.put(new Uint8Array(part.buffer)) : this.putNumbers(part);
  }

  /** Copies the text as UTF-8 with a zero byte at its end; the caller must release it. */
  putText(text: string): number {
    return this.put(encoder.encode(`${text}\0`));
  }

  /** Returns a view of the bytes, which is invalid as soon as the module runs. */
  view(pointer: number, bytes: number): Uint8Array {
    return this.#module.HEAPU8.subarray(pointer, pointer + bytes);
  }

  /** Reads UTF-8 text up to its zero byte. */
  text(pointer: number): string {
    const memory = this.#module.HEAPU8;
    return decoder.decode(memory.slice(pointer, memory.indexOf(0, pointer)));
  }
}
