import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runInNewContext } from 'node:vm';
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
  assert.throws(() => flatten(3 as never), { message: 'the tree is neither a level nor a typed array nor a Tensor' });
  assert.throws(() => flatten({ a: null as never }), /neither a level/);
  assert.throws(() => flatten({ a: new Uint8ClampedArray(1) as never }), /neither a level/);
});

test('what keeps its contents elsewhere than in fields is refused, and not taken for an empty level', () => {
  class Bare {}
  class Registry extends Map<string, Float32Array> {
    readonly name = one();
  }
  for (const [given, kind] of [
    [new Map([['weight', one()]]), 'Map'],
    [new Map(), 'Map'],
    [new Registry(), 'Registry'],
    [new Set([one()]), 'Set'],
    [new Date(0), 'Date'],
    [new WeakMap(), 'WeakMap'],
    [Promise.resolve(one()), 'Promise'],
    [new ArrayBuffer(4), 'ArrayBuffer'],
    [new Bare(), 'Bare'],
  ] as const) {
    const message = new RegExp(`^'model\\.0' of the tree is an object of class ${kind}, which has no named fields`);
    assert.throws(() => flatten({ model: [given] } as never), { name: 'InvalidArgument', message });
  }
  assert.throws(() => flatten(new Map() as never), /^InvalidArgument: the tree is an object of class Map/);
});

test('objects with fields are levels, of whatever class and realm', () => {
  class Layer {
    readonly weight = one();
    readonly bias = one();
  }
  const foreign = runInNewContext('({})') as { weight?: Float32Array };
  const names = (tree: Tree): string[] => flatten(tree).map(({ name }) => name);
  assert.deepEqual(names({ layers: [new Layer()], none: {} } as unknown as Tree), ['layers.0.weight', 'layers.0.bias']);
  assert.deepEqual(names(foreign as Tree), []);
  foreign.weight = one();
  assert.deepEqual(names(foreign as Tree), ['weight']);
  assert.deepEqual(names(Object.assign(Object.create(null) as object, { weight: one() })), ['weight']);
});
