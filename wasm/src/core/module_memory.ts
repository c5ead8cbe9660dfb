import type { EngineMemory } from '../engine.js';
import type { RingletModule } from './module.js';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The module's memory: what is put into it, and what is read from it. */
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

  /** As allocate, but holding whatever was there. */
  reserve(bytes: number): number {
    // Nothing, too, needs a place of its own.
    const pointer = this.#module._ringlet_allocate(Math.max(bytes, 1)) >>> 0;
    if (pointer === 0) throw new RangeError(`the wasm module has no ${bytes} bytes of memory left`);
    return pointer;
  }

  release(pointer: number): void {
    this.#module._ringlet_release(pointer);
  }

  /** A copy of the bytes in memory of the module's; the caller releases it. */
  put(bytes: Uint8Array): number {
    const pointer = this.reserve(bytes.byteLength);
    this.#module.HEAPU8.set(bytes, pointer);
    return pointer;
  }

  /** Numbers of 32 bits, or a null pointer where there are none; the caller releases it. */
  putNumbers(numbers: readonly number[] | undefined): number {
    return numbers === undefined ? 0 : this.put(new Uint8Array(Uint32Array.from(numbers).buffer));
  }

  /** UTF-8 with a zero at its end; the caller releases it. */
  putText(text: string): number {
    return this.put(encoder.encode(`${text}\0`));
  }

  /** The bytes as they are now; stale as soon as the module runs. */
  view(pointer: number, bytes: number): Uint8Array {
    return this.#module.HEAPU8.subarray(pointer, pointer + bytes);
  }

  /** UTF-8 up to its zero. */
  text(pointer: number): string {
    const memory = this.#module.HEAPU8;
    return decoder.decode(memory.slice(pointer, memory.indexOf(0, pointer)));
  }
}
