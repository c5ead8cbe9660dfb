import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StreamOrder } from '../../src/core/stream_order.js';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('what comes behind a procedure waits for its end, on its stream alone', async () => {
  const order = new StreamOrder();
  const begun: string[] = [];
  const end = new Map<string, (error?: Error) => void>();
  const start = (name: string, stream: number, isProcedure: boolean): Promise<void> =>
    order.start(0, stream, isProcedure, () => {
      begun.push(name);
      return new Promise((resolve, reject) => end.set(name, (error) => (error === undefined ? resolve() : reject(error))));
    });
  void start('before', 0, false);
  void start('procedure', 0, true);
  void start('behind', 0, false);
  void start('behind too', 0, false);
  const failing = start('second procedure', 0, true);
  void start('last', 0, false);
  void start('other stream', 1, false);
  assert.deepEqual(begun, ['before', 'procedure', 'other stream']);
  await turn();
  assert.equal(begun.length, 3);
  end.get('procedure')?.();
  await turn();
  assert.deepEqual(begun.slice(3), ['behind', 'behind too', 'second procedure']);
  end.get('second procedure')?.(new Error('failed'));
  await assert.rejects(failing);
  await turn();
  void start('at once', 0, false);
  assert.deepEqual(begun.slice(6), ['last', 'at once']);
});
