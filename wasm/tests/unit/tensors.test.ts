import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asTensor, Tensor } from '../../src/tensors.js';
import { WasmTensor } from '../../src/wasm_tensors.js';

test('a tensor views its array', () => {
  const array = new Float32Array(6);
  const tensor = new Tensor(array, { shape: [2, 3] });
  assert.equal(tensor.data, array);
  assert.deepEqual([tensor.dtype, tensor.shape, tensor.count], ['f32', [2, 3], 6]);
  const complex = new Tensor(array, { dtype: 'complex64' });
  assert.deepEqual([complex.shape, complex.count], [[3], 3]);
  assert.deepEqual(new Tensor(new Float64Array(1), { shape: [] }).count, 1);
});

test('an array that has changed its length is refused', () => {
  const array = new Float32Array(4);
  const transferred = new Tensor(array);
  structuredClone(array.buffer, { transfer: [array.buffer] });
  assert.throws(() => transferred.data, {
    name: 'InvalidArgument',
    message: /had 4 numbers and has 0 now: its buffer was transferred or resized/,
  });
});

test('shapes that do not fit are refused', () => {
  assert.throws(() => new Tensor(new Float32Array(5), { shape: [2, 3] }), /the shape \(2, 3\) has 6 elements, but the array has 5/);
  assert.throws(() => new Tensor(new Float32Array(3), { dtype: 'complex64' }), /complex64 needs pairs of numbers, and the array has 3/);
  assert.throws(() => new Tensor(new Float64Array(5), { dtype: 'complex128' }), /complex128 needs pairs of numbers, and the array has 5/);
  assert.throws(() => new Tensor(new Float32Array(1), { shape: [1, 1, 1, 1, 1, 1, 1, 1, 1] }), /9 axes; 8 are the most/);
  assert.throws(() => new Tensor(new Float32Array(1), { shape: [-1] }), /no whole number from 0/);
  assert.throws(() => asTensor([1, 2] as never), /an object of class Array is neither a typed array nor a Tensor/);
  assert.throws(() => asTensor(new Tensor(new Float32Array(2)), { dtype: 'complex64' }), /the tensor is f32, but the call says complex64/);
});

test('a tensor in wasm memory outlives growth, and not free()', () => {
  const wasm = new WebAssembly.Memory({ initial: 1, maximum: 2 });
  const released: number[] = [];
  const memory = {
    get buffer(): ArrayBuffer {
      return wasm.buffer as ArrayBuffer;
    },
    release: (pointer: number) => void released.push(pointer),
  };
  const tensor = new WasmTensor<Float32Array>(memory, 64, 'f32', [4], true);
  const before = tensor.data;
  before.set([1, 2, 3, 4]);
  wasm.grow(1);
  assert.equal(before.length, 0);
  assert.deepEqual([...tensor.data], [1, 2, 3, 4]);
  assert.equal(tensor.data, tensor.data);
  tensor.free();
  tensor.free();
  assert.deepEqual(released, [64]);
  assert.throws(() => tensor.data, /given back by free/);
  assert.throws(() => tensor.pointer, /given back by free/);
});
