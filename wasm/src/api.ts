export type { CallOptions, ValueOptions } from './calls.js';
export type { DedicatedWorker } from './dedicated_worker.js';
export type { DType, ReduceOp, TypedArray } from './dtypes.js';
export type { ElasticTrainerOptions, MembershipChange, Step, StepFunction, TrainingPlan } from './elastic.js';
export type { Placement, Progress, Seat, Traffic } from './engine.js';
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
export type { AverageOptions, BlockFormat, BlockWire, FsdpOptions } from './gradients.js';
export { Group } from './group.js';
export type { AloneOptions, JoinOptions } from './join.js';
export { type LearningRate, Optimizer } from './optimizer.js';
export * from './optimizers.js';
export type { InnerFunction, InnerStep, OuterTrainerOptions } from './outer.js';
export type { Reformed, ReformOptions } from './reform.js';
export { StateValues, type StateValue } from './state_values.js';
export { Tensor, type Values } from './tensors.js';
export type { Tree } from './trees.js';
export { WasmTensor } from './wasm_tensors.js';
export type { WasmSource } from './wasm_source.js';
