import { InvalidArgument } from './errors.js';
import { dtypeTable, reduceOps } from './tables.js';

type Row = (typeof dtypeTable)[number];

/** Element types, by the names that the C++ library gives. */
export type DType = Row['name'];

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

type Storage = Row extends infer R ? (R extends Row ? `${R['kind']} ${R['bytes']}` : never) : never;

/** What holds the elements of each sort and size that there is: the compiler misses those that are left out. */
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

/** Of each array the dtype of plain numbers that it holds: the first that is not bool, of which the table has that of integers first. */
const natural = new Map<string, DType>();
for (const { name, Array } of facts.values()) {
  if (name !== 'bool' && !natural.has(Array.name)) natural.set(Array.name, name);
}

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
export type ReduceOp = (typeof reduceOps)[number];

/** Its number on the wire and in the core. Throws `InvalidArgument` for a name that is none. */
export function numberOf(op: ReduceOp): number {
  const number = reduceOps.indexOf(op);
  if (number < 0) throw new InvalidArgument(`'${String(op)}' is no reduction; the reductions are ${reduceOps.join(', ')}`);
  return number;
}
