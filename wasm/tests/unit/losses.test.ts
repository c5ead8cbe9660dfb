import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Losses } from '../../page/view/losses.js';

test('a short run is kept as it is', () => {
  const losses = new Losses();
  assert.ok(losses.isEmpty);
  assert.equal(losses.text(), 'No loss is known yet.');
  for (let step = 1; step <= 1000; ++step) losses.addTraining(step, 5 - step / 1000);
  losses.addValidation(1000, 4.5);
  assert.equal(losses.training.steps.length, 1000);
  assert.equal(losses.text(), 'Loss of the training: 4.999 at first, 4.000 now. Of the validation: 4.500.');
});

test('a run of days takes no more memory, and is known evenly from its first step to its last', () => {
  const losses = new Losses();
  const steps = 864_000;
  for (let step = 1; step <= steps; ++step) {
    losses.addTraining(step, step);
    if (step % 100 === 0) losses.addValidation(step, -step);
    // The page asks after each step.
    const text = losses.text();
    if (step % 1000 === 0) assert.equal(text, `Loss of the training: 1.000 at first, ${step}.000 now. Of the validation: ${-step}.000.`);
  }
  for (const [curve, sign] of [
    [losses.training, 1],
    [losses.validation, -1],
  ] as const) {
    assert.ok(curve.steps.length > 1000 && curve.steps.length < 2048, `${curve.steps.length} points`);
    assert.deepEqual(
      curve.losses,
      curve.steps.map((step) => sign * step),
    );
    const gaps = curve.steps.slice(1).map((step, index) => step - (curve.steps[index] as number));
    assert.ok(Math.max(...gaps) <= steps / 1000, `${Math.max(...gaps)} steps without a point`);
    assert.equal(curve.steps.at(-1), steps);
  }
});

test('a group that has gone back loses what came after it', () => {
  const losses = new Losses();
  for (let step = 1; step <= 5000; ++step) losses.addTraining(step, step);
  losses.addValidation(5000, 1);
  losses.addTraining(3000, 7);
  assert.ok((losses.training.steps.at(-2) as number) < 3000);
  assert.equal(losses.text(), 'Loss of the training: 1.000 at first, 7.000 now.');
  losses.addValidation(2000, 6);
  losses.addTraining(2000, 8);
  assert.equal(losses.text(), 'Loss of the training: 1.000 at first, 8.000 now. Of the validation: 6.000.');
  losses.clear();
  assert.ok(losses.isEmpty);
});
