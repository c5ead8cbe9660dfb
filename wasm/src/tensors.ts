import { type DType, dtypeOf, factsOf, isTypedArray, type TypedArray } from './dtypes.js';
import { InvalidArgument } from './errors.js';

/** As many axes as a shape may have. */
export const maxAxes = 8;

/** Elements with dtype and shape, row-major without gaps. */
export class Tensor<A extends TypedArray = TypedArray> {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly #data: A;

  /**
   * Views `data`, without a copy. Without `dtype` that of the array, without `shape` one axis. Throws `InvalidArgument` where they do not
   * fit the array.
   */
  constructor(data: A, options: { dtype?: DType | undefined; shape?: readonly number[] | undefined } = {}) {
    this.dtype = dtypeOf(data, options.dtype);
    const lanes = factsOf(this.dtype).lanes;
    if (data.length % lanes !== 0) throw new InvalidArgument(`complex64 needs pairs of numbers, and the array has ${data.length}`);
    this.shape = options.shape === undefined ? [data.length / lanes] : checkedShape(options.shape);
    if (countOf(this.shape) * lanes !== data.length) {
      throw new InvalidArgument(
        `the shape ${shapeText(this.shape)} has ${countOf(this.shape)} elements, but the array has ${data.length / lanes}`,
      );
    }
    this.#data = data;
  }

  /** The elements. */
  get data(): A {
    return this.#data;
  }

  /** How many elements there are. */
  get count(): number {
    return countOf(this.shape);
  }
}

/** What calls take: an array, or a tensor where dtype or shape are not the array's own. */
export type Values = TypedArray | Tensor;

/** The values as a tensor; options override what the array says. */
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

/** Throws `InvalidArgument` for more than eight axes and for extents that are none. */
export function checkedShape(shape: readonly number[]): readonly number[] {
  if (shape.length > maxAxes) throw new InvalidArgument(`the shape ${shapeText(shape)} has ${shape.length} axes; ${maxAxes} are the most`);
  for (const extent of shape) {
    if (!Number.isSafeInteger(extent) || extent < 0) {
      throw new InvalidArgument(`the shape ${shapeText(shape)} has an extent that is no whole number from 0`);
    }
  }
  return [...shape];
}

/** Number of elements: 1 for a scalar, whose shape has no axes. */
export function countOf(shape: readonly number[]): number {
  return shape.reduce((product, extent) => product * extent, 1);
}

/** "(3, 4)". */
export function shapeText(shape: readonly number[]): string {
  return `(${shape.join(', ')}${shape.length === 1 ? ',' : ''})`;
}

function describe(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  return typeof value === 'object' ? `an object of class ${value.constructor?.name ?? 'null'}` : `the ${typeof value} ${String(value)}`;
}
