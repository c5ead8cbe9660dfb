import { type DType, dtypeOf, factsOf, isTypedArray, type TypedArray } from './dtypes.js';
import { InvalidArgument } from './errors.js';

/** The maximum number of axes of a shape. */
export const maxAxes = 8;

/** Elements with a dtype and a shape, row-major without gaps. */
export class Tensor<A extends TypedArray = TypedArray> {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly #data: A;
  readonly #length: number;

  /**
   * Makes a view of `data`, without a copy. By default the dtype is the array's, and the shape has one axis. Throws `InvalidArgument` if
   * dtype or shape do not fit the array.
   */
  constructor(data: A, options: { dtype?: DType | undefined; shape?: readonly number[] | undefined } = {}) {
    this.dtype = dtypeOf(data, options.dtype);
    const lanes = factsOf(this.dtype).lanes;
    if (data.length % lanes !== 0) throw new InvalidArgument(`${this.dtype} needs pairs of numbers, and the array has ${data.length}`);
    this.shape = options.shape === undefined ? [data.length / lanes] : checkedShape(options.shape);
    if (countOf(this.shape) * lanes !== data.length) {
      throw new InvalidArgument(
        `the shape ${shapeText(this.shape)} has ${countOf(this.shape)} elements, but the array has ${data.length / lanes}`,
      );
    }
    this.#data = data;
    this.#length = data.length;
  }

  /** The elements. Throws `InvalidArgument` where the array's buffer was detached or resized meanwhile. */
  get data(): A {
    if (this.#data.length !== this.#length) {
      throw new InvalidArgument(
        `the tensor's array had ${this.#length} numbers and has ${this.#data.length} now: its buffer was transferred or resized`,
      );
    }
    return this.#data;
  }

  /** The number of elements. */
  get count(): number {
    return countOf(this.shape);
  }
}

/** The values that calls take: an array, or a tensor if dtype or shape differ from the array's own. */
export type Values = TypedArray | Tensor;

/** Returns the values as a tensor; options override dtype and shape of an array. */
export function asTensor(values: Values, options: { dtype?: DType | undefined; shape?: readonly number[] | undefined } = {}): Tensor {
  if (values instanceof Tensor) {
    if (options.dtype !== undefined && options.dtype !== values.dtype) {
      throw new InvalidArgument(`the tensor is ${values.dtype}, but the call says ${options.dtype}; leave dtype out`);
    }
    if (options.shape !== undefined && shapeText(options.shape) !== shapeText(values.shape)) {
      throw new InvalidArgument(`the tensor has the shape ${shapeText(values.shape)}, but the call says ${shapeText(options.shape)}`);
    }
    return values;
  }
  if (!isTypedArray(values)) {
    throw new InvalidArgument(`${describe(values)} is neither a typed array nor a Tensor; give for example a Float32Array`);
  }
  return new Tensor(values, options);
}

/** Throws `InvalidArgument` for more than eight axes, and for extents that are not valid. */
export function checkedShape(shape: readonly number[]): readonly number[] {
  if (shape.length > maxAxes) throw new InvalidArgument(`the shape ${shapeText(shape)} has ${shape.length} axes; ${maxAxes} are the most`);
  for (const extent of shape) {
    if (!Number.isSafeInteger(extent) || extent < 0) {
      throw new InvalidArgument(`the shape ${shapeText(shape)} has an extent that is no whole number from 0`);
    }
  }
  return [...shape];
}

/** Returns the number of elements: 1 for a scalar, whose shape has no axes. */
export function countOf(shape: readonly number[]): number {
  return shape.reduce((product, extent) => product * extent, 1);
}

/** Formats a shape, such as "(3, 4)". */
export function shapeText(shape: readonly number[]): string {
  return `(${shape.join(', ')}${shape.length === 1 ? ',' : ''})`;
}

/** Says what a value is where something else was expected: "an object of class Map". */
export function describe(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  return typeof value === 'object' ? `an object of class ${value.constructor?.name ?? 'null'}` : `the ${typeof value} ${String(value)}`;
}
