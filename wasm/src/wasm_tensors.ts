import { type DType, factsOf, type TypedArray } from './dtypes.js';
import { InvalidArgument } from './errors.js';
import { checkedShape, countOf, Tensor } from './tensors.js';

/** The part of the wasm module's memory that tensors in it need. */
export interface WasmMemory {
  /** The memory's buffer. Each growth replaces it by a new object, and leaves views of the former one empty. */
  readonly buffer: ArrayBuffer;
  release(pointer: number): void;
}

/**
 * A tensor in the wasm module's memory: calls read and write it there, and nothing is copied. Get `data` again after every `await`, because
 * memory that grows leaves older views empty.
 */
export class WasmTensor<A extends TypedArray = TypedArray> extends Tensor<A> {
  readonly #memory: WasmMemory;
  readonly #pointer: number;
  readonly #owned: boolean;
  #view: A;
  #freed = false;

  /** Only for the package itself; `group.alloc` makes these tensors. If `owned`, free() frees the memory. */
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

  /** The address of the elements in the module's memory. */
  get pointer(): number {
    if (this.#freed) throw new InvalidArgument('the memory of this tensor has been given back by free()');
    return this.#pointer;
  }

  /** Whether the elements are in this memory. */
  isIn(memory: WasmMemory): boolean {
    return this.#memory === memory;
  }

  /** Frees the memory. Must not be called while a call that was given the tensor is under way. */
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
