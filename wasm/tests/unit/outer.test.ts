import assert from 'node:assert/strict';
import { test } from 'node:test';
import { InvalidArgument } from '../../src/errors.js';
import { cutFragments, Fragment, overlappedSteps, parameterOf, stepsFor } from '../../src/fragment.js';
import { OuterLoop, type OuterTrainerOptions } from '../../src/outer.js';
import { Tensor } from '../../src/tensors.js';
import { flatten, type Tree } from '../../src/trees.js';

const parametersOf = (tree: Tree): ReturnType<typeof parameterOf>[] => flatten(tree).map(parameterOf);
const sized = (...sizes: number[]): Tree => Object.fromEntries(sizes.map((size, i) => [`p${i}`, new Float32Array(size)]));

class Trainer extends OuterLoop {
  constructor(parameters: Tree, options: OuterTrainerOptions = {}) {
    super(() => Promise.reject(new Error('nobody is there to join')), { url: 'http://127.0.0.1:1/' }, parameters, options);
  }
}

test('fragments follow each other, none is empty, and parameters of one size are shared evenly', () => {
  const cut = (tree: Tree, count: number): string[][] =>
    cutFragments(parametersOf(tree), count).map(({ parameters }) => parameters.map(({ name }) => name));
  assert.deepEqual(cut(sized(5, 5, 5, 5), 2), [
    ['p0', 'p1'],
    ['p2', 'p3'],
  ]);
  assert.deepEqual(cut(sized(100, 1, 1, 1), 3), [['p0'], ['p1'], ['p2', 'p3']]);
  assert.deepEqual(cut(sized(1, 1, 1, 100), 2), [['p0', 'p1', 'p2'], ['p3']]);
  assert.deepEqual(cut(sized(0, 0, 0), 3), [['p0'], ['p1'], ['p2']]);
});

test('a slower side takes as many inner steps as it can while the fastest rank takes all', () => {
  assert.equal(stepsFor(50, 1, [1, 2]), 50);
  assert.equal(stepsFor(50, 2, [1, 2]), 25);
  assert.equal(stepsFor(50, 3, [1, 3, 0]), 17);
  assert.equal(stepsFor(50, 1.09, [1, 1.09]), 50);
  assert.equal(stepsFor(50, 1e9, [1, 1e9]), 1);
  assert.equal(stepsFor(50, 0, [1, 0]), 50);
  assert.equal(overlappedSteps(50, 0, 50), 0);
  assert.equal(overlappedSteps(50, 5, 50), 5);
  assert.equal(overlappedSteps(25, 10, 50), 5);
  assert.equal(overlappedSteps(1, 50, 50), 1);
});

test('differences become an update of the shared parameters, in the arithmetic of their dtype', () => {
  for (const [data, round] of [
    [Float32Array.of(0.1, 0.2), Math.fround],
    [Float64Array.of(0.1, 0.2), (value: number): number => value],
  ] as const) {
    const [parameter] = parametersOf({ w: data }) as [ReturnType<typeof parameterOf>];
    const fragment = new Fragment([parameter]);
    data[0] = 0.7;
    const { w } = fragment.takeDifferences(true);
    const difference = round(round(0.1) - round(0.7));
    assert.deepEqual([...(w?.data ?? [])], [difference, 0]);
    fragment.scaleDifferences(0.3);
    const gradient = round(difference * round(0.3));
    fragment.applyDifferences({ rate: 0.7, momentum: 0.9, nesterov: true });
    const update = round(gradient + round(round(0.9) * gradient));
    const shared = round(round(0.1) - round(round(0.7) * update));
    assert.equal(parameter.shared.data[0], shared);
    assert.equal(parameter.momentum.data[0], gradient);
    fragment.adopt(0.25);
    assert.equal(data[0], round(round(round(0.25) * round(0.7)) + round(round(0.75) * shared)));
    fragment.adopt(0);
    assert.equal(data[0], shared);
    // What a side has that has used no samples cannot matter.
    data[1] = Number.NaN;
    assert.deepEqual([...(fragment.takeDifferences(false)['w']?.data ?? [])], [0, 0]);
  }
});

test('what does not fit is refused', async () => {
  const refused = (message: RegExp, options: OuterTrainerOptions, parameters: Tree = sized(4, 4)): void => {
    assert.throws(
      () => new Trainer(parameters, options),
      (error) => error instanceof InvalidArgument && message.test(error.message),
    );
  };
  refused(/innerSteps is 0/, { innerSteps: 0 });
  refused(/fragments is 3; .* divide innerSteps, which is 50/, { fragments: 3 });
  refused(/fragments is 5, but there are 2 parameters/, { fragments: 5 });
  refused(/overlap is 50/, { overlap: 50 });
  refused(/mixing is 2/, { mixing: 2 });
  refused(/momentum is -1/, { momentum: -1 });
  refused(/'w' is i32/, {}, { w: new Int32Array(3) });
  refused(/'w' is f16/, {}, { w: new Tensor(new Uint16Array(3), { dtype: 'f16' }) });
  const trainer = new Trainer(sized(4, 4), { innerSteps: 4, fragments: 2 });
  await assert.rejects(
    trainer.run(3, () => 1),
    { code: 'invalid_argument', message: /3 inner steps are no multiple/ },
  );
  assert.equal(trainer.averages, 0);
  assert.equal(trainer.values.get('outer_inner_steps'), 4n);
});
