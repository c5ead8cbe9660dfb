import { InvalidArgument } from './errors.js';

/** Element types, by the names that the C++ library gives. */
export type DType = 'bool' | 'u8' | 'u16' | 'u32' | 'u64' | 'i8' | 'i16' | 'i32' | 'i64' | 'f16' | 'bf16' | 'f32' | 'f64' | 'complex64';

/** The arrays that elements come in. f16 and bf16 are the bits of Uint16Array, bool is Uint8Array, complex64 pairs in Float32Array. */
export type TypedArray =
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array
  | Float32Array
  | Float64Array;

type Constructor = {
  readonly name: string;
  new (buffer: ArrayBufferLike, byteOffset?: number, length?: number): TypedArray;
  readonly BYTES_PER_ELEMENT: number;
};

/** What is known of a dtype. */
export interface DTypeFacts {
  readonly name: DType;
  /** Its number on the wire and in the core. */
  readonly number: number;
  /** Bytes of one element. */
  readonly bytes: number;
  /** Numbers of its array that make one element: 2 of complex64. */
  readonly lanes: number;
  readonly Array: Constructor;
  /** f16, bf16, f32, f64 or complex64. */
  readonly floating: boolean;
}

const arrays: readonly (readonly [DType, Constructor])[] = [
  ['bool', Uint8Array],
  ['u8', Uint8Array],
  ['u16', Uint16Array],
  ['u32', Uint32Array],
  ['u64', BigUint64Array],
  ['i8', Int8Array],
  ['i16', Int16Array],
  ['i32', Int32Array],
  ['i64', BigInt64Array],
  ['f16', Uint16Array],
  ['bf16', Uint16Array],
  ['f32', Float32Array],
  ['f64', Float64Array],
  ['complex64', Float32Array],
];

const facts: ReadonlyMap<string, DTypeFacts> = new Map(
  arrays.map(([name, Array], number) => {
    const lanes = name === 'complex64' ? 2 : 1;
    return [name, { name, number, bytes: Array.BYTES_PER_ELEMENT * lanes, lanes, Array, floating: number >= 9 }];
  }),
);

/** All dtypes, in the order of their numbers. */
export const dtypes: readonly DType[] = arrays.map(([name]) => name);

/** Throws `InvalidArgument` for a name that is none. */
export function factsOf(dtype: DType): DTypeFacts {
  const found = facts.get(dtype);
  if (found === undefined) throw new InvalidArgument(`'${String(dtype)}' is no dtype; the dtypes are ${dtypes.join(', ')}`);
  return found;
}

/** Bytes of one element. */
export function sizeOf(dtype: DType): number {
  return factsOf(dtype).bytes;
}

const natural: ReadonlyMap<string, DType> = new Map([
  ['Int8Array', 'i8'],
  ['Uint8Array', 'u8'],
  ['Int16Array', 'i16'],
  ['Uint16Array', 'u16'],
  ['Int32Array', 'i32'],
  ['Uint32Array', 'u32'],
  ['BigInt64Array', 'i64'],
  ['BigUint64Array', 'u64'],
  ['Float32Array', 'f32'],
  ['Float64Array', 'f64'],
]);

/** Whether the value is an array whose elements can be moved. */
export function isTypedArray(value: unknown): value is TypedArray {
  return ArrayBuffer.isView(value) && natural.has(arrayName(value));
}

/** The dtype that an array's elements have: what the caller says, where the array can hold it, or else the array's own. */
export function dtypeOf(array: TypedArray, dtype?: DType): DType {
  const own = natural.get(arrayName(array));
  if (own === undefined) throw new InvalidArgument(`${arrayName(array)} holds no dtype; give a typed array, such as Float32Array`);
  if (dtype === undefined) return own;
  const expected = factsOf(dtype).Array.name;
  // Buffer is Node's Uint8Array.
  if (natural.get(expected) !== own) throw new InvalidArgument(`dtype ${dtype} is held by a ${expected}, not by a ${arrayName(array)}`);
  return dtype;
}

function arrayName(array: ArrayBufferView): string {
  // The tag, unlike the constructor's name, survives subclasses and minifiers and is the same in every realm.
  return (array as unknown as { [Symbol.toStringTag]?: string })[Symbol.toStringTag] ?? 'DataView';
}

/** How elements are reduced. */
export type ReduceOp = 'sum' | 'prod' | 'max' | 'min';

const operations: readonly ReduceOp[] = ['sum', 'prod', 'max', 'min'];

/** Its number on the wire and in the core. Throws `InvalidArgument` for a name that is none. */
export function numberOf(op: ReduceOp): number {
  const number = operations.indexOf(op);
  if (number < 0) throw new InvalidArgument(`'${String(op)}' is no reduction; the reductions are ${operations.join(', ')}`);
  return number;
}
