// Made by bindings/generator from the library's tables: see ARCHITECTURE.md, "Tables".

/** Element types, in the order of their numbers on the wire and in the core. */
export const dtypeTable = [
  { name: 'bool', kind: 'boolean', bytes: 1 },
  { name: 'u8', kind: 'unsigned_integer', bytes: 1 },
  { name: 'u16', kind: 'unsigned_integer', bytes: 2 },
  { name: 'u32', kind: 'unsigned_integer', bytes: 4 },
  { name: 'u64', kind: 'unsigned_integer', bytes: 8 },
  { name: 'i8', kind: 'signed_integer', bytes: 1 },
  { name: 'i16', kind: 'signed_integer', bytes: 2 },
  { name: 'i32', kind: 'signed_integer', bytes: 4 },
  { name: 'i64', kind: 'signed_integer', bytes: 8 },
  { name: 'f16', kind: 'ieee_float', bytes: 2 },
  { name: 'bf16', kind: 'brain_float', bytes: 2 },
  { name: 'f32', kind: 'ieee_float', bytes: 4 },
  { name: 'f64', kind: 'ieee_float', bytes: 8 },
  { name: 'complex64', kind: 'complex', bytes: 8 },
  { name: 'complex128', kind: 'complex', bytes: 16 },
] as const;

/** How elements are reduced, in the order of their numbers on the wire and in the core. */
export const reduceOps = ['sum', 'prod', 'max', 'min', 'bit_and', 'bit_or', 'bit_xor'] as const;

/** The formats of blocks in which gradients cross the network, in the order of their numbers in the core. */
export const blockFormats = ['int8', 'int4'] as const;

/** The number of the first format of blocks among those of the wires. */
export const firstBlocks = 256;

/** The collectives, in the order of their numbers in the core. Those with `_v` take counts. */
export const collectiveForms = [
  'all_reduce',
  'all_mean',
  'reduce_scatter',
  'reduce_scatter_v',
  'mean_scatter',
  'mean_scatter_v',
  'all_gather',
  'all_gather_v',
  'broadcast',
  'barrier',
  'reduce',
  'reduce_mean',
  'gather',
  'gather_v',
  'scatter',
  'scatter_v',
  'all_to_all',
  'all_to_all_v',
] as const;

/** The collectives for which the core takes one buffer as input and output. */
export const inPlaceForms = ['all_reduce', 'all_mean', 'broadcast', 'reduce', 'reduce_mean'] as const;

/** The optimizers' classes. */
export const formulas = ['SGD', 'RMSprop', 'Adagrad', 'AdaDelta', 'Adam', 'AdamW', 'Adamax', 'Lion'] as const;
