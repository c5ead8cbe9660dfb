import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Tensor } from '../../src/tensors.js';
import { flatten, type Tree } from '../../src/trees.js';

const one = (): Float32Array => new Float32Array(1);

test('leaves have the path of their levels, in order', () => {
  const half = new Tensor(new Uint16Array(6), { dtype: 'f16', shape: [2, 3] });
  const tree: Tree = { layers: [{ weight: one(), bias: half }, { weight: one() }], head: { 'out.bias': one() } };
  const leaves = flatten(tree);
  assert.deepEqual(
    leaves.map((leaf) => leaf.name),
    ['layers.0.weight', 'layers.0.bias', 'layers.1.weight', 'head.out.bias'],
  );
  assert.equal(leaves[1]?.tensor, half);
  assert.deepEqual(flatten({}), []);
});

test('a tree that cannot be named is refused', () => {
  assert.throws(() => flatten(one()), /a tree has names/);
  assert.throws(() => flatten({ 'a.b': one(), a: { b: one() } }), /two leaves of the tree are called 'a\.b'/);
  assert.throws(() => flatten({ a: { '': one() } }), /'' below 'a' is no name/);
  assert.throws(() => flatten({ 'a..b': one() }), /is no name: a level of it is empty/);
  assert.throws(() => flatten({ a: 3 as never }), {
    name: 'InvalidArgument',
    message: "'a' of the tree is neither a level nor a typed array nor a Tensor",
  });
  assert.throws(() => flatten({ a: null as never }), /neither a level/);
  assert.throws(() => flatten({ a: new Uint8ClampedArray(1) as never }), /neither a level/);
});
