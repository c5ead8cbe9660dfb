import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encryption, forgetToken, takeToken } from '../../page/token.js';

/** Opens the page by a link with this fragment. */
function open(hash: string, sessionStorage: object): void {
  const history = { replaceState: (): void => void (location.hash = '') };
  Object.assign(globalThis, { location: { hash, pathname: '/', search: '' }, history, sessionStorage });
}

const refuse = (): never => {
  throw new Error('this browser keeps no data');
};
const blocked = { getItem: refuse, setItem: refuse, removeItem: refuse };

test('the link of the group says how to join also where the browser keeps no data', () => {
  open('#token=secret&encrypt=off', blocked);
  assert.equal(takeToken(), 'secret');
  assert.equal(location.hash, '');
  assert.equal(encryption(), '#encrypt=off');
  open('#token=other', blocked);
  assert.equal(takeToken(), 'other');
  assert.equal(encryption(), '');
  forgetToken();
  assert.equal(takeToken(), undefined);
});

/** Loads the page's module as a reload does: with nothing in its memory. */
const reload = async (): Promise<typeof import('*token.js?reload')> => import('../../page/token.js?reload');

test('what the link says is kept for a reload', async () => {
  const kept = new Map<string, string>();
  const storage = {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => kept.set(key, value),
    removeItem: (key: string) => kept.delete(key),
  };
  open('#token=secret&encrypt=off', storage);
  assert.equal(takeToken(), 'secret');
  assert.deepEqual([...kept.values()].sort(), ['off', 'secret']);
  const reloaded = await reload();
  assert.equal(reloaded.takeToken(), 'secret');
  assert.equal(reloaded.encryption(), '#encrypt=off');
  open('#token=other', storage);
  assert.equal(takeToken(), 'other');
  assert.deepEqual([...kept.values()], ['other']);
  assert.equal(reloaded.takeToken(), 'other');
  assert.equal(reloaded.encryption(), '');
});
