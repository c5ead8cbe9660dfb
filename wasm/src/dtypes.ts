import { InvalidArgument } from './errors.js';
import { dtypeTable, reduceOps } from './tables.js';

type Row = (typeof dtypeTable)[number];

/** Element types, with the names of the C++ library. */
export type DType = Row['name'];

/**
 * The arrays that hold elements: f16 and bf16 are bits in Uint16Array, bool is Uint8Array, complex64 pairs in Float32Array, complex128 pairs
 * in Float64Array.
 */
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

/** The properties of a dtype. */
export interface DTypeFacts {
  readonly name: DType;
  /** Its number on the wire and in the core. */
  readonly number: number;
  /** Bytes of one element. */
  readonly bytes: number;
  /** How many numbers of its array make one element: 2 for complex64 and complex128, else 1. */
  readonly lanes: number;
  readonly Array: Constructor;
  /** True for f16, bf16, f32, f64, complex64 and complex128. */
  readonly floating: boolean;
}

type Storage = Row extends infer R ? (R extends Row ? `${R['kind']} ${R['bytes']}` : never) : never;

/** The array for each kind and size of elements in the table. The compiler reports an entry that is missing. */
const arrays: Readonly<Record<Storage, Constructor>> = {
  'boolean 1': Uint8Array,
  'unsigned_integer 1': Uint8Array,
  'unsigned_integer 2': Uint16Array,
  'unsigned_integer 4': Uint32Array,
  'unsigned_integer 8': BigUint64Array,
  'signed_integer 1': Int8Array,
  'signed_integer 2': Int16Array,
  'signed_integer 4': Int32Array,
  'signed_integer 8': BigInt64Array,
  'ieee_float 2': Uint16Array,
  'brain_float 2': Uint16Array,
  'ieee_float 4': Float32Array,
  'ieee_float 8': Float64Array,
  'complex 8': Float32Array,
  'complex 16': Float64Array,
};
const floating: ReadonlySet<string> = new Set<Row['kind']>(['ieee_float', 'brain_float', 'complex']);

const facts: ReadonlyMap<string, DTypeFacts> = new Map(
  dtypeTable.map(({ name, kind, bytes }, number) => {
    const Array = arrays[`${kind} ${bytes}` as Storage];
    return [name, { name, number, bytes, lanes: bytes / Array.BYTES_PER_ELEMENT, Array, floating: floating.has(kind) }];
  }),
);

/** All dtypes, in the order of their numbers. */
export const dtypes: readonly DType[] = dtypeTable.map(({ name }) => name);

/** Returns the properties of a dtype. Throws `InvalidArgument` for an unknown name. */
export function factsOf(dtype: DType): DTypeFacts {
  const found = facts.get(dtype);
  if (found === undefined) throw new InvalidArgument(`'${String(dtype)}' is no dtype; the dtypes are ${dtypes.join(', ')}`);
  return found;
}

/** Returns the bytes of one element. */
export function sizeOf(dtype: DType): number {
  return factsOf(dtype).bytes;
}

/** The dtype of plain numbers for each array: the first in the table that is not bool; the table has integers before f16 and bf16. */
const natural = new Map<string, DType>();
for (const { name, Array } of facts.values()) {
  if (name !== 'bool' && !natural.has(Array.name)) natural.set(Array.name, name);
}

/** Whether the value is an array whose elements can be moved. */
export function isTypedArray(value: unknown): value is TypedArray {
  return ArrayBuffer.isView(value) && natural.has(arrayName(value));
}

/** Returns the dtype of an array's elements: the caller's choice if the array can hold it, by default the array's own. */
export function dtypeOf(array: TypedArray, dtype?: DType): DType {
  const own = natural.get(arrayName(array));
  if (own === undefined) throw new InvalidArgument(`${arrayName(array)} holds no dtype; give a typed array, such as Float32Array`);
  if (dtype === undefined) return own;
  const expected = factsOf(dtype).Array.name;
  // Comparing by dtype also accepts Node's Buffer, which is a Uint8Array.
  if (natural.get(expected) !== own) throw new InvalidArgument(`dtype ${dtype} is held by a ${expected}, not by a ${arrayName(array)}`);
  return dtype;
}

function arrayName(array: ArrayBufferView): string {
  // The tag, unlike the constructor's name, is the same in subclasses, after minifying and in every realm.
  return (array as unknown as { [Symbol.toStringTag]?: string })[Symbol.toStringTag] ?? 'DataView';
}

/** How elements are reduced. */
export type ReduceOp = (typeof reduceOps)[number];

/** Returns the operation's number on the wire and in the core. Throws `InvalidArgument` for an unknown name. */
export function numberOf(op: ReduceOp): number {
  const number = reduceOps.indexOf(op);
  if (number < 0) throw new InvalidArgument(`'${String(op)}' is no reduction; the reductions are ${reduceOps.join(', ')}`);
  return number;
}
