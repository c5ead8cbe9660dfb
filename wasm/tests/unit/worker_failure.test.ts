import assert from 'node:assert/strict';
import { test } from 'node:test';
import { explain } from '../../page/view/words.js';
import { failureOfWorker } from '../../page/worker_failure.js';

const headline = (event: Partial<ErrorEvent>, isTraining: boolean): string =>
  explain(failureOfWorker(event, isTraining), -1, false).headline;

test('a page whose server has gone says that the group cannot be reached', () => {
  const event = new Event('error') as ErrorEvent;
  assert.equal(headline(event, false), 'The group cannot be reached');
  assert.equal(failureOfWorker(event, false).message, 'what served this page does not answer any more');
});

test('a Worker that fails says with what', () => {
  assert.equal(headline({ message: 'out of memory' }, true), 'This tab has failed');
  assert.equal(headline({ message: '' }, true), 'This tab has failed');
  assert.equal(headline({ message: 'a syntax that is too new' }, false), 'Joining did not work');
  assert.equal(failureOfWorker({ message: 'out of memory' }, true).message, 'out of memory');
  assert.equal(failureOfWorker({ message: '' }, true).message, 'the browser does not say why');
});
