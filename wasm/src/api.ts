export type { CallOptions, ValueOptions } from './calls.js';
export type { DType, ReduceOp, TypedArray } from './dtypes.js';
export type { Progress, Seat, Traffic } from './engine.js';
export {
  AbortError,
  AuthenticationError,
  Cancelled,
  type ErrorCode,
  InvalidArgument,
  MismatchError,
  PeerLost,
  ProtocolError,
  RingletError,
  Timeout,
} from './errors.js';
export { Group } from './group.js';
export type { JoinOptions } from './join.js';
export { Tensor, type Values } from './tensors.js';
export type { Tree } from './trees.js';
export { WasmTensor } from './wasm_tensors.js';
export type { WasmSource } from './wasm_source.js';
