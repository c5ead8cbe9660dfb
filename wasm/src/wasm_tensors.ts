import { type DType, factsOf, type TypedArray } from './dtypes.js';
import { InvalidArgument } from './errors.js';
import { checkedShape, countOf, Tensor } from './tensors.js';

/** The wasm module's memory, as far as tensors that live in it need it. */
export interface WasmMemory {
  /** Another object after each growth, which leaves views of the one before empty. */
  readonly buffer: ArrayBuffer;
  release(pointer: number): void;
}

/**
 * A tensor in the wasm module's memory: calls read and write it where it is, and nothing is copied. `data` is asked for anew after every
 * `await`, since memory that grows leaves older views empty.
 */
export class WasmTensor<A extends TypedArray = TypedArray> extends Tensor<A> {
  readonly #memory: WasmMemory;
  readonly #pointer: number;
  readonly #owned: boolean;
  #view: A;
  #freed = false;

  /** Of the package: `group.alloc` makes these. `owned`: free() gives the memory back. */
  constructor(memory: WasmMemory, pointer: number, dtype: DType, shape: readonly number[], owned: boolean) {
    const view = viewOf<A>(memory, pointer, dtype, shape);
    super(view, { dtype, shape });
    this.#memory = memory;
    this.#pointer = pointer;
    this.#owned = owned;
    this.#view = view;
  }

  override get data(): A {
    if (this.#freed) throw new InvalidArgument('the memory of this tensor has been given back by free()');
    if (this.#view.buffer !== this.#memory.buffer) this.#view = viewOf(this.#memory, this.#pointer, this.dtype, this.shape);
    return this.#view;
  }

  /** Where the elements begin in the module's memory. */
  get pointer(): number {
    if (this.#freed) throw new InvalidArgument('the memory of this tensor has been given back by free()');
    return this.#pointer;
  }

  /** Whether the elements are in this memory. */
  isIn(memory: WasmMemory): boolean {
    return this.#memory === memory;
  }

  /** Gives the memory back. Not while a call that was given the tensor goes on. */
  free(): void {
    if (this.#freed || !this.#owned) return;
    this.#freed = true;
    this.#memory.release(this.#pointer);
  }
}

function viewOf<A extends TypedArray>(memory: WasmMemory, pointer: number, dtype: DType, shape: readonly number[]): A {
  const facts = factsOf(dtype);
  return new facts.Array(memory.buffer, pointer, countOf(checkedShape(shape)) * facts.lanes) as A;
}
