import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dtypeOf, dtypes, factsOf, isTypedArray, numberOf, sizeOf } from '../../src/dtypes.js';
import { InvalidArgument } from '../../src/errors.js';

test('dtypes have the numbers and sizes of the C++ library', () => {
  const integers = { bool: 1, u8: 1, u16: 2, u32: 4, u64: 8, i8: 1, i16: 2, i32: 4, i64: 8 };
  const expected = { ...integers, f16: 2, bf16: 2, f32: 4, f64: 8, complex64: 8, complex128: 16 };
  assert.deepEqual(dtypes, Object.keys(expected));
  dtypes.forEach((name, number) => {
    assert.equal(factsOf(name).number, number);
    assert.equal(sizeOf(name), expected[name]);
  });
  assert.deepEqual(
    dtypes.filter((name) => factsOf(name).floating),
    ['f16', 'bf16', 'f32', 'f64', 'complex64', 'complex128'],
  );
});

test('an array has its own dtype, or one that it can hold', () => {
  assert.equal(dtypeOf(new Float32Array(1)), 'f32');
  assert.equal(dtypeOf(new Float32Array(2), 'complex64'), 'complex64');
  assert.equal(dtypeOf(new Float64Array(2)), 'f64');
  assert.equal(dtypeOf(new Float64Array(2), 'complex128'), 'complex128');
  assert.equal(dtypeOf(new Uint16Array(1), 'bf16'), 'bf16');
  assert.equal(dtypeOf(new Uint8Array(1), 'bool'), 'bool');
  assert.equal(dtypeOf(new BigInt64Array(1)), 'i64');
  assert.equal(dtypeOf(Buffer.alloc(1)), 'u8');
  assert.throws(() => dtypeOf(new Float32Array(1), 'f16'), {
    name: 'InvalidArgument',
    message: 'dtype f16 is held by a Uint16Array, not by a Float32Array',
  });
  assert.throws(() => dtypeOf(new Float32Array(1), 'float' as never), /'float' is no dtype; the dtypes are bool, u8/);
});

test('what is no array of elements is told apart', () => {
  for (const value of [[1, 2], new DataView(new ArrayBuffer(1)), new Uint8ClampedArray(1), null, undefined, 'x', 1]) {
    assert.equal(isTypedArray(value), false);
  }
});

test('reductions have the numbers of the C++ library', () => {
  assert.deepEqual((['sum', 'prod', 'max', 'min', 'bit_and', 'bit_or', 'bit_xor'] as const).map(numberOf), [0, 1, 2, 3, 4, 5, 6]);
  assert.throws(() => numberOf('mean' as never), InvalidArgument);
});
